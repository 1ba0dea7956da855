#!/usr/bin/python
"""Bring files, directories and links into the desired state, in one call."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.lakehouse import host_manifest, host_state, safe_path
from ansible.module_utils.lakehouse.safe_path import Place, UnsafePathError, gid, replace, uid

DOCUMENTATION = r"""
module: lakehouse_config_files
short_description: Files, directories and links of one role
description:
  - Called by the action plugin of the same name, which renders the templates.
  - A file is validated before it replaces the old one, and replaced atomically.
  - Root follows no symbolic link that another account could have made, in no part of a path.
options:
  files: {type: list, elements: dict, required: true, description: The entries.}
  secrets: {type: dict, default: {}, description: Content by path of the entries marked secret.}
  manifest: {type: path, description: The manifest of the host.}
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
# It starts itself anew, and wants to know where it is.
SSHD = "/usr/sbin/sshd"


def validate(entry: dict[str, Any], content: str) -> str | None:
    """What is wrong with the content, or None."""
    problem = {"xml": _xml, "sshd": _sshd}.get(entry.get("validate", ""), lambda _: None)(content)
    return problem and f"{entry['dest']}: {problem}"


def _xml(content: str) -> str | None:
    try:
        ET.fromstring(content)  # noqa: S314 -- the kit has just rendered it
    except ET.ParseError as error:
        return f"the rendered file is not well-formed XML: {error}"
    return None


def _sshd(content: str) -> str | None:
    """Return sshd's error in a configuration: an sshd that does not start locks all users out."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as stream:
        stream.write(content)
        stream.flush()
        process = subprocess.run(
            [SSHD, "-t", "-f", stream.name], capture_output=True, text=True, check=False
        )  # fmt: skip
    message = " ".join((process.stderr or process.stdout).replace(stream.name, "line").split())
    return f"sshd refuses the rendered file: {message}; next: sshd -t" if process.returncode else None


def attributes_of(entry: dict[str, Any], default_mode: str) -> dict[str, str]:
    """Return owner, group and mode of an entry."""
    return {
        "owner": str(entry.get("owner", "root")),
        "group": str(entry.get("group", "root")),
        "mode": str(entry.get("mode", default_mode)),
    }


def set_attributes(module: AnsibleModule, path: str, attributes: dict[str, str]) -> bool:
    """Set owner and mode with Ansible's own helper; return whether they differed."""
    unset = dict.fromkeys(("seuser", "serole", "selevel", "setype", "attributes"))
    arguments = module.load_file_common_arguments({"path": path, **attributes, **unset}, path)
    return bool(module.set_fs_attributes_if_different(arguments, False))


def ensure_directory(module: AnsibleModule, entry: dict[str, Any]) -> dict[str, Any] | None:
    """Create the directory and its parents; only the directory itself gets owner and mode."""
    missing = not Path(entry["dest"]).is_dir()
    if missing and module.check_mode:
        return {"before": "", "after": "directory\n"}
    with safe_path.opened_folder(entry["dest"], make=True) as place:
        differed = set_attributes(module, place.path, attributes_of(entry, "0755"))
        copied = "taken_from" in entry and not module.check_mode and take(place, entry)
    if missing or differed or copied:
        return {"before": "", "after": f"directory {entry.get('mode', '0755')}\n"}
    return None


def take(place: Place, entry: dict[str, Any]) -> bool:
    """Give what is below the directory and belongs to the account ``taken_from`` to its owner."""
    former, new = uid(entry["taken_from"]), attributes_of(entry, "0755")
    return safe_path.give(place.folder, former, uid(new["owner"]), gid(new["group"]))


def ensure_contents(module: AnsibleModule, entry: dict[str, Any]) -> dict[str, Any] | None:
    """Remove the entries of the directory whose names are not in ``only``."""
    if not Path(entry["dest"]).is_dir():
        return None
    with safe_path.opened_folder(entry["dest"]) as place:
        extra = sorted(path for path in Path(place.path).iterdir() if path.name not in entry["only"])
        if not module.check_mode:
            for path in extra:
                path.unlink()
    names = "".join(f"{entry['dest']}/{path.name}\n" for path in extra)
    return {"before": names, "after": ""} if extra else None


def ensure_link(module: AnsibleModule, entry: dict[str, Any]) -> dict[str, Any] | None:
    """Point the link at its target, atomically."""
    target, path = entry["link"], Path(entry["dest"])
    before = path.readlink() if path.is_symlink() else None
    if before == Path(target):
        return None
    if not module.check_mode:
        with safe_path.opened(entry["dest"]) as place:
            path = Path(place.path)
            temporary = path.parent / f".{path.name}.new"
            temporary.unlink(missing_ok=True)
            temporary.symlink_to(target)
            temporary.replace(path)
    return {"before": f"{before or ''}\n", "after": f"{target}\n"}


