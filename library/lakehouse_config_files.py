#!/usr/bin/python
"""Bring files, directories and links into the desired state, in one call."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: lakehouse_config_files
short_description: Files, directories and links of one role
description:
  - Called by the action plugin of the same name, which renders the templates.
  - A file is validated before it replaces the old one, and replaced atomically.
options:
  files: {type: list, elements: dict, required: true, description: The entries.}
  secrets: {type: dict, default: {}, description: Content by path of the entries marked secret.}
author: The lakehouse kit
"""
EXAMPLES = r"""
- name: Configure the NameNode
  lakehouse_config_files:
    files:
      - {dest: /etc/hadoop, directory: true}
      - {dest: /etc/hadoop/core-site.xml, template: hadoop.xml.j2, vars: {properties: {}}, validate: xml}
"""
RETURN = r"""
files: {type: list, returned: always, description: Paths that changed.}
"""


def validate(entry: dict[str, Any], content: str) -> str | None:
    """What is wrong with the content, or None."""
    if entry.get("validate") != "xml":
        return None
    try:
        ET.fromstring(content)  # noqa: S314 -- the kit has just rendered it
    except ET.ParseError as error:
        return f"{entry['dest']}: the rendered file is not well-formed XML: {error}"
    return None


def current(path: Path) -> str | None:
    """The file's text, or None where there is no file."""
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except (FileNotFoundError, NotADirectoryError):
        return None


def replace(module: AnsibleModule, path: Path, content: str, attributes: dict[str, Any]) -> None:
    """Write beside the target with the final owner and mode, then rename: no reader sees half a file."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(content)
        module.set_fs_attributes_if_different({**attributes, "path": name}, False)
        try:
            Path(name).replace(path)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            # A bind-mounted file (a container's /etc/hosts) cannot be renamed over.
            path.write_text(content, encoding="utf-8")
            Path(name).unlink()
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def attributes_of(module: AnsibleModule, entry: dict[str, Any], default_mode: str) -> dict[str, Any]:
    """Ownership and mode in the shape of Ansible's own file helpers."""
    return dict(
        module.load_file_common_arguments(
            {
                "path": entry["dest"],
                "owner": entry.get("owner", "root"),
                "group": entry.get("group", "root"),
                "mode": entry.get("mode", default_mode),
                "seuser": None, "serole": None, "selevel": None, "setype": None, "attributes": None,
            },
            entry["dest"],
        )
    )  # fmt: skip


def ensure_directory(module: AnsibleModule, entry: dict[str, Any]) -> dict[str, Any] | None:
    """Create the directory and its parents; only the directory itself gets owner and mode."""
    path = Path(entry["dest"])
    missing = not path.is_dir()
    if missing and not module.check_mode:
        path.mkdir(parents=True)
    if missing and module.check_mode:
        return {"before": "", "after": "directory\n"}
    if module.set_fs_attributes_if_different(attributes_of(module, entry, "0755"), missing):
        return {"before": "", "after": f"directory {entry.get('mode', '0755')}\n"}
    return None


def ensure_contents(module: AnsibleModule, entry: dict[str, Any]) -> dict[str, Any] | None:
    """Remove what lies in the directory under another name than those of ``only``."""
    path = Path(entry["dest"])
    extra = (
        sorted(found for found in path.iterdir() if found.name not in entry["only"]) if path.is_dir() else []
    )
    if not module.check_mode:
        for found in extra:
            found.unlink()
    return {"before": "".join(f"{found}\n" for found in extra), "after": ""} if extra else None


def ensure_link(module: AnsibleModule, entry: dict[str, Any]) -> dict[str, Any] | None:
    """Point the link at its target, atomically."""
    path, target = Path(entry["dest"]), entry["link"]
    before = path.readlink() if path.is_symlink() else None
    if before == Path(target):
        return None
    if not module.check_mode:
        temporary = path.parent / f".{path.name}.new"
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(target)
        temporary.replace(path)
    return {"before": f"{before or ''}\n", "after": f"{target}\n"}


def ensure_file(module: AnsibleModule, entry: dict[str, Any], content: str) -> dict[str, Any] | None:
    """Replace the file where its text, owner or mode differ."""
    path = Path(entry["dest"])
    problem = validate(entry, content)
    if problem:
        module.fail_json(msg=problem)
    attributes = attributes_of(module, entry, "0600" if entry.get("secret") else "0644")
    before = current(path)
    if before != content:
        if not module.check_mode:
            replace(module, path, content, attributes)
        if entry.get("secret"):
            return {"before": "(secret)\n", "after": "(another secret)\n"}
        return {"before": before or "", "after": content}
    if module.set_fs_attributes_if_different(attributes, False):
        return {"before": "", "after": "owner or mode\n"}
    return None


def ensure(module: AnsibleModule, entry: dict[str, Any]) -> dict[str, Any] | None:
    """Bring one entry into the desired state; return its difference, if there was one."""
    if entry.get("directory"):
        created = ensure_directory(module, entry)
        emptied = ensure_contents(module, entry) if "only" in entry else None
        return created or emptied
    if "link" in entry:
        return ensure_link(module, entry)
    content = module.params["secrets"][entry["dest"]] if entry.get("secret") else entry["content"]
    return ensure_file(module, entry, content)


def main() -> None:
    """Entry point."""
    # A login's own umask would close the parents of a directory to the users of the daemons.
    os.umask(0o022)
    module = AnsibleModule(
        argument_spec={
            "files": {"type": "list", "elements": "dict", "required": True},
            "secrets": {"type": "dict", "default": {}, "no_log": True},
        },
        supports_check_mode=True,
    )
    diffs = []
    for entry in module.params["files"]:
        try:
            diff = ensure(module, entry)
        except OSError as error:
            folder = Path(entry["dest"]).parent
            module.fail_json(msg=f"{entry['dest']}: {error.strerror}; next: df -h {folder}, ls -ld {folder}")
        if diff:
            diffs.append({**diff, "before_header": entry["dest"], "after_header": entry["dest"]})
    module.exit_json(
        changed=bool(diffs),
        files=[diff["after_header"] for diff in diffs],
        diff=diffs if module._diff else [],
    )


if __name__ == "__main__":
    main()
