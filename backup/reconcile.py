"""Restore a tree of HDFS to the state of a backup. Nothing is deleted: extra files are moved aside."""

from __future__ import annotations

import re
import urllib.error
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any
from urllib.request import urlopen

from backup import tree
from backup.config import BackupError, Settings, new_name
from backup.manifest import Backup
from backup.tree import Entry
from plugins.module_utils.lakehouse.hdfs_tree import Staging, inode, own, room, upwards
from plugins.module_utils.lakehouse.webhdfs import TIMEOUT_SECONDS, WebHdfs, WebHdfsError

_AT_ONCE = 4
_NO_ROOT = "does not exist"
# The first and the last line of fsck's list.
_LISTED = re.compile(r"^Cookie:\t(?P<cookie>\d+)$.* CORRUPT files$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Plan:
    """The changes in their order: paths to move aside, folders to create, files to write."""

    aside: tuple[str, ...]
    folders: tuple[Entry, ...]
    files: tuple[Entry, ...]


def plan(
    expected: Mapping[str, Entry], present: Mapping[str, Entry], corrupt: frozenset[str], *, keep: bool
) -> Plan:
    """Compare trees; `corrupt` files are unreadable. With `keep`, readable files that exist stay."""
    different = {
        path
        for path, entry in present.items()
        if path in expected
        and (
            entry.directory != expected[path].directory
            or (not keep and entry.content != expected[path].content)
        )
    }
    extra = set() if keep else {path for path in present if path not in expected}
    aside = (different | extra | (corrupt & present.keys())) - {""}
    # A folder is moved with its contents.
    moved = {path for path in present if not aside.isdisjoint(upwards(path))}
    tops = sorted(path for path in aside if aside.isdisjoint(upwards(path)[:-1]))
    missing = [entry for path, entry in sorted(expected.items()) if path not in present or path in moved]
    return Plan(
        aside=tuple(tops),
        folders=tuple(entry for entry in missing if entry.directory),
        files=tuple(entry for entry in missing if not entry.directory),
    )


def reconcile(
    settings: Settings, backup: Backup, only: tuple[str, ...], *, keep: bool, into: str = ""
) -> dict[str, Any]:
    """Restore HDFS below the paths `only`, or everywhere; return counts, and the place of files moved aside.

    `into` is another folder for the contents of a single folder `only`.
    """
    hdfs = _hdfs(settings)
    if hdfs.status(settings.root) is None:
        hdfs.call("PUT", "MKDIRS", settings.root)
    expected, tops, sources = below(backup.entries, only), only, dict[str, str]()
    if into:
        [old] = only
        sources = {into + path.removeprefix(old): path for path in expected}
        expected = {path: replace(expected[source], path=path) for path, source in sources.items()}
        tops = (into,)
    make(settings, backup, tuple(top.rpartition("/")[0] for top in tops))
    present = _present(settings, hdfs, tops)
    changes = plan(expected, present, _corrupt_files(settings), keep=keep)
    place = _set_aside(settings, hdfs, changes.aside) if changes.aside else ""
    staging = _staging(settings, hdfs)
    for folder in changes.folders:
        staging.make(_path(settings, folder.path), folder)

    def write(entry: Entry) -> None:
        with (backup.files / sources.get(entry.path, entry.path)).open("rb") as stream:
            staging.put(_path(settings, entry.path), stream, entry)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(write, changes.files))
    created = {folder.path for folder in changes.folders}
    for path, entry in expected.items():
        if entry.directory and path not in created and entry != present[path]:
            own(hdfs, inode(present[path]), entry)
    written = sum(entry.length for entry in changes.files)
    return {"written": len(changes.files), "bytes": written, "aside": len(changes.aside), "place": place}


def missing(settings: Settings, backup: Backup, only: tuple[str, ...], *, keep: bool) -> tuple[Entry, ...]:
    """Return the files below the paths `only` that HDFS lacks and `reconcile` would write."""
    present = _present(settings, _hdfs(settings), only)
    return plan(below(backup.entries, only), present, _corrupt_files(settings), keep=keep).files


def needed(settings: Settings, backup: Backup, *, keep: bool) -> dict[str, int | None]:
    """Return the bytes that a restore of all files writes, with every replica: into an empty HDFS, and now.

    Now is None where HDFS does not respond: an image from the backup may find its blocks on the DataNodes.
    """
    try:
        lacking = room(missing(settings, backup, (), keep=keep))
    except (BackupError, WebHdfsError, OSError):
        lacking = None
    return {"room": room(backup.entries.values()), "lacking": lacking}


