"""What this computer has read of a cache, kept outside of it: a file of the cache cannot vouch for another.

A seal is a sha256 and how the file looked when it was read. The time of the last change of an inode cannot be
set, so neither an altered file nor a copied one looks like its seal, and a cache from elsewhere has none.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

PRIVATE = 0o700


class Look(NamedTuple):
    """What a file looks like from outside."""

    inode: int
    size: int
    modified_ns: int
    changed_ns: int


class Seal(NamedTuple):
    """The sha256 of a file that looks like this."""

    look: Look
    sha256: str


def look(file: Path) -> Look:
    """Look at a file without reading it; before it is read, so that what is written meanwhile shows."""
    stat = file.stat()
    return Look(stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)


def sha256_of(file: Path) -> str:
    """Read a file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class Seals:
    """The seals of one folder by the path below it: a file per folder in the user's state directory."""

    def __init__(self, root: Path) -> None:
        self._root = root
        state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "lakehouse"
        self._file = state / f"cache-{hashlib.sha256(bytes(root.resolve())).hexdigest()[:16]}.json"

    def known(self) -> dict[str, Seal]:
        """Return all seals; an unreadable file has none."""
        try:
            entries = json.loads(self._file.read_text("utf-8"))
            return {key: Seal(Look(*look), sha256) for key, (look, sha256) in entries.items()}
        except (OSError, ValueError, AttributeError, TypeError):
            return {}  # they only save time: without them every file is read once

    def sha256(self, file: Path) -> str | None:
        """The sha256 of a file that looks as it did when it was read or written; None if unknown."""
        seal = self.known().get(self.key(file))
        with suppress(FileNotFoundError):
            if seal and seal.look == look(file):
                return seal.sha256
        return None

    def key(self, file: Path) -> str:
        """The name of a file's seal."""
        return file.relative_to(self._root).as_posix()

    def add(self, changes: Mapping[str, Seal]) -> None:
        """Add seals to those that are there; other processes may do so at the same time."""
        if not changes:
            return
        # Where the state cannot be kept, every run reads what it uses.
        with suppress(OSError):
            self._file.parent.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
            with self._file.with_suffix(".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                temporary = self._file.with_suffix(".part")
                text = json.dumps({**self.known(), **changes}, indent=0, sort_keys=True)
                temporary.write_text(text, encoding="utf-8")
                temporary.replace(self._file)
