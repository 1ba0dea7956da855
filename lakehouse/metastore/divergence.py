"""Changes that only one of two metastores has, or may have: a file to which a line is added for each."""

from __future__ import annotations

import base64
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from hive_metastore import ThriftHiveMetastore
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.Thrift import TException
from thrift.transport.TTransport import TMemoryBuffer

from lakehouse.errors import LakehouseError
from lakehouse.metastore import about

# What is said of a metastore that has made a change.
DONE = "done"


@dataclass(frozen=True)
class Divergence:
    """A change, and how it ended in each metastore: DONE, or why it is not known to be."""

    method: str
    arguments: tuple[Any, ...]
    primary: str
    secondary: str
    at: str = ""


class DivergenceLog:
    """A file of divergences, one JSON object a line; each is on the disk when `add` returns.

    Arguments are kept as Thrift writes them, so that what was missed can be done again:

        for one in DivergenceLog(path):
            secondary.call(one.method, *one.arguments)
    """

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        """Name the file, which the first divergence makes; its folder is there."""
        self.path, self._now = path, now
        self._lock = threading.Lock()

    def add(self, one: Divergence) -> None:
        """Write one down; OSError where that cannot be."""
        said = {
            "at": datetime.fromtimestamp(self._now(), UTC).isoformat(),
            "method": one.method,
            "about": sorted(map(str, about.changed(one.method, one.arguments))),
            "primary": one.primary,
            "secondary": one.secondary,
            "arguments": _written(one.method, one.arguments),
        }
        # Escaped, so that no text of a name or a message ends the line, for whatever reads it.
        line = f"{json.dumps(said)}\n".encode("ascii")
        with self._lock, self.path.open("a+b") as file:
            # What was begun when the machine stopped must not take the next one with it.
            if file.tell() and not _ends(file):
                file.write(b"\n")
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    def __iter__(self) -> Iterator[Divergence]:
        """Give all of them, the oldest first; LakehouseError at a line that is damaged."""
        try:
            # `splitlines` would end a line at U+2028 and others, which JSON leaves as they are.
            lines = self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return
        if not lines[-1]:
            lines.pop()
        for number, line in enumerate(lines, 1):
            try:
                said = json.loads(line)
                arguments = _read(said["method"], said["arguments"])
                yield Divergence(said["method"], arguments, said["primary"], said["secondary"], said["at"])
            except (ValueError, LookupError, TypeError, AttributeError, EOFError, TException):
                raise LakehouseError(
                    f"{self.path}: line {number} is damaged", f"sed -n {number}p {self.path}"
                ) from None


def _ends(file: BinaryIO) -> bool:
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


def _written(method: str, arguments: tuple[Any, ...]) -> str:
    buffer = TMemoryBuffer()
    getattr(ThriftHiveMetastore, f"{method}_args")(*arguments).write(TBinaryProtocolAccelerated(buffer))
    return base64.b64encode(buffer.getvalue()).decode()


def _read(method: str, text: str) -> tuple[Any, ...]:
    made = getattr(ThriftHiveMetastore, f"{method}_args")()
    made.read(TBinaryProtocolAccelerated(TMemoryBuffer(base64.b64decode(text, validate=True))))
    # A place of the specification is empty where a number of a field is not used.
    return tuple(getattr(made, field[2]) for field in made.thrift_spec if field)
