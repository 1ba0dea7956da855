#!/usr/bin/python
"""A systemd unit that runs what is installed and configured, and answers."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.lakehouse import host_manifest, programs, units
from ansible.module_utils.lakehouse.probes import ask
from ansible.module_utils.lakehouse.refused import RefusedError
from ansible.module_utils.parsing.convert_bool import boolean

DOCUMENTATION = r"""
module: lakehouse_daemon
short_description: A unit that is enabled, up to date and answers a real question
description:
  - Starts and enables the unit; restarts it when one of C(files) changed after its main process started.
    Nothing has to be remembered between runs, so the next play completes one that broke off between a change
    and its restart.
  - The task ends when every probe of C(ready) has the right answer, or fails with the last answer and the end
    of the log.
  - The action plugin of the same name lets one host after the other restart what runs.
options:
  name: {type: str, description: The unit; required, but for C(look).}
  enabled: {type: bool, default: true, description: Whether it runs now and after a boot; if not, it stops.}
  files: {type: list, elements: path, default: [], description: What the daemon reads when it starts.}
  pending:
    type: list
    elements: path
    default: []
    description: >-
      In check mode, files that a run would have changed by now; C(lakehouse_config_files) remembers them.
  listens:
    type: list
    elements: dict
    default: []
    description: >-
      Sockets (C(host), C(port)) that the unit holds from the moment systemd calls it active. One that runs
      without them is restarted.
  ready:
    type: list
    elements: dict
    default: []
    description: >-
      Probes, see module_utils/lakehouse/probes.py. One of another unit names it (C(unit)), for the log.
  timeout: {type: int, default: 90, description: Seconds that the probes may take in all.}
  gate:
    type: list
    elements: dict
    default: []
    description: >-
      Probes that have to be right before a unit is restarted whose first probe of C(ready), its own, is. A
      unit whose own answer is wrong serves no client, and is not waited for.
  announce:
    type: list
    elements: str
    default: []
    description: >-
      A command that tells a unit that runs that it is about to be restarted, and by which it ends. Where it
      fails, or the unit has not ended in time, systemd restarts it all the same.
  rejoin:
    type: list
    elements: dict
    default: []
    description: Probes that follow C(ready) after a restart, before the next host has its turn.
  turns:
    type: bool
    default: true
    description: Whether hosts restart it one after the other; the action plugin's.
  restarts:
    type: bool
    default: true
    description: Whether what serves is restarted at all; the action plugin's.
  hold: {type: bool, default: false, description: Leave the restart of a unit that serves to another call.}
  look:
    type: list
    elements: dict
    description: >-
      Units with these options, of which the answer names those that are not as they should be; nothing is
      done. The action plugin's, for its C(units).
  manifest: {type: path, description: The manifest of the host.}
author: The lakehouse kit
"""
EXAMPLES = r"""
- name: The metastore runs
  lakehouse_daemon:
    name: hive-metastore
    files: [/etc/hive/hive-site.xml]
    ready: [{kind: thrift, host: 127.0.0.1, port: 9083, call: get_all_databases}]
"""
RETURN = r"""
action:
  type: str
  returned: for a unit
  description: "What was done: none, started, restarted or stopped; held where that is left to another call."
unsettled: {type: list, elements: str, returned: for C(look), description: Names of units.}
"""
POLL_SECONDS = 0.25
# A gate may ask for a report of all files: it is asked at every fourth turn.
GATE_POLLS = 4
LOG_LINES = 20
# Longer than any unit may take to stop, but for Debian's hour for PostgreSQL.
SYSTEMCTL_SECONDS = 600
# Copies of blocks that another host has missed are made within it.
GATE_SECONDS = 300
# What the command of `announce` may take, and the unit until it has ended.
TELL_SECONDS, LEAVE_SECONDS = 30.0, 20.0
# systemd's MainPID of a unit that has none.
NO_PROCESS = "0"


def systemctl(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run systemctl without a pager or a prompt."""
    return programs.run(
        ["systemctl", "--no-pager", "--no-ask-password", *arguments],
        seconds=SYSTEMCTL_SECONDS,
        next_command=f"systemctl status {arguments[-1]}; systemctl list-jobs",
    )


def properties(unit: str) -> dict[str, str]:
    """What systemd knows of the unit."""
    return units.properties(systemctl(*units.question(unit)).stdout.splitlines())


def is_settled(state: dict[str, str], unit: dict[str, Any]) -> bool:
    """Whether a unit is in the desired state and ready."""
    enabled = boolean(unit.get("enabled", True))
    stale = units.is_stale(state, unit.get("files", []))
    as_desired = units.is_as_desired(state, enabled=enabled, stale=stale)
    if not enabled or not as_desired:
        return as_desired
    return not units.is_deaf(state, unit.get("listens", [])) and first_error(unit.get("ready", [])) is None


def wait(module: AnsibleModule, unit: str, probes: list[dict[str, Any]], seconds: int) -> None:
    """Wait until every probe passes; fail with the last error."""
    deadline = time.monotonic() + seconds
    for probe in probes:
        while (error := ask(probe)) is not None:
            probed_unit = probe.get("unit", unit)
            dead = properties(probed_unit)["ActiveState"] == "failed"
            if dead or time.monotonic() > deadline:
                fail(module, probed_unit, "failed" if dead else f"not ready after {seconds} s", error)
            time.sleep(POLL_SECONDS)


def first_error(probes: list[dict[str, Any]]) -> str | None:
    """Return the error of the first probe that fails; None if all pass."""
    return next((error for probe in probes if (error := ask(probe)) is not None), None)


def serves(state: dict[str, str], ready: list[dict[str, Any]]) -> bool:
    """Whether a restart interrupts the service: the unit is active, and its own probe, the first, passes.

    A unit that fails must not wait for its turn: the unit whose turn it is may wait for this one.
    """
    return state["ActiveState"] == "active" and first_error(ready[:1]) is None


