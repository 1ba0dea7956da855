from __future__ import annotations

import pytest

from suites.testbed.waiting import wait_for
from tests.unit import patience


def test_the_first_true_answer_is_returned() -> None:
    answers = iter([0, "", "here"])
    assert wait_for("it", lambda: next(answers), seconds=patience.SECONDS, pause=0) == "here"


def test_expected_errors_mean_not_yet() -> None:
    answers = iter(["here"])
    refusals = iter([ConnectionRefusedError("port 1")])

    def ask() -> str:
        for refusal in refusals:
            raise refusal
        return next(answers)

    assert wait_for("it", ask, seconds=patience.SECONDS, pause=0, ignoring=(OSError,)) == "here"


def test_the_deadline_names_what_and_the_last_answer() -> None:
    def refuse() -> bool:
        raise ConnectionRefusedError("port 1")

    with pytest.raises(
        TimeoutError, match=r"the port: not within 0 s; last answer: ConnectionRefusedError: port 1"
    ):
        wait_for("the port", refuse, seconds=0, ignoring=(OSError,))


def test_other_errors_end_the_wait() -> None:
    with pytest.raises(ZeroDivisionError):
        wait_for("it", lambda: 1 // 0, seconds=patience.SECONDS, ignoring=(OSError,))
