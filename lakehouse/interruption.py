"""Signals that end a program raise an exception, and not where it would be dropped."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

_AGAIN_SECONDS = 0.002


@contextmanager
def raised(error: Callable[[], BaseException], ends: Iterable[signal.Signals]) -> Iterator[None]:
    """Have these signals raise an error meanwhile; one that is ignored, as behind nohup, stays so.

    Python drops what is raised within a finalizer (https://docs.python.org/3/reference/datamodel.html), and
    each of Ansible's templates has one: of Ctrl-C while they are evaluated, one in thirty was lost. There,
    the signal comes again a moment later. So it does within `__exit__`, which Ansible takes for a fault of
    its own where it was not completed.
    """

    def handle(_: int, frame: FrameType | None) -> None:
        names = list(_functions(frame))
        if "__del__" in names or names[:1] == ["__exit__"]:
            signal.signal(signal.SIGALRM, handle)
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)
        else:
            raise error()

    before = {one: signal.getsignal(one) for one in ends}
    heard = {one: handler for one, handler in before.items() if handler != signal.SIG_IGN}
    for one in heard:
        signal.signal(one, handle)
    try:
        yield
    finally:
        for one, handler in heard.items():
            signal.signal(one, handler)


def terminated() -> SystemExit:
    """Return what ends a program as SIGTERM does, but with everything put away."""
    return SystemExit(128 + signal.SIGTERM)


def _functions(frame: FrameType | None) -> Iterator[str]:
    """Yield the names of the functions that are being run, the innermost first."""
    while frame is not None:
        yield frame.f_code.co_name
        frame = frame.f_back