def pass_gate(module: AnsibleModule, unit: str) -> None:
    """Wait until the gate allows the restart of the unit; fail with its reason after a timeout.

    The unit's own probe, the first, decides whether it serves: the others depend on the gate's subject, too.
    """
    gate, own_probe = module.params["gate"], module.params["ready"][:1]
    deadline = time.monotonic() + GATE_SECONDS
    while (reason := first_error(gate)) is not None and first_error(own_probe) is None:
        if time.monotonic() > deadline:
            module.fail_json(
                msg=f"{unit}: not restarted after {GATE_SECONDS} s: {reason};"
                " next: .venv/bin/lakehouse doctor"
            )
        time.sleep(GATE_POLLS * POLL_SECONDS)


def announce(unit: str, argv: list[str]) -> None:
    """Announce the restart to a unit; return when its process has ended, or after a timeout."""
    pid = systemctl("show", "--property=MainPID", "--value", unit).stdout.strip()
    if not argv or pid == NO_PROCESS:
        return
    try:
        process = programs.run(argv, seconds=TELL_SECONDS, next_command=f"systemctl restart {unit}")
    except RefusedError:
        return
    deadline = time.monotonic() + LEAVE_SECONDS
    while process.returncode == 0 and Path("/proc", pid).exists() and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)


def fail(module: AnsibleModule, unit: str, problem: str, detail: str) -> None:
    """End with the evidence and the next command."""
    argv = ["journalctl", "--no-pager", "--output=cat", f"--lines={LOG_LINES}", f"--unit={unit}"]
    log = programs.run(argv, seconds=60, next_command=f"systemctl status {unit}").stdout
    module.fail_json(msg=f"{unit}: {problem}: {detail}; next: journalctl -u {unit}", log=log.splitlines())


def main() -> None:
    """Entry point."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str"},
            "enabled": {"type": "bool", "default": True},
            "files": {"type": "list", "elements": "path", "default": []},
            "pending": {"type": "list", "elements": "path", "default": []},
            "listens": {"type": "list", "elements": "dict", "default": []},
            "ready": {"type": "list", "elements": "dict", "default": []},
            "timeout": {"type": "int", "default": 90},
            "gate": {"type": "list", "elements": "dict", "default": []},
            "announce": {"type": "list", "elements": "str", "default": []},
            "rejoin": {"type": "list", "elements": "dict", "default": []},
            "turns": {"type": "bool", "default": True},
            "restarts": {"type": "bool", "default": True},
            "hold": {"type": "bool", "default": False},
            "look": {"type": "list", "elements": "dict"},
            **host_manifest.OPTION,
        },
        required_one_of=[("name", "look")],
        supports_check_mode=True,
    )
    try:
        if (listed_units := module.params["look"]) is not None:
            unsettled = [
                unit["name"] for unit in listed_units if not is_settled(properties(unit["name"]), unit)
            ]
            record(module, [unit for unit in listed_units if unit["name"] not in unsettled])
            module.exit_json(changed=False, unsettled=unsettled)
        bring(module)
    except RefusedError as error:
        module.fail_json(**error.result())


def loaded(module: AnsibleModule, unit: str, enabled: bool) -> dict[str, str]:
    """Return systemd's state of the unit; end the module if it does not exist."""
    state = properties(unit)
    unread = state["LoadState"] == "not-found" or state["NeedDaemonReload"] == "yes"
    if unread and not module.check_mode:
        systemctl("daemon-reload")
        state = properties(unit)
    if state["LoadState"] != "loaded":
        if not enabled:  # a unit that was never installed is stopped already
            record(module, [module.params])
            module.exit_json(changed=False, action="none")
        if module.check_mode:
            module.exit_json(changed=enabled, action="started")
        module.fail_json(msg=f"{unit}: systemd says {state['LoadState']}; next: systemctl status {unit}")
    return state


def bring(module: AnsibleModule) -> None:
    """Bring the unit into the desired state, and end the module."""
    unit, enabled = module.params["name"], module.params["enabled"]
    state = loaded(module, unit, enabled)
    pending = module.params["pending"] if module.check_mode else ()
    stale = units.is_stale(state, module.params["files"], pending)
    action = units.needed(state, enabled=enabled, stale=stale)
    if action == "none" and enabled and units.is_deaf(state, module.params["listens"]):
        action = "restarted"
    if action == "restarted" and module.params["hold"] and serves(state, module.params["ready"]):
        module.exit_json(changed=False, action="held")
    switch = not units.is_switched(state, enabled)
    if not module.check_mode:
        if switch:
            systemctl("enable" if enabled else "disable", unit)
        if action == "restarted":
            pass_gate(module, unit)
            announce(unit, module.params["announce"])
        if action != "none":
            verb = {"started": "start", "restarted": "restart", "stopped": "stop"}[action]
            process = systemctl(verb, unit)
            if process.returncode:
                fail(module, unit, f"{verb} failed", process.stderr.strip())
        if enabled:
            rejoin = module.params["rejoin"] if action == "restarted" else []
            wait(module, unit, [*module.params["ready"], *rejoin], module.params["timeout"])
    record(module, [module.params])
    module.exit_json(changed=switch or action != "none", action=action)


def record(module: AnsibleModule, settled: list[dict[str, Any]]) -> None:
    """Record units that are as they should be."""
    items = [
        {
            "kind": "unit",
            "name": unit["name"],
            "enabled": boolean(unit.get("enabled", True)),
            **{option: unit.get(option) or [] for option in ("files", "listens", "ready")},
        }
        for unit in settled
    ]
    host_manifest.put(module, items)


if __name__ == "__main__":
    main()
