"""Directories in HDFS with owner, group and mode, through WebHDFS."""

from __future__ import annotations

from typing import Any

from .refused import RefusedError, UnansweredError
from .webhdfs import NoAnswerError, WebHdfs, WebHdfsError


def apply(parameters: dict[str, Any], *, check: bool = False) -> list[str]:
    """Make and mend the directories that the module hdfs_path is given; return the paths that differed.

    Raises UnansweredError where no NameNode answers.
    """
    hdfs = WebHdfs(parameters["url"], parameters["user"])
    try:
        differed = [path["path"] for path in _paths(parameters) if ensure(hdfs, path, check)]
        allowed = [path for path in parameters.get("snapshots", []) if allow_snapshots(hdfs, path, check)]
        return list(dict.fromkeys([*differed, *allowed]))
    except NoAnswerError as error:
        raise UnansweredError(str(error), "journalctl -u hdfs-namenode") from error
    except WebHdfsError as error:
        raise RefusedError(str(error), "journalctl -u hdfs-namenode") from error


def items(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what the directories are in the manifest of the host."""
    server = {name: parameters[name] for name in ("url", "user")}
    snapshots = parameters.get("snapshots", [])
    return [
        {
            "kind": "hdfs",
            **server,
            **path,
            "mode": path["mode"].lstrip("0"),
            "snapshots": path["path"] in snapshots,
        }
        for path in _paths(parameters)
    ]


def _paths(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the directories, each with its owner, group and mode."""
    common = {key: parameters[key] for key in ("owner", "group", "mode")}
    folders = ({"path": path} for path in parameters.get("folders", []))
    return [common | path for path in [*parameters.get("paths", []), *folders]]


def ensure(hdfs: WebHdfs, desired: dict[str, Any], check: bool) -> bool:
    """Create the directory or correct its owner and mode; return whether something differed."""
    path, mode = desired["path"], desired["mode"].lstrip("0")
    status = hdfs.status(path)
    if status and status["type"] != "DIRECTORY":
        raise WebHdfsError(f"{path} is a file where a directory is needed")
    current_readers = _readers(hdfs, path) if status and "readers" in desired else set()
    readers = set(desired.get("readers", ()))
    owned = status and (status["owner"], status["group"]) == (desired["owner"], desired["group"])
    allowed = status and status["permission"] == mode
    if not check:
        if not status:
            hdfs.call("PUT", "MKDIRS", path)
        if not owned:
            hdfs.call("PUT", "SETOWNER", path, owner=desired["owner"], group=desired["group"])
        if not allowed:
            hdfs.call("PUT", "SETPERMISSION", path, permission=mode)
        if current_readers - readers:
            hdfs.call("PUT", "REMOVEACLENTRIES", path, aclspec=_entries(current_readers - readers, ""))
        if readers - current_readers:
            hdfs.call("PUT", "MODIFYACLENTRIES", path, aclspec=_entries(readers - current_readers, ":r-x"))
    return not (owned and allowed and current_readers == readers)


def allow_snapshots(hdfs: WebHdfs, path: str, check: bool) -> bool:
    """Allow snapshots of a directory to its owner; return whether that is a change."""
    listed = hdfs.call("GET", "GETSNAPSHOTTABLEDIRECTORYLIST", "/").get("SnapshottableDirectoryList") or ()
    names = ((row["parentFullPath"].rstrip("/"), row["dirStatus"]["pathSuffix"]) for row in listed)
    if path in {"/".join(name) for name in names}:
        return False
    if not check:
        hdfs.call("PUT", "ALLOWSNAPSHOT", path)
    return True


def _readers(hdfs: WebHdfs, path: str) -> set[str]:
    """Users that the access control list names; an entry reads user:NAME:r-x."""
    entries = hdfs.call("GET", "GETACLSTATUS", path)["AclStatus"]["entries"]
    return {name for kind, name, *_ in (entry.split(":") for entry in entries) if kind == "user" and name}


def _entries(users: set[str], permission: str) -> str:
    return ",".join(f"user:{user}{permission}" for user in sorted(users))
