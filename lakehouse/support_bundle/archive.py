"""A compressed archive with a size limit that only its owner can read."""

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

from lakehouse.support_bundle.collector import bounded
from plugins.module_utils.lakehouse.counting import counted

# Reserved for a member's header and padding, and for the list and the trailer at the end.
_HEAD, _LIST = 2048, 1 << 16
CONTENTS = "contents.json"


class Archive:
    """Several threads add texts up to the limit; truncated ones are listed."""

    def __init__(self, path: Path, limit: int) -> None:
        self._stream = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        # `close` closes both.
        self._gzip = gzip.GzipFile(fileobj=self._stream, mode="wb", compresslevel=6)
        self._tar = tarfile.open(fileobj=self._gzip, mode="w|")  # noqa: SIM115 -- as above
        self._limit, self._lock = limit - _LIST, threading.Lock()
        self._top = path.name.partition(".")[0]
        self.cut: dict[str, str] = {}

    def add(self, name: str, text: str) -> None:
        """Add a text, or as much of its end as fits."""
        data = text.encode()
        with self._lock:
            # Incompressible text needs its own size, and a little for each block.
            space = int((self._limit - self._stream.tell() - _HEAD) * 0.999)
            content = bounded(data, max(space, 0), end=True) if len(data) > space else data
            self.note(name, len(data), len(content))
            if content or not data:
                self._write(name, content)

    def note(self, name: str, size: int, stored: int) -> None:
        """List a truncated text."""
        if size > stored:
            self.cut.setdefault(name, f"{stored} of {counted(size, 'byte')}")

    def close(self, contents: dict[str, object]) -> None:
        """Add the list of contents and truncated texts, and close the archive."""
        self._write(CONTENTS, json.dumps(contents | {"cut": self.cut}, indent=2).encode())
        self._tar.close()
        self._gzip.close()
        self._stream.close()

    def _write(self, name: str, data: bytes) -> None:
        member = tarfile.TarInfo(f"{self._top}/{name}")
        member.size, member.mtime, member.mode = len(data), int(time.time()), 0o600
        self._tar.addfile(member, io.BytesIO(data))
        # The position of the stream is then the size of the archive.
        self._gzip.flush()


@contextmanager
def create(path: Path, limit: int) -> Iterator[Archive]:
    """Yield an archive of at most `limit` bytes; the file exists only after success."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial_file = path.with_name(f"{path.name}.part")
    try:
        yield Archive(partial_file, limit)
        partial_file.rename(path)
    finally:
        partial_file.unlink(missing_ok=True)
