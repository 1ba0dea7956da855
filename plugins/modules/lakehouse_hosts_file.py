#!/usr/bin/python
"""Name every node in /etc/hosts, and let no name of this node lead to 127.0.1.1."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.lakehouse import host_manifest, safe_path
from ansible.module_utils.lakehouse.preflight_names import BLOCK_BEGIN, BLOCK_END, INSTALLER_ADDRESS

DOCUMENTATION = r"""
module: lakehouse_hosts_file
short_description: The names of all nodes in /etc/hosts
description:
  - The kit's lines stand between two marks. Everything else in the file stays as it is, but for lines of
    127.0.1.1. The installer of Debian writes one, and a daemon that binds its own name then listens on
    loopback.
options:
  block: {type: str, required: true, description: The lines between the marks.}
  path: {type: path, default: /etc/hosts, description: The file.}
  manifest: {type: path, description: The manifest of the host.}
author: The lakehouse kit
"""
EXAMPLES = r"""
- name: Name every node of the cluster
  lakehouse_hosts_file: {block: "10.0.0.1 node1"}
"""
RETURN = r"""
{}
"""


# Every account resolves names.
MODE = "0644"


def rewritten(text: str, block: str) -> str:
    """Return the text of the file with the block, in place of an earlier one or at the end."""
    lines = [line for line in text.splitlines() if line.split()[:1] != [INSTALLER_ADDRESS]]
    block_of_kit = [BLOCK_BEGIN, *block.splitlines(), BLOCK_END]
    marks = [line for line in lines if line in (BLOCK_BEGIN, BLOCK_END)]
    if marks == [BLOCK_BEGIN, BLOCK_END]:
        first, last = lines.index(BLOCK_BEGIN), lines.index(BLOCK_END)
        lines[first : last + 1] = block_of_kit
    else:
        lines = [*_outside(lines), *block_of_kit]
    return "".join(f"{line}\n" for line in lines)


def _outside(lines: list[str]) -> Iterator[str]:
    """Give the lines that stand in no block; a mark without its other one is left out alone."""
    inside: list[str] = []
    is_inside = False
    for line in lines:
        if line == BLOCK_BEGIN:
            yield from inside
            inside, is_inside = [], True
        elif line == BLOCK_END:
            inside, is_inside = [], False
        elif is_inside:
            inside.append(line)
        else:
            yield line
    yield from inside


def main() -> None:
    """Entry point."""
    module = AnsibleModule(
        argument_spec={
            "block": {"type": "str", "required": True},
            "path": {"type": "path", "default": "/etc/hosts"},
            **host_manifest.OPTION,
        },
        supports_check_mode=True,
    )
    path, block = Path(module.params["path"]), module.params["block"]
    try:
        before = path.read_text(encoding="utf-8")
        after = rewritten(before, block)
        status = path.stat()
        # In a container the file is a mount, and is written in place.
        attributes = {"owner": str(status.st_uid), "group": str(status.st_gid), "mode": MODE}
        if not module.check_mode and before != after:
            with safe_path.opened(str(path)) as place:
                safe_path.replace(place, after, attributes)
    except OSError as error:
        module.fail_json(msg=f"{path}: {error.strerror}; next: ls -l {path}")
    except safe_path.UnsafePathError as error:
        module.fail_json(msg=str(error))
    marks = {"begin": BLOCK_BEGIN, "end": BLOCK_END, "without": INSTALLER_ADDRESS}
    digest = hashlib.sha256("\n".join(block.splitlines()).encode()).hexdigest()
    host_manifest.put(module, [{"kind": "block", "path": str(path), "sha256": digest, **marks}])
    header = {"before_header": str(path), "after_header": str(path)}
    diff = [{"before": before, "after": after, **header}] if before != after else []
    module.exit_json(changed=bool(diff), diff=diff)


if __name__ == "__main__":
    main()
