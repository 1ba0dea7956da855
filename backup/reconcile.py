"""Makes a tree of HDFS what it was in a backup. Nothing is deleted: what is too much is set aside."""

from __future__ import annotations

import urllib.error
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.request import urlopen

from backup import tree
from backup.manifest import Backup
from backup.settings import BackupError, Settings, new_name
from backup.tree import Entry
from plugins.module_utils.lakehouse.webhdfs import TIMEOUT_SECONDS, WebHdfs, WebHdfsError

_AT_ONCE = 4


@dataclass(frozen=True)
class Plan:
    """What is to be done: paths to set aside, then folders to make, then files to write."""

    aside: tuple[str, ...]
    folders: tuple[Entry, ...]
    files: tuple[Entry, ...]


def plan(
    wanted: Mapping[str, Entry], there: Mapping[str, Entry], lost: frozenset[str], *, keep: bool
) -> Plan:
    """Compare trees; `lost` are files that nobody can read. With `keep`, what is there and readable stays."""
    different = {
        path
        for path, entry in there.items()
        if path in wanted
        and (
            entry.directory != wanted[path].directory or (not keep and entry.content != wanted[path].content)
        )
    }
    extra = set() if keep else {path for path in there if path not in wanted}
    aside = sorted((different | extra | (lost & there.keys())) - {""})
    # With a folder goes what is in it.
    tops = [path for path in aside if not any(path.startswith(f"{other}/") for other in aside)]
    gone = {path for path in there for top in tops if path == top or path.startswith(f"{top}/")}
    missing = [entry for path, entry in sorted(wanted.items()) if path not in there or path in gone]
    return Plan(
        aside=tuple(tops),
        folders=tuple(entry for entry in missing if entry.directory),
        files=tuple(entry for entry in missing if not entry.directory),
    )


def reconcile(settings: Settings, backup: Backup, only: tuple[str, ...], *, keep: bool) -> dict[str, Any]:
    """Make HDFS what it was, below the paths `only` or everywhere; return counts, and where the rest is."""
    hdfs = WebHdfs(settings.namenode, settings.superuser)
    if hdfs.status(settings.root) is None:
        hdfs.call("PUT", "MKDIRS", settings.root)
    there = _chosen(tree.walk(hdfs, settings.root, settings.left_out), only)
    wanted = _chosen(backup.entries, only)
    what = plan(wanted, there, _lost(settings), keep=keep)
    place = _set_aside(settings, hdfs, what.aside) if what.aside else ""
    for folder in what.folders:
        hdfs.call("PUT", "MKDIRS", _path(settings, folder.path))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(lambda entry: _write(settings, hdfs, backup, entry), what.files))
    again = [
        entry
        for path, entry in wanted.items()
        if entry.directory and (path in there or entry in what.folders)
    ]
    for entry in again:
        if entry != there.get(entry.path):
            _own(settings, hdfs, entry)
    written = sum(entry.length for entry in what.files)
    return {"written": len(what.files), "bytes": written, "aside": len(what.aside), "place": place}


def room(backup: Backup) -> dict[str, int]:
    """Return the bytes that a restore into nothing writes, with every replica."""
    return {"room": sum(entry.length * max(entry.replication, 1) for entry in backup.entries.values())}


def _chosen(entries: Mapping[str, Entry], only: tuple[str, ...]) -> dict[str, Entry]:
    if not only:
        return dict(entries)
    return {
        path: entry
        for path, entry in entries.items()
        if any(path == one or path.startswith(f"{one}/") for one in only)
    }


def _path(settings: Settings, path: str) -> str:
    return f"{settings.root}/{path}".rstrip("/")


def _lost(settings: Settings) -> frozenset[str]:
    """Return the files of which HDFS has lost a block."""
    address = (
        f"{settings.namenode}/fsck?ugi={settings.superuser}&path={settings.root}"
        f"&user.name={settings.superuser}&listcorruptfileblocks=1"
    )
    try:
        with urlopen(address, timeout=TIMEOUT_SECONDS * 4) as answer:  # noqa: S310 -- the NameNode's
            lines = answer.read().decode().splitlines()
    except (OSError, urllib.error.URLError) as error:
        raise BackupError(f"hdfs fsck: {error}") from error
    paths = (line.split("\t", 1)[1] for line in lines if line.startswith("blk_") and "\t" in line)
    prefix = f"{settings.root}/"
    return frozenset(path.removeprefix(prefix).strip() for path in paths if path.startswith(prefix))


def _set_aside(settings: Settings, hdfs: WebHdfs, paths: tuple[str, ...]) -> str:
    place = f"/user/{settings.superuser}/set-aside/{new_name()}"
    for path in paths:
        target = f"{place}/{path}"
        hdfs.call("PUT", "MKDIRS", target.rpartition("/")[0], permission="700")
        if not hdfs.call("PUT", "RENAME", _path(settings, path), destination=target)["boolean"]:
            raise WebHdfsError(f"RENAME {_path(settings, path)}: HDFS refuses to set it aside")
    return place


def _write(settings: Settings, hdfs: WebHdfs, backup: Backup, entry: Entry) -> None:
    path = _path(settings, entry.path)
    hdfs.upload(str(backup.files / entry.path), path)
    hdfs.call("PUT", "SETREPLICATION", path, replication=str(entry.replication))
    _own(settings, hdfs, entry)
    # Last: a file that was interrupted has another time, and is written again.
    hdfs.call("PUT", "SETTIMES", path, modificationtime=str(entry.modified))


def _own(settings: Settings, hdfs: WebHdfs, entry: Entry) -> None:
    path = _path(settings, entry.path)
    hdfs.call("PUT", "SETOWNER", path, owner=entry.owner, group=entry.group)
    hdfs.call("PUT", "SETPERMISSION", path, permission=entry.permission)
    if entry.acl:
        base = [f"{who}::{_bits(entry.permission, place)}" for place, who in ((-3, "user"), (-1, "other"))]
        named = [one for one in entry.acl if not one.startswith(("user::", "other::"))]
        hdfs.call("PUT", "SETACL", path, aclspec=",".join([*base, *named]))


def _bits(permission: str, place: int) -> str:
    value = int(permission[place])
    return "".join(letter if value & bit else "-" for letter, bit in (("r", 4), ("w", 2), ("x", 1)))
