"""Wait in tests: retry until a deadline, with the last answer in the error."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")


def wait_for(
    what: str,
    question: Callable[[], Answer],
    *,
    seconds: float,
    ignoring: tuple[type[Exception], ...] = (),
    pause: float = 0.1,
) -> Answer:
    """Retry the question until its answer is truthy, and return it.

    Exceptions of the types `ignoring` are retried, too. Raises TimeoutError after `seconds` with `what`, the
    condition, and the last answer.
    """
    deadline = time.monotonic() + seconds
    while True:
        last: str
        try:
            if answer := question():
                return answer
            last = repr(answer)
        except ignoring as error:
            last = f"{type(error).__name__}: {error}"
        if time.monotonic() >= deadline:
            raise TimeoutError(f"{what}: not within {seconds:g} s; last answer: {last}")
        time.sleep(pause)
