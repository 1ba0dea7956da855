"""How long a test waits for an answer that must come: on a busy machine one takes many times as long."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS = 60.0
# For a limit that must not be the one that ends what is tested.
LONGER = 10 * SECONDS


@contextmanager
def kept() -> Iterator[None]:
    """AssertionError where the block ends by a limit of `LONGER` seconds, and not by one of its own."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < SECONDS
