"""Ctrl-C ends a program wherever it comes."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable

import pytest

from lakehouse.interruption import raised, terminated
from tests.unit import patience


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


class Finalized:
    """Interrupted in its finalizer, or in what that calls."""

    def __init__(self, finalize: Callable[[], None]) -> None:
        self.finalize = finalize

    def __del__(self) -> None:
        self.finalize()


class Entered:
    """Interrupted while it is left; `done` when it was."""

    done = False

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        signal.raise_signal(signal.SIGINT)
        self.done = True


def after(work: Callable[[], object]) -> None:
    """Do something that is interrupted, and wait for what comes of it."""
    with raised(KeyboardInterrupt, [signal.SIGINT]):
        work()
        until = time.monotonic() + patience.SECONDS
        while time.monotonic() < until:
            time.sleep(0.001)
    pytest.fail(f"nothing was raised in {patience.SECONDS} s")


@pytest.fixture
def dropped(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What Python says that it drops."""
    found: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda said: found.append(said.exc_value))
    return found


def test_it_is_raised_where_it_comes() -> None:
    with pytest.raises(KeyboardInterrupt):
        after(interrupt)


def test_it_is_raised_behind_a_finalizer(dropped: list[object]) -> None:
    with pytest.raises(KeyboardInterrupt):
        after(lambda: Finalized(interrupt))
    assert dropped == []


def test_what_is_being_left_is_left_first() -> None:
    entered = Entered()

    def enter() -> None:
        with entered:
            pass

    with pytest.raises(KeyboardInterrupt):
        after(enter)
    assert entered.done


def test_what_is_ignored_stays_so_and_handlers_are_put_back() -> None:
    def end() -> None:
        with raised(terminated, [signal.SIGHUP, signal.SIGTERM]):
            signal.raise_signal(signal.SIGHUP)
            signal.raise_signal(signal.SIGTERM)

    ignored, before = signal.signal(signal.SIGHUP, signal.SIG_IGN), signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit) as ended:
            end()
        assert ended.value.code == 143
        assert signal.getsignal(signal.SIGTERM) == before
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, ignored)
