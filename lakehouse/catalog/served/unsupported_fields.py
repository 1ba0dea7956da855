"""What of a commit no client can see, since Thrift has no place for it."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock


class Told:
    """Says once what of the commit no client can see, since Thrift has no place for it."""

    def __init__(self, say: Callable[[str], object]) -> None:
        self._say = say
        self._known: set[tuple[str, str]] = set()
        self._lock = Lock()

    def __call__(self, name: str, field: str) -> None:
        """Say it, unless it was said."""
        with self._lock:
            if (name, field) in self._known:
                return
            self._known.add((name, field))
        self._say(f"DEGRADED catalog.left_out {name}: {field}: Thrift has no place for it")
