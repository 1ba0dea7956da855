"""Open the folder of a path as root, without following a link that an account could have put there.

Every component is opened relative to the one before it (`openat`, `O_NOFOLLOW`), so that nothing that is
renamed meanwhile leads elsewhere. A symbolic link that root made, in folders that only root can change, is
an administrator's and is followed. Standard library only, and Python 3.9: this runs on the nodes.
"""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
        status = self.status()
        if status is None:
            return None
        flags = os.O_RDONLY | os.O_CLOEXEC
        if not self.trusted:
            _want_file(self.dest, status)
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


def replace(place: Place, content: str, attributes: dict[str, Any]) -> None:
    """Write beside the target with the final owner and mode, then rename: no reader sees half a file."""
    path = Path(place.path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(content)
            # By the open file: its name may be another account's to change.
            os.fchown(handle, uid(attributes["owner"]), gid(attributes["group"]))
            os.fchmod(handle, int(attributes["mode"], 8))
        try:
            Path(name).replace(path)
        except OSError as error:
            if error.errno != errno.EBUSY or not place.trusted:
                raise
            # A bind-mounted file (a container's /etc/hosts) cannot be renamed over.
            path.write_text(content, encoding="utf-8")
            Path(name).unlink()
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def uid(owner: str) -> int:
    """Return the number of an account; OSError where there is none."""
    try:
        return int(owner) if owner.isdecimal() else pwd.getpwnam(owner).pw_uid
    except KeyError:
        raise OSError(errno.EINVAL, f"there is no user {owner}") from None


def gid(group: str) -> int:
    """Return the number of a group; OSError where there is none."""
    try:
        return int(group) if group.isdecimal() else grp.getgrnam(group).gr_gid
    except KeyError:
        raise OSError(errno.EINVAL, f"there is no group {group}") from None


def give(folder: int, former: int, uid: int, gid: int) -> bool:
    """Give all that an account owns below an open folder to another; tell whether there was something.

    A folder is root's while it is worked on, so that nothing in it is exchanged meanwhile: an account that
    links to what is not its own gets nothing. One that an interrupted run has left to root is completed.
    """
    has_changed = False
    for name in os.listdir(folder):
        entry = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISDIR(entry.st_mode):
            if entry.st_uid == former:
                os.chown(name, uid, gid, dir_fd=folder, follow_symlinks=False)
                has_changed = True
            continue
        subfolder = os.open(name, _FOLDER, dir_fd=folder)
        try:
            is_former = entry.st_uid in {former, 0}
            if is_former:
                os.fchown(subfolder, 0, 0)
                os.fchmod(subfolder, stat.S_IRWXU)
            has_changed = give(subfolder, former, uid, gid) or is_former or has_changed
            if is_former:
                os.fchown(subfolder, uid, gid)
        finally:
            os.close(subfolder)
    return has_changed


def _walk(parts: list[str], *, make: bool) -> tuple[int, bool]:
    """Return the last folder, opened, and whether root alone can change the way that leads to it."""
    remaining, walked, links, trusted = list(parts), list[str](), 0, True
    folder = os.open("/", _FOLDER)
    try:
        while remaining:
            name = remaining.pop(0)
            try:
                entry = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                if not make:
                    raise
                os.mkdir(name, 0o755, dir_fd=folder)
                entry = os.stat(name, dir_fd=folder, follow_symlinks=False)
            trusted = trusted and not _replaceable(os.fstat(folder), entry)
            if stat.S_ISLNK(entry.st_mode):
                links += 1
                _want_followable(parts, [*walked, name], entry, links, trusted=trusted)
                target = os.readlink(name, dir_fd=folder)
                remaining = [part for part in target.split("/") if part not in {"", "."}] + remaining
                if target.startswith("/"):
                    os.close(folder)
                    folder, walked = os.open("/", _FOLDER), []
                continue
            subfolder = os.open(name, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder, walked = subfolder, [*walked, name]
    except BaseException:
        os.close(folder)
        raise
    return folder, trusted


def _replaceable(folder: os.stat_result, entry: os.stat_result | None) -> bool:
    """Whether an account other than root and this one can replace an entry, or create a missing one."""
    trusted_uids = {0, os.geteuid()}
    if folder.st_uid not in trusted_uids:
        return True
    if not folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return False
    # In a sticky folder only the owner of the entry can.
    return entry is None or not folder.st_mode & stat.S_ISVTX or entry.st_uid not in trusted_uids


def _want_followable(
    parts: list[str], walked: list[str], entry: os.stat_result, links: int, *, trusted: bool
) -> None:
    if not trusted:
        raise UnsafePathError(_link("/" + "/".join(walked), entry))
    if links > _MOST_LINKS:
        path = "/" + "/".join(parts)
        raise UnsafePathError(f"{path}: too many symbolic links; next: namei {path}")


def _want_file(dest: str, status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise UnsafePathError(_link(dest, status))
    if not stat.S_ISREG(status.st_mode):
        raise UnsafePathError(f"{dest} is no file, and {_owner(status)} may have made it; next: rm -r {dest}")


def _link(path: str, status: os.stat_result) -> str:
    return f"{path} is a symbolic link that {_owner(status)} could have made; next: rm {path}"


def _owner(status: os.stat_result) -> str:
    try:
        return pwd.getpwuid(status.st_uid).pw_name
    except KeyError:
        return f"uid {status.st_uid}"