def ensure_file(module: AnsibleModule, entry: dict[str, Any], content: str) -> dict[str, Any] | None:
    """Replace the file where its text, owner or mode differ."""
    problem = validate(entry, content)
    if problem:
        module.fail_json(msg=problem)
    attributes = attributes_of(entry, "0600" if entry.get("secret") else "0644")
    try:
        with safe_path.opened(entry["dest"]) as place:
            before = place.read()
            if before == content and place.trusted:
                differed = set_attributes(module, place.path, attributes)
                return {"before": "", "after": "owner or mode\n"} if differed else None
            if before == content and has(place, attributes):
                return None
            if not module.check_mode:
                # Also where the text is right: an account may have the old file open, and write on.
                replace(place, content, attributes)
    except (FileNotFoundError, NotADirectoryError):
        if not module.check_mode:
            raise
        before = None
    if entry.get("secret"):
        return {"before": "(secret)\n", "after": "(another secret)\n"}
    return {"before": before or "", "after": content}


def has(place: Place, attributes: dict[str, str]) -> bool:
    """Whether the file has this owner and mode."""
    status = place.status()
    expected = uid(attributes["owner"]), gid(attributes["group"]), int(attributes["mode"], 8)
    return status is not None and (status.st_uid, status.st_gid, status.st_mode & 0o7777) == expected


def ensure_absent(module: AnsibleModule, entry: dict[str, Any]) -> dict[str, Any] | None:
    """Remove the file, where there is one."""
    if not os.path.lexists(entry["dest"]):
        return None
    if not module.check_mode:
        with safe_path.opened(entry["dest"]) as place:
            Path(place.path).unlink()
    return {"before": "a file\n", "after": ""}


def ensure(module: AnsibleModule, entry: dict[str, Any]) -> dict[str, Any] | None:
    """Bring one entry into the desired state; return its difference, if there was one."""
    if entry.get("absent"):
        return ensure_absent(module, entry)
    if entry.get("directory"):
        created = ensure_directory(module, entry)
        emptied = ensure_contents(module, entry) if "only" in entry else None
        return created or emptied
    if "link" in entry:
        return ensure_link(module, entry)
    content = module.params["secrets"][entry["dest"]] if entry.get("secret") else entry["content"]
    return ensure_file(module, entry, content)


def items(entries: list[dict[str, Any]], secrets: dict[str, str]) -> list[dict[str, Any]]:
    """Return what the entries are in the manifest of the host."""
    return [_item(entry, secrets) for entry in entries]


def _item(entry: dict[str, Any], secrets: dict[str, str]) -> dict[str, Any]:
    path = {"path": str(entry["dest"])}
    if entry.get("absent"):
        return {"kind": "absent", **path}
    if "link" in entry:
        return {"kind": "link", **path, "target": str(entry["link"])}
    if entry.get("directory"):
        contents = {"only": sorted(entry["only"])} if "only" in entry else {}
        return {"kind": "directory", **path, **_mode(attributes_of(entry, "0755")), **contents}
    content = secrets[entry["dest"]] if entry.get("secret") else entry["content"]
    attributes = attributes_of(entry, "0600" if entry.get("secret") else "0644")
    return {"kind": "file", **path, **_mode(attributes), **host_state.fingerprint(content.encode())}


def _mode(attributes: dict[str, str]) -> dict[str, str]:
    return {**attributes, "mode": f"{int(attributes['mode'], 8):04o}"}


def main() -> None:
    """Entry point."""
    # A login's own umask would close the parents of a directory to the users of the daemons.
    os.umask(0o022)
    module = AnsibleModule(
        argument_spec={
            "files": {"type": "list", "elements": "dict", "required": True},
            "secrets": {"type": "dict", "default": {}, "no_log": True},
            **host_manifest.OPTION,
        },
        supports_check_mode=True,
    )
    diffs = []
    for entry in module.params["files"]:
        try:
            diff = ensure(module, entry)
        except UnsafePathError as error:
            module.fail_json(msg=str(error))
        except OSError as error:
            folder = Path(entry["dest"]).parent
            module.fail_json(msg=f"{entry['dest']}: {error.strerror}; next: df -h {folder}, ls -ld {folder}")
        if diff:
            diffs.append({**diff, "before_header": entry["dest"], "after_header": entry["dest"]})
    host_manifest.put(module, items(module.params["files"], module.params["secrets"]))
    module.exit_json(
        changed=bool(diffs),
        files=[diff["after_header"] for diff in diffs],
        diff=diffs if module._diff else [],
    )


if __name__ == "__main__":
    main()
