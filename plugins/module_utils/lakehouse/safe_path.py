"""Open the folder of a path as root, without following a link that an account could have put there.

Every component is opened relative to the one before it (`openat`, `O_NOFOLLOW`), so that nothing that is
renamed meanwhile leads elsewhere. A symbolic link that root made, in folders that only root can change, is
an administrator's and is followed. Standard library only, and Python 3.9: this runs on the nodes.
"""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

# As many as the kernel follows.
_MOST_LINKS = 40
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class UnsafePathError(Exception):
    """What an account may have put where root writes, in one line with the next command."""


@dataclass(frozen=True)
class Place:
    """An open folder and a name in it; `trusted` where root alone can change what the name leads to."""

    folder: int
    name: str
    trusted: bool
    dest: str

    @property
    def path(self) -> str:
        """A path that leads to this very folder, wherever it is renamed to. Of this process alone."""
        return f"/proc/self/fd/{self.folder}/{self.name}"

    def status(self) -> os.stat_result | None:
        """The status of what has the name, of a link itself; None where there is nothing."""
        try:
            return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def read(self) -> str | None:
        """Return a file's text; None where there is none. UnsafePathError for what is no file of its own."""
        found = self.status()
        if found is None:
            return None
        flags = os.O_RDONLY | os.O_CLOEXEC
        if not self.trusted:
            _want_file(self.dest, found)
            # It may have become a link or a pipe since then.
            flags |= os.O_NOFOLLOW | os.O_NONBLOCK
        handle = os.open(self.name, flags, dir_fd=self.folder)
        with os.fdopen(handle, encoding="utf-8", errors="surrogateescape") as stream:
            if not self.trusted:
                _want_file(self.dest, os.fstat(handle))
            return stream.read()


@contextmanager
def opened(dest: str, *, make: bool = False) -> Iterator[Place]:
    """Open the folder of an absolute path, with `make` also where it is missing.

    Raises UnsafePathError at a link that an account could have made, OSError where there is no such folder.
    """
    *folders, name = [part for part in dest.split("/") if part]
    handle, trusted = _walk(folders, make=make)
    try:
        entry = Place(handle, name, trusted, dest).status()
        yield Place(handle, name, trusted and not _replaceable(os.fstat(handle), entry), dest)
    finally:
        os.close(handle)


@contextmanager
def opened_folder(dest: str, *, make: bool = False) -> Iterator[Place]:
    """Open a folder itself, as `opened` does with the folder of a path; its name is `.`."""
    handle, trusted = _walk([part for part in dest.split("/") if part], make=make)
    try:
        yield Place(handle, ".", trusted, dest)
    finally:
        os.close(handle)


def give(folder: int, former: int, uid: int, gid: int) -> bool:
    """Give all that an account owns below an open folder to another; tell whether there was something.

    A folder is root's while it is worked on, so that nothing in it is exchanged meanwhile: an account that
    links to what is not its own gets nothing. One that an interrupted run has left to root is completed.
    """
    given = False
    for name in os.listdir(folder):
        entry = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISDIR(entry.st_mode):
            if entry.st_uid == former:
                os.chown(name, uid, gid, dir_fd=folder, follow_symlinks=False)
                given = True
            continue
        inner = os.open(name, _FOLDER, dir_fd=folder)
        try:
            mine = entry.st_uid in {former, 0}
            if mine:
                os.fchown(inner, 0, 0)
                os.fchmod(inner, stat.S_IRWXU)
            given = give(inner, former, uid, gid) or mine or given
            if mine:
                os.fchown(inner, uid, gid)
        finally:
            os.close(inner)
    return given


def _walk(parts: list[str], *, make: bool) -> tuple[int, bool]:
    """Return the last folder, opened, and whether root alone can change the way that leads to it."""
    todo, way, links, trusted = list(parts), list[str](), 0, True
    here = os.open("/", _FOLDER)
    try:
        while todo:
            name = todo.pop(0)
            try:
                entry = os.stat(name, dir_fd=here, follow_symlinks=False)
            except FileNotFoundError:
                if not make:
                    raise
                os.mkdir(name, 0o755, dir_fd=here)
                entry = os.stat(name, dir_fd=here, follow_symlinks=False)
            trusted = trusted and not _replaceable(os.fstat(here), entry)
            if stat.S_ISLNK(entry.st_mode):
                links += 1
                _want_followable(parts, [*way, name], entry, links, trusted=trusted)
                target = os.readlink(name, dir_fd=here)
                todo = [part for part in target.split("/") if part not in {"", "."}] + todo
                if target.startswith("/"):
                    os.close(here)
                    here, way = os.open("/", _FOLDER), []
                continue
            following = os.open(name, _FOLDER, dir_fd=here)
            os.close(here)
            here, way = following, [*way, name]
    except BaseException:
        os.close(here)
        raise
    return here, trusted


def _replaceable(folder: os.stat_result, entry: os.stat_result | None) -> bool:
    """Whether another account than root and this one can exchange an entry, or make one that is missing."""
    own = {0, os.geteuid()}
    if folder.st_uid not in own:
        return True
    if not folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return False
    # In a sticky folder its owner alone can.
    return entry is None or not folder.st_mode & stat.S_ISVTX or entry.st_uid not in own


def _want_followable(
    parts: list[str], way: list[str], entry: os.stat_result, links: int, *, trusted: bool
) -> None:
    if not trusted:
        raise UnsafePathError(_link("/" + "/".join(way), entry))
    if links > _MOST_LINKS:
        path = "/" + "/".join(parts)
        raise UnsafePathError(f"{path}: too many symbolic links; next: namei {path}")


def _want_file(dest: str, found: os.stat_result) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise UnsafePathError(_link(dest, found))
    if not stat.S_ISREG(found.st_mode):
        raise UnsafePathError(f"{dest} is no file, and {_owner(found)} may have made it; next: rm -r {dest}")


def _link(path: str, found: os.stat_result) -> str:
    return f"{path} is a symbolic link that {_owner(found)} could have made; next: rm {path}"


def _owner(found: os.stat_result) -> str:
    try:
        return pwd.getpwuid(found.st_uid).pw_name
    except KeyError:
        return f"uid {found.st_uid}"
