"""Locks between processes of this computer. The kernel takes one back from a process that ends."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable
from typing import IO, Any

_AGAIN_SECONDS = 0.1


def hold(file: IO[Any], seconds: float, waits: Callable[[], object] = lambda: None) -> bool:
    """Lock an open file against other processes until it is closed; tell whether that was had in time.

    `waits` is called once, where another process has it at first.
    """
    until, waiting = time.monotonic() + seconds, False
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                return False
        else:
            return True
        if not waiting:
            waits()
            waiting = True
        time.sleep(_AGAIN_SECONDS)
