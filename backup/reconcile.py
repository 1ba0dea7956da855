"""Makes a tree of HDFS what it was in a backup. Nothing is deleted: what is too much is set aside."""

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
# The first and the last line of what fsck lists.
_LISTED = re.compile(r"^Cookie:\t(?P<cookie>\d+)$.* CORRUPT files$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Plan:
    """What is to be done: paths to set aside, then folders to make, then files to write."""

    aside: tuple[str, ...]
    folders: tuple[Entry, ...]
    files: tuple[Entry, ...]


def plan(
    wanted: Mapping[str, Entry], there: Mapping[str, Entry], lost: frozenset[str], *, keep: bool
) -> Plan:
    """Compare trees; `lost` are unreadable files. With `keep`, what is there and readable stays."""
    different = {
        path
        for path, entry in there.items()
        if path in wanted
        and (
            entry.directory != wanted[path].directory or (not keep and entry.content != wanted[path].content)
        )
    }
    extra = set() if keep else {path for path in there if path not in wanted}
    aside = (different | extra | (lost & there.keys())) - {""}
    # With a folder goes what is in it.
    gone = {path for path in there if not aside.isdisjoint(upwards(path))}
    tops = sorted(path for path in aside if aside.isdisjoint(upwards(path)[:-1]))
    missing = [entry for path, entry in sorted(wanted.items()) if path not in there or path in gone]
    return Plan(
        aside=tuple(tops),
        folders=tuple(entry for entry in missing if entry.directory),
        files=tuple(entry for entry in missing if not entry.directory),
    )


def reconcile(
    settings: Settings, backup: Backup, only: tuple[str, ...], *, keep: bool, into: str = ""
) -> dict[str, Any]:
    """Make HDFS what it was, below the paths `only` or everywhere; return counts, and where the rest is.

    What is in the one folder `only` can come back in another one: `into`.
    """
    hdfs = _hdfs(settings)
    if hdfs.status(settings.root) is None:
        hdfs.call("PUT", "MKDIRS", settings.root)
    wanted, tops, sources = below(backup.entries, only), only, dict[str, str]()
    if into:
        [old] = only
        sources = {into + path.removeprefix(old): path for path in wanted}
        wanted = {path: replace(wanted[source], path=path) for path, source in sources.items()}
        tops = (into,)
    make(settings, backup, tuple(top.rpartition("/")[0] for top in tops))
    there = _there(settings, hdfs, tops)
    what = plan(wanted, there, _lost(settings), keep=keep)
    place = _set_aside(settings, hdfs, what.aside) if what.aside else ""
    staging = _staging(settings, hdfs)
    for folder in what.folders:
        staging.make(_path(settings, folder.path), folder)

    def write(entry: Entry) -> None:
        with (backup.files / sources.get(entry.path, entry.path)).open("rb") as stream:
            staging.put(_path(settings, entry.path), stream, entry)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(write, what.files))
    made = {folder.path for folder in what.folders}
    for path, entry in wanted.items():
        if entry.directory and path not in made and entry != there[path]:
            own(hdfs, inode(there[path]), entry)
    written = sum(entry.length for entry in what.files)
    return {"written": len(what.files), "bytes": written, "aside": len(what.aside), "place": place}


def missing(settings: Settings, backup: Backup, only: tuple[str, ...], *, keep: bool) -> tuple[Entry, ...]:
    """Return the files below the paths `only` that `reconcile` would write: HDFS lacks them."""
    there = _there(settings, _hdfs(settings), only)
    return plan(below(backup.entries, only), there, _lost(settings), keep=keep).files


def needed(settings: Settings, backup: Backup, *, keep: bool) -> dict[str, int | None]:
    """Return the bytes that a restore of all files writes, with every replica: into nothing, and now.

    Now is None where HDFS does not answer: its image may come out of the backup, and find its blocks again.
    """
    try:
        lacking = room(missing(settings, backup, (), keep=keep))
    except (BackupError, WebHdfsError, OSError):
        lacking = None
    return {"room": room(backup.entries.values()), "lacking": lacking}


def below(entries: Mapping[str, Entry], tops: tuple[str, ...]) -> dict[str, Entry]:
    """Return the entries of some folders with what is in them; all where none is named."""
    if not tops:
        return dict(entries)
    known = set(tops)
    return {path: entry for path, entry in entries.items() if not known.isdisjoint(upwards(path))}


def make(settings: Settings, backup: Backup, folders: Iterable[str]) -> None:
    """Make folders as they were, with those above them; one that is there stays as it is."""
    hdfs = _hdfs(settings)
    staging = _staging(settings, hdfs)
    for path in sorted({path for folder in folders if folder for path in upwards(folder)}):
        entry = backup.entries.get(path)
        if entry is not None and hdfs.status(_path(settings, path)) is None:
            staging.make(_path(settings, path), entry)


def _there(settings: Settings, hdfs: WebHdfs, tops: tuple[str, ...]) -> dict[str, Entry]:
    """Return what HDFS has now, in some folders or everywhere."""
    if not tops:
        return tree.walk(hdfs, settings.root, settings.left_out)
    found: dict[str, Entry] = {}
    for top in tops:
        if hdfs.status(_path(settings, top)) is not None:
            walked = tree.walk(hdfs, _path(settings, top)).values()
            found |= {
                path: replace(entry, path=path)
                for entry in walked
                if (path := f"{top}/{entry.path}".rstrip("/"))
            }
    return found


def _path(settings: Settings, path: str) -> str:
    return f"{settings.root}/{path}".rstrip("/")


def _lost(settings: Settings) -> frozenset[str]:
    """Return the files of which HDFS has lost a block; BackupError where it does not list all of them."""
    prefix, lost, cookie = f"{settings.root}/", set[str](), ""
    while True:
        text = _corrupt(settings, cookie)
        if text.rstrip().endswith(_NO_ROOT):
            return frozenset()
        # A NameNode that is not ready answers as well, and names none.
        if not (found := _LISTED.search(text)):
            raise BackupError(f"hdfs fsck does not list what is corrupt: {' '.join(text.split())[-200:]}")
        lines = (line.partition("\t") for line in text.splitlines() if line.startswith("blk_"))
        paths = [path.strip() for _, _, path in lines]
        lost |= {path.removeprefix(prefix) for path in paths if path.startswith(prefix)}
        # One answer has a hundred at the most (dfs.namenode.max-corrupt-file-blocks-returned).
        if not paths or found["cookie"] == cookie:
            return frozenset(lost)
        cookie = found["cookie"]


def _corrupt(settings: Settings, cookie: str) -> str:
    """Return what the NameNode lists after a cookie, which is empty at first."""
    address = (
        f"{settings.namenode}/fsck?ugi={settings.superuser}&path={settings.root}"
        f"&user.name={settings.superuser}&listcorruptfileblocks=1"
    )
    after = f"&startblockafter={cookie}" if cookie else ""
    try:
        with urlopen(address + after, timeout=TIMEOUT_SECONDS * 4) as answer:  # noqa: S310 -- the NameNode's
            return str(answer.read().decode())
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
