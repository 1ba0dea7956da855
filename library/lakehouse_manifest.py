#!/usr/bin/python
"""The manifest of a host: compare the host with it, and keep it."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.lakehouse import host_manifest, host_state, programs, units
from ansible.module_utils.lakehouse.probes import ask
from ansible.module_utils.lakehouse.refused import RefusedError

DOCUMENTATION = r"""
module: lakehouse_manifest
short_description: Compare a host with its manifest, and keep the manifest
description:
  - The manifest has an item for everything that the roles have put on a host, see
    module_utils/lakehouse/host_state.py. Modules record these items themselves.
  - With C(compared), the module answers whether a run of all roles would change nothing. Where it would, that
    run has begun, but for check mode, and the manifest is emptied.
options:
  path: {type: path, required: true, description: The manifest.}
  state:
    type: str
    choices: [compared, recorded, completed]
    required: true
    description: >-
      C(compared) before the roles, C(completed) after all of them, C(recorded) to add I(items).
  run: {type: str, default: "", description: The run that begins, or ends.}
  inputs: {type: str, default: "", description: "Digest of what the roles are given: lakehouse/inputs.py."}
  items: {type: list, elements: dict, default: [], description: Items that another program has put there.}
author: The lakehouse kit
"""
EXAMPLES = r"""
- name: The host is as the manifest says
  lakehouse_manifest: {path: /etc/lakehouse-manifest.json, state: compared, run: "1", inputs: 5d41402a}
"""
RETURN = r"""
differences: {type: list, elements: str, returned: for C(compared), description: A line for each difference.}
settled: {type: bool, returned: for C(compared), description: Whether the roles have nothing to do.}
"""
SYSTEMCTL_SECONDS = 60


def unit_differences(item: dict[str, Any]) -> list[str]:
    """Return what a unit lacks: its state by systemd, its sockets, and right answers."""
    name = item["name"]
    show = programs.run(
        ["systemctl", "--no-pager", "show", *units.SHOWN, name],
        seconds=SYSTEMCTL_SECONDS,
        next_command=f"systemctl status {name}",
    )
    properties = units.properties(show.stdout.splitlines())
    enabled = item.get("enabled", True)
    if not enabled and properties["LoadState"] == "not-found":
        return []
    stale = units.is_stale(properties, item.get("files", []))
    if not units.is_as_desired(properties, enabled=enabled, stale=stale):
        states = (properties[name] for name in ("LoadState", "ActiveState", "UnitFileState"))
        words = ", ".join(state for state in states if state)
        return [f"unit {name} is {words}{', older than a file that it reads' if stale else ''}"]
    if not enabled:
        return []
    if units.is_deaf(properties, item.get("listens", [])):
        return [f"unit {name} has a socket that takes no connection"]
    answers = (ask(probe) for probe in item.get("ready", []))
    return [f"unit {name} is not ready: {answer}" for answer in answers if answer is not None][:1]


def compared(path: str, inputs: str) -> list[str]:
    """Return a line for each difference of the host from its manifest, or of the manifest from the inputs."""
    try:
        document = host_state.read(path)
    except ValueError as error:
        return [f"{path} {error}"]
    items = list(document["items"].values())
    lines = list(host_state.differences(items))
    lines += [line for item in items if item["kind"] == "unit" for line in unit_differences(item)]
    if not document["inputs"]:
        lines.append(f"{path}: no run of all roles has ended since something was put there")
    elif document["inputs"] != inputs:
        lines.append(f"{path}: the inventory or the kit has changed")
    return lines


def main() -> None:
    """Entry point."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "state": {"type": "str", "choices": ["compared", "recorded", "completed"], "required": True},
            "run": {"type": "str", "default": ""},
            "inputs": {"type": "str", "default": ""},
            "items": {"type": "list", "elements": "dict", "default": []},
        },
        supports_check_mode=True,
    )
    path, state, run = (module.params[name] for name in ("path", "state", "run"))
    try:
        if state == "compared":
            lines = compared(path, module.params["inputs"])
            if lines and not module.check_mode:
                host_manifest.begin(path, run)
            module.exit_json(changed=False, differences=lines, settled=not lines)
        if not module.check_mode:
            if state == "recorded":
                host_manifest.record(path, module.params["items"])
            else:
                host_manifest.complete(path, run, module.params["inputs"])
    except RefusedError as error:
        module.fail_json(**error.result())
    except OSError as error:
        module.fail_json(msg=f"{path}: {error.strerror}; next: ls -ld {path}")
    module.exit_json(changed=False)


if __name__ == "__main__":
    main()
