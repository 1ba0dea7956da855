#!/usr/bin/python
"""Directories in HDFS with owner, group and mode, through WebHDFS."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.webhdfs import WebHdfs, WebHdfsError

DOCUMENTATION = r"""
module: hdfs_path
short_description: Directories in HDFS
options:
  url: {type: str, required: true, description: The NameNode's web address.}
  user: {type: str, required: true, description: HDFS's superuser.}
  owner: {type: str, required: true, description: Owner of every path that does not name another.}
  group: {type: str, required: true, description: Group of every path that does not name another.}
  mode: {type: str, required: true, description: "Mode (octal digits) of every path that names no other."}
  paths:
    type: list
    elements: dict
    default: []
    description: >-
      Entries of C(path), and if they differ C(owner), C(group), C(mode). C(readers) are
      users outside the group who may pass and list the directory, by entries of its access control list.
  folders:
    type: list
    elements: str
    default: []
    description: Paths without anything of their own; after C(paths).
author: The lakehouse kit
"""
EXAMPLES = r"""
- name: Create the warehouse
  hdfs_path:
    url: http://cpu-node1:9870
    user: hdfs
    owner: hive
    group: lakehouse
    mode: "0770"
    paths: [{path: /tmp, owner: hdfs, mode: "1777"}]
    folders: [/lakehouse, /lakehouse/iceberg]
"""
RETURN = r"""
paths: {type: list, returned: always, description: Paths that changed.}
"""


def ensure(hdfs: WebHdfs, wish: dict[str, Any], check: bool) -> bool:
    """Create the directory or mend its owner and mode; tell whether something differed."""
    path, mode = wish["path"], wish["mode"].lstrip("0")
    status = hdfs.status(path)
    if status and status["type"] != "DIRECTORY":
        raise WebHdfsError(f"{path} is a file where a directory is needed")
    granted = _readers(hdfs, path) if status and "readers" in wish else set()
    wanted = set(wish.get("readers", ()))
    owned = status and (status["owner"], status["group"]) == (wish["owner"], wish["group"])
    allowed = status and status["permission"] == mode
    if not check:
        if not status:
            hdfs.call("PUT", "MKDIRS", path)
        if not owned:
            hdfs.call("PUT", "SETOWNER", path, owner=wish["owner"], group=wish["group"])
        if not allowed:
            hdfs.call("PUT", "SETPERMISSION", path, permission=mode)
        if granted - wanted:
            hdfs.call("PUT", "REMOVEACLENTRIES", path, aclspec=_entries(granted - wanted, ""))
        if wanted - granted:
            hdfs.call("PUT", "MODIFYACLENTRIES", path, aclspec=_entries(wanted - granted, ":r-x"))
    return not (owned and allowed and granted == wanted)


def _readers(hdfs: WebHdfs, path: str) -> set[str]:
    """Users that the access control list names; an entry reads user:NAME:r-x."""
    entries = hdfs.call("GET", "GETACLSTATUS", path)["AclStatus"]["entries"]
    return {name for kind, name, *_ in (entry.split(":") for entry in entries) if kind == "user" and name}


def _entries(users: set[str], permission: str) -> str:
    return ",".join(f"user:{user}{permission}" for user in sorted(users))


def main() -> None:
    """Entry point."""
    module = AnsibleModule(
        argument_spec={
            "url": {"type": "str", "required": True},
            "user": {"type": "str", "required": True},
            "owner": {"type": "str", "required": True},
            "group": {"type": "str", "required": True},
            "mode": {"type": "str", "required": True},
            "paths": {"type": "list", "elements": "dict", "default": []},
            "folders": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    hdfs = WebHdfs(module.params["url"], module.params["user"])
    common = {key: module.params[key] for key in ("owner", "group", "mode")}
    wishes = [
        common | wish
        for wish in [*module.params["paths"], *({"path": path} for path in module.params["folders"])]
    ]
    try:
        changed = [wish["path"] for wish in wishes if ensure(hdfs, wish, module.check_mode)]
    except WebHdfsError as error:
        module.fail_json(msg=f"{error}; next: journalctl -u hdfs-namenode")
    module.exit_json(changed=bool(changed), paths=changed)


if __name__ == "__main__":
    main()
