#!/usr/bin/python
"""Keep the manifest of a host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.lakehouse import host_manifest, host_state

DOCUMENTATION = r"""
module: lakehouse_manifest
short_description: Keep the manifest of a host
description:
  - The manifest has an item for everything that the roles have put on a host, see
    module_utils/lakehouse/host_state.py. Modules record these items themselves.
  - The action plugin of the same name has two more states, in which no module is called.
options:
  path: {type: path, required: true, description: The manifest.}
  state:
    type: str
    choices: [begun, recorded, completed]
    required: true
    description: >-
      C(begun) before the roles, C(completed) after all of them, C(recorded) to add I(items).
  run: {type: str, default: "", description: The run that begins, or ends.}
  inputs: {type: str, default: "", description: "The digest of lakehouse/model/inputs.py."}
  items:
    type: list
    elements: dict
    default: []
    description: >-
      Items that another program has put there. One with C(now) is recorded with the content of each file that
      its path, a pattern, leads to.
author: The lakehouse kit
"""
EXAMPLES = r"""
- name: The manifest has a package
  lakehouse_manifest:
    path: /etc/lakehouse-manifest.json
    state: recorded
    items: [{kind: package, name: postgresql-17}]
"""
RETURN = r"""
{}
"""


def as_they_are(items: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Give the items, those with C(now) with the current content of the files that match their path."""
    for item in items:
        if not item.get("now"):
            yield item
            continue
        fields = {name: value for name, value in item.items() if name != "now"}
        pattern = Path(item["path"])
        for path in sorted(pattern.parent.glob(pattern.name)):
            yield {**fields, "path": str(path), **host_state.fingerprint(path.read_bytes())}


def main() -> None:
    """Entry point."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "state": {"type": "str", "choices": ["begun", "recorded", "completed"], "required": True},
            "run": {"type": "str", "default": ""},
            "inputs": {"type": "str", "default": ""},
            "items": {"type": "list", "elements": "dict", "default": []},
        },
        supports_check_mode=True,
    )
    path, run = module.params["path"], module.params["run"]
    states = {
        "begun": lambda: host_manifest.begin(path, run),
        "recorded": lambda: host_manifest.record(path, list(as_they_are(module.params["items"]))),
        "completed": lambda: host_manifest.complete(path, run, module.params["inputs"]),
    }
    if not module.check_mode:
        try:
            states[module.params["state"]]()
        except OSError as error:
            module.fail_json(msg=f"{path}: {error.strerror}; next: ls -ld {path}")
    module.exit_json(changed=False)


if __name__ == "__main__":
    main()
