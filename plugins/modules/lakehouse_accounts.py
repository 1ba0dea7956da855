#!/usr/bin/python
"""Groups and accounts of the system, by systemd-sysusers."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.lakehouse import host_manifest, programs
from ansible.module_utils.lakehouse.refused import RefusedError

DOCUMENTATION = r"""
module: lakehouse_accounts
short_description: Groups and accounts of the system
description:
  - Accounts that exist stay as they are; preflight refuses those that are not in the group.
options:
  lines: {type: list, elements: str, required: true, description: "Lines of sysusers.d(5)."}
  manifest: {type: path, description: The manifest of the host.}
author: The lakehouse kit
"""
EXAMPLES = r"""
- name: The users exist
  lakehouse_accounts: {lines: [g lakehouse -, u hdfs -:lakehouse]}
"""
RETURN = r"""
created: {type: list, elements: str, returned: always, description: What systemd-sysusers printed of each.}
"""
SECONDS = 60


def items(lines: list[str]) -> list[dict[str, str]]:
    """Return an item for each account, with the group that it is in."""
    rows = (line.split() for line in lines)
    return [
        {"kind": "account", "name": name, "group": number.partition(":")[2] or name}
        for kind, name, number, *_ in rows
        if kind == "u"
    ]


def main() -> None:
    """Entry point."""
    module = AnsibleModule(
        argument_spec={
            "lines": {"type": "list", "elements": "str", "required": True},
            **host_manifest.OPTION,
        },
        supports_check_mode=True,
    )
    argv = ["systemd-sysusers", *(["--dry-run"] if module.check_mode else []), "-"]
    try:
        process = programs.run(
            argv,
            seconds=SECONDS,
            next_command="journalctl --boot --priority=err",
            text="".join(f"{line}\n" for line in module.params["lines"]),
        )
    except RefusedError as error:
        module.fail_json(**error.result())
    if process.returncode:
        module.fail_json(msg=f"systemd-sysusers: {process.stderr.strip()}; next: getent passwd")
    created = [line for line in (process.stdout + process.stderr).splitlines() if "Creating" in line]
    host_manifest.put(module, items(module.params["lines"]))
    module.exit_json(changed=bool(created), created=created)


if __name__ == "__main__":
    main()
