"""A compressed archive that only its owner reads, and that never grows beyond its limit."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ops.bundle.collector import bounded
from plugins.module_utils.lakehouse.counting import counted

# For a member's head and its padding, and for the list at the end with what closes the archive.
_HEAD, _LIST = 2048, 1 << 16
CONTENTS = "contents.json"


class Archive:
    """What is added while there is room, by several threads; what was cut is listed."""

    def __init__(self, path: Path, limit: int) -> None:
        self._stream = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        # Ended by `close`.
        self._packed = gzip.GzipFile(fileobj=self._stream, mode="wb", compresslevel=6)
        self._tar = tarfile.open(fileobj=self._packed, mode="w|")  # noqa: SIM115 -- as above
        self._limit, self._lock = limit - _LIST, threading.Lock()
        self._top = path.name.partition(".")[0]
        self.cut: dict[str, str] = {}

    def add(self, name: str, text: str) -> None:
        """Add a text, or of its end as much as fits."""
        data = text.encode()
        with self._lock:
            # Text that cannot be compressed needs its own size, and a little for each block.
            room = int((self._limit - self._stream.tell() - _HEAD) * 0.999)
            kept = bounded(data, max(room, 0), end=True) if len(data) > room else data
            self.note(name, len(data), len(kept))
            if kept or not data:
                self._write(name, kept)

    def note(self, name: str, size: int, kept: int) -> None:
        """List what another command has cut."""
        if size > kept:
            self.cut.setdefault(name, f"{kept} of {counted(size, 'byte')}")

    def close(self, contents: dict[str, object]) -> None:
        """Add the list of what is there and what was cut, and end the archive."""
        self._write(CONTENTS, json.dumps(contents | {"cut": self.cut}, indent=2).encode())
        self._tar.close()
        self._packed.close()
        self._stream.close()

    def _write(self, name: str, data: bytes) -> None:
        member = tarfile.TarInfo(f"{self._top}/{name}")
        member.size, member.mtime, member.mode = len(data), int(time.time()), 0o600
        self._tar.addfile(member, io.BytesIO(data))
        # So that what the stream tells is all that there is.
        self._packed.flush()


@contextmanager
def written(path: Path, limit: int) -> Iterator[Archive]:
    """Give an archive of at most so many bytes; there is a file of that name only if all went well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    try:
        yield Archive(part, limit)
        part.rename(path)
    finally:
        part.unlink(missing_ok=True)
