"""Ctrl-C, SIGTERM and a terminal that is closed end a run at its next step at the latest."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Any

_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """Has signals raise KeyboardInterrupt while it is entered, and remembers that one came.

    Python drops an exception that is raised within a finalizer or a callback of a library
    (https://docs.python.org/3/library/signal.html#handlers-and-exceptions): what was remembered is raised
    again by `check`.
    """

    def __init__(self) -> None:
        self._came = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interruption:
        # nohup has the terminal's ignored, and so it stays.
        ends = [one for one in _ENDS if signal.getsignal(one) != signal.SIG_IGN]
        self._before = {one: signal.signal(one, self._interrupt) for one in ends}
        return self

    def __exit__(self, *_: object) -> None:
        for one, handler in self._before.items():
            signal.signal(one, handler)

    def check(self) -> None:
        """Raise KeyboardInterrupt where a signal came, but not again in what puts things back after it."""
        if self._came and not isinstance(sys.exc_info()[1], KeyboardInterrupt):
            raise KeyboardInterrupt

    def _interrupt(self, _: int, __: FrameType | None) -> None:
        self._came = True
        raise KeyboardInterrupt
