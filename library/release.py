#!/usr/bin/python
"""Unpack a release beside the others and point ``current`` at it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: release
short_description: One component's installed release
description:
  - Called by the action plugin of the same name.
  - "C(root)/releases/C(release) holds the files, C(root)/current points at the one in use."
options:
  root: {type: path, required: true, description: The component's folder.}
  release: {type: str, required: true, description: Version and digest of the wished release.}
  conf: {type: path, description: Folder that the release offers as C(conf).}
  archive: {type: path, description: The archive, where the release may be missing.}
author: The lakehouse kit
"""
EXAMPLES = r"""
- name: Install Hadoop
  release: {component: hadoop, root: /opt/hadoop}
"""
RETURN = r"""
path: {type: str, returned: always, description: The release's folder.}
missing: {type: bool, returned: always, description: Whether the archive is needed.}
"""


def unpack(archive: str, target: Path) -> None:
    """Unpack beside the target and rename: a half-unpacked release has another name."""
    partial = target.with_name(f"{target.name}.partial")
    if partial.exists():
        shutil.rmtree(partial)
    partial.mkdir(parents=True)
    subprocess.run(
        ["tar", "--extract", "--no-same-owner", "--file", archive, "--directory", str(partial)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    partial.rename(target)


def point(link: Path, target: str) -> bool:
    """Make the link point at the target, atomically; tell whether it did not."""
    if link.is_symlink() and link.readlink() == Path(target):
        return False
    temporary = link.with_name(f".{link.name}.new")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.replace(link)
    return True


def main() -> None:
    """Entry point."""
    os.umask(0o022)  # a login's own could close the folders to the users of the daemons
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "path", "required": True},
            "release": {"type": "str", "required": True},
            "conf": {"type": "path"},
            "archive": {"type": "path"},
        },
        supports_check_mode=True,
    )
    root = Path(module.params["root"])
    target = root / "releases" / module.params["release"]
    missing = not target.is_dir()
    if missing and (module.check_mode or not module.params["archive"]):
        module.exit_json(changed=module.check_mode, missing=True, path=str(target))
    try:
        if missing:
            unpack(module.params["archive"], target)
        changed = missing
        if not module.check_mode:
            if module.params["conf"]:
                changed |= point(target / "conf", module.params["conf"])
            changed |= point(root / "current", f"releases/{target.name}")
    except subprocess.CalledProcessError as error:
        module.fail_json(msg=f"{target}: unpacking failed: {error.stderr.strip()}; next: df -h {root}")
    except OSError as error:
        module.fail_json(msg=f"{target}: {error.strerror}: {error.filename}; next: df -h {root}")
    module.exit_json(changed=changed, missing=False, path=str(target))


if __name__ == "__main__":
    main()
