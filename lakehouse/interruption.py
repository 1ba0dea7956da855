"""Raise an exception for signals that end a program, at a point where Python propagates it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

_AGAIN_SECONDS = 0.002


@contextmanager
def raised(error: Callable[[], BaseException], ends: Iterable[signal.Signals]) -> Iterator[None]:
    """Raise an error for these signals within the block; ignored signals, as under nohup, stay ignored.

    Python ignores exceptions in finalizers (https://docs.python.org/3/reference/datamodel.html), and each
    template of Ansible has one: one in thirty Ctrl-C during their evaluation was lost. There, and in
    `__exit__`, whose interruption Ansible reports as its own fault, a timer soon repeats the signal.
    """

    def handle(_: int, frame: FrameType | None) -> None:
        functions = list(_functions(frame))
        if "__del__" in functions or functions[:1] == ["__exit__"]:
            signal.signal(signal.SIGALRM, handle)
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)
        else:
            raise error()

    previous = {number: signal.getsignal(number) for number in ends}
    handled = {number: handler for number, handler in previous.items() if handler != signal.SIG_IGN}
    for number in handled:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in handled.items():
            signal.signal(number, handler)


def terminated() -> SystemExit:
    """Return what ends a program as SIGTERM does, but with everything put away."""
    return SystemExit(128 + signal.SIGTERM)


def _functions(frame: FrameType | None) -> Iterator[str]:
    """Yield the names of the functions that are being run, the innermost first."""
    while frame is not None:
        yield frame.f_code.co_name
        frame = frame.f_back
