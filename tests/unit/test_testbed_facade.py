"""What can be asked of any engine that runs statements."""

from __future__ import annotations

import pytest

from suites.matrix.cross.engines import Missing
from suites.testbed.engines import EngineError
from suites.testbed.engines.facade import Facade, Row

TWO: list[Row] = [(1,), (2,)]


class Answering(Facade):
    """Answers every statement with the same rows, or refuses it with the same words."""

    def __init__(self, rows: list[Row] | None = None, words: str = "") -> None:
        self.statements = []
        self.rows, self.words = rows or [], words

    def sql(self, statement: str) -> list[Row]:
        self.statements.append(statement)
        if self.words:
            raise EngineError("duck", statement, self.words)
        return self.rows


class Plain(Answering):
    """Raises what its client raises."""

    refusal = KeyError

    def sql(self, statement: str) -> list[Row]:
        raise KeyError(statement)


def test_an_engine_that_is_not_there_skips_who_asks_it() -> None:
    with pytest.raises(pytest.skip.Exception, match="flink is not deployed"):
        Missing("flink").value("SELECT 1")


def test_a_value_is_the_only_one() -> None:
    assert Answering([(7,)]).value("SELECT 7") == 7
    with pytest.raises(ValueError, match="unpack"):
        Answering(TWO).value("SELECT id")


def test_other_rows_fail_with_query_and_both_sides() -> None:
    Answering(TWO).expect("SELECT id", [(1,), (2,)])
    with pytest.raises(AssertionError, match=r"statement: SELECT id\nexpected:  \[\]\ngot:       \[\(1,\)"):
        Answering(TWO).expect("SELECT id", [])


def test_a_refusal_is_looked_for_in_what_the_engine_said() -> None:
    duck = Answering(words="no such table: t")
    duck.refuses("SELECT * FROM t", r"no such \w+")
    Plain().refuses("SELECT * FROM t", r"FROM t")
    assert duck.statements == ["SELECT * FROM t"]


@pytest.mark.parametrize(
    ("duck", "got"),
    [(Answering(TWO), r"\[\(1,\), \(2,\)\]"), (Answering(words="no such table"), "no such table")],
)
def test_rows_and_other_words_are_no_such_refusal(duck: Answering, got: str) -> None:
    with pytest.raises(pytest.fail.Exception, match=f"an error with 'SELECT'\ngot:       {got}$"):
        duck.refuses("SELECT * FROM t", "SELECT")
