#!/usr/bin/python
"""Parameters of the kernel, as they are now; a file of sysctl.d sets them after a boot."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.lakehouse import host_manifest, host_state

DOCUMENTATION = r"""
module: lakehouse_kernel
short_description: Parameters of the kernel
description:
  - Nothing is done where they are read-only, as in a container.
options:
  parameters: {type: dict, required: true, description: Value by name.}
  manifest: {type: path, description: The manifest of the host.}
author: The lakehouse kit
"""
EXAMPLES = r"""
- name: The kernel notices that another host is off
  lakehouse_kernel: {parameters: {net.ipv4.tcp_retries2: 8}}
"""
RETURN = r"""
differed: {type: list, elements: str, returned: always, description: What differed.}
"""


def main() -> None:
    """Entry point."""
    module = AnsibleModule(
        argument_spec={"parameters": {"type": "dict", "required": True}, **host_manifest.OPTION},
        supports_check_mode=True,
    )
    items = [
        {"kind": "kernel", "name": name, "value": str(value)}
        for name, value in module.params["parameters"].items()
        if is_writable(Path("/proc/sys", *name.split(".")))
    ]
    differed = list(host_state.differences(items))
    if not module.check_mode:
        try:
            for item in items if differed else []:
                Path("/proc/sys", *item["name"].split(".")).write_text(item["value"], encoding="ascii")
        except OSError as error:
            module.fail_json(msg=f"{error.filename}: {error.strerror}; next: sysctl --system")
    host_manifest.put(module, items)
    module.exit_json(changed=bool(differed), differed=differed)


def is_writable(path: Path) -> bool:
    """Tell whether a parameter can be set; its mode does not tell of a read-only file system."""
    try:
        path.open("a").close()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
