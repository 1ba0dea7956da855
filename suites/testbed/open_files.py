"""A file that a client holds open for writing while something happens to the cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import SimpleQueue

from suites.testbed.namenode import NameNode, NameNodeError
from suites.testbed.waiting import wait_for

# Several packets: what is less waits in the writer for more.
_PIECE = bytes(1 << 18)
_SECONDS = 90


@contextmanager
def held_open(
    namenode: NameNode, path: str, user: str, address_of: Callable[[str], str], avoiding: str
) -> Iterator[Callable[[], None]]:
    """Write a file for the length of the block; what is yielded writes on, until every replica has more.

    The client that writes is a DataNode: not the one named `avoiding`, which may stop meanwhile. The file is
    closed when the block ends, and stays.
    """
    pieces: SimpleQueue[bytes | None] = SimpleQueue()
    written = 0

    def read() -> int:
        return len(namenode.read(path, user, address_of, avoiding))

    def write_on() -> None:
        nonlocal written
        pieces.put(_PIECE)
        wait_for(f"more of {path}", lambda: read() > written, seconds=_SECONDS, ignoring=(NameNodeError,))
        written = read()

    with ThreadPoolExecutor(1) as pool:
        body = iter(pieces.get, None)
        writer = pool.submit(namenode.create, path, user, address_of, body=body, avoiding=avoiding)
        try:
            yield write_on
        finally:
            pieces.put(None)
        writer.result(timeout=_SECONDS)