def below(entries: Mapping[str, Entry], tops: tuple[str, ...]) -> dict[str, Entry]:
    """Return the entries of some folders and their contents; all entries where no folder is named."""
    if not tops:
        return dict(entries)
    folders = set(tops)
    return {path: entry for path, entry in entries.items() if not folders.isdisjoint(upwards(path))}


def make(settings: Settings, backup: Backup, folders: Iterable[str]) -> None:
    """Create folders and their parents as in the backup; existing folders stay unchanged."""
    hdfs = _hdfs(settings)
    staging = _staging(settings, hdfs)
    for path in sorted({path for folder in folders if folder for path in upwards(folder)}):
        entry = backup.entries.get(path)
        if entry is not None and hdfs.status(_path(settings, path)) is None:
            staging.make(_path(settings, path), entry)


def _present(settings: Settings, hdfs: WebHdfs, tops: tuple[str, ...]) -> dict[str, Entry]:
    """Return the current entries of HDFS, in some folders or everywhere."""
    if not tops:
        return tree.walk(hdfs, settings.root, settings.left_out)
    entries: dict[str, Entry] = {}
    for top in tops:
        if hdfs.status(_path(settings, top)) is not None:
            folder_entries = tree.walk(hdfs, _path(settings, top)).values()
            entries |= {
                path: replace(entry, path=path)
                for entry in folder_entries
                if (path := f"{top}/{entry.path}".rstrip("/"))
            }
    return entries


def _path(settings: Settings, path: str) -> str:
    return f"{settings.root}/{path}".rstrip("/")


def _corrupt_files(settings: Settings) -> frozenset[str]:
    """Return the files with a corrupt block; BackupError where HDFS does not list all of them."""
    prefix, corrupt, cookie = f"{settings.root}/", set[str](), ""
    while True:
        text = _fsck(settings, cookie)
        if text.rstrip().endswith(_NO_ROOT):
            return frozenset()
        # A NameNode that is not ready responds, too, without any file.
        if not (header := _LISTED.search(text)):
            raise BackupError(f"hdfs fsck does not list what is corrupt: {' '.join(text.split())[-200:]}")
        lines = (line.partition("\t") for line in text.splitlines() if line.startswith("blk_"))
        paths = [path.strip() for _, _, path in lines]
        corrupt |= {path.removeprefix(prefix) for path in paths if path.startswith(prefix)}
        # A response has at most 100 files (dfs.namenode.max-corrupt-file-blocks-returned).
        if not paths or header["cookie"] == cookie:
            return frozenset(corrupt)
        cookie = header["cookie"]


def _fsck(settings: Settings, cookie: str) -> str:
    """Return the NameNode's list of corrupt files after a cookie; empty begins it."""
    address = (
        f"{settings.namenode}/fsck?ugi={settings.superuser}&path={settings.root}"
        f"&user.name={settings.superuser}&listcorruptfileblocks=1"
    )
    after = f"&startblockafter={cookie}" if cookie else ""
    try:
        with urlopen(address + after, timeout=TIMEOUT_SECONDS * 4) as response:  # noqa: S310 -- the NameNode's
            return str(response.read().decode())
    except (OSError, urllib.error.URLError) as error:
        raise BackupError(f"hdfs fsck: {error}") from error


def _set_aside(settings: Settings, hdfs: WebHdfs, paths: tuple[str, ...]) -> str:
    place = f"/user/{settings.superuser}/set-aside/{new_name()}"
    for path in paths:
        target = f"{place}/{path}"
        hdfs.call("PUT", "MKDIRS", target.rpartition("/")[0], permission="700")
        if not hdfs.call("PUT", "RENAME", _path(settings, path), destination=target)["boolean"]:
            raise WebHdfsError(f"RENAME {_path(settings, path)}: HDFS refuses to set it aside")
    return place


def _staging(settings: Settings, hdfs: WebHdfs) -> Staging:
    staging = Staging(hdfs, settings.root, "restore")
    staging.open()
    return staging


def _hdfs(settings: Settings) -> WebHdfs:
    return WebHdfs(settings.namenode, settings.superuser)
