"""Report the fields of a commit that Thrift cannot hold, and clients cannot see."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock


class UnsupportedFields:
    """Reports each field that Thrift cannot hold once."""

    def __init__(self, report: Callable[[str], object]) -> None:
        self._report = report
        self._reported: set[tuple[str, str]] = set()
        self._lock = Lock()

    def __call__(self, name: str, field: str) -> None:
        """Report a field of an object, unless it was reported before."""
        with self._lock:
            if (name, field) in self._reported:
                return
            self._reported.add((name, field))
        self._report(f"DEGRADED catalog.left_out {name}: {field}: Thrift has no place for it")
