"""Two metastores that are to hold the same: who is read, who is written, and what is told of the rest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hive_metastore import ttypes

from lakehouse.errors import LakehouseError, UsageError
from lakehouse.metastore import (
    Cached,
    DeadlineError,
    DivergedError,
    DivergenceLog,
    Metastore,
    Mode,
    Options,
    OutcomeError,
    Pair,
    Stale,
    UnavailableError,
)
from lakehouse.metastore.divergence import DONE, Divergence
from tests.unit import patience
from tests.unit.metastore_fake import Catalog, Fake

FAST = Options(rounds=1)
# By itself it ends nothing: the deadline of a call has to.
ENDLESS = Options(rounds=1, total=patience.LONGER, connect=patience.LONGER, read=patience.LONGER)
BOTH = Mode.PRIMARY_SECONDARY_FAILURE
UP, PRIMARY_DOWN, SECONDARY_DOWN = "both up", "primary down", "secondary down"
OK, DOWN, HALF = "ok", UnavailableError, DivergedError
# Mode, who is down, how a read and a write end, the writes that reach each of them, the lines in the log.
CASES = [
    (Mode.PRIMARY_ONLY, UP, OK, OK, (1, 0), 0),
    (Mode.PRIMARY_ONLY, PRIMARY_DOWN, DOWN, DOWN, (0, 0), 0),
    (Mode.PRIMARY_ONLY, SECONDARY_DOWN, OK, OK, (1, 0), 0),
    (Mode.SECONDARY_ONLY, UP, OK, OK, (0, 1), 0),
    (Mode.SECONDARY_ONLY, PRIMARY_DOWN, OK, OK, (0, 1), 0),
    (Mode.SECONDARY_ONLY, SECONDARY_DOWN, DOWN, DOWN, (0, 0), 0),
    (Mode.PRIMARY_SECONDARY_SUCCESS, UP, OK, OK, (1, 1), 0),
    (Mode.PRIMARY_SECONDARY_SUCCESS, PRIMARY_DOWN, DOWN, DOWN, (0, 0), 0),
    (Mode.PRIMARY_SECONDARY_SUCCESS, SECONDARY_DOWN, OK, HALF, (1, 0), 1),
    (Mode.PRIMARY_SECONDARY_FAILURE, UP, OK, OK, (1, 1), 0),
    (Mode.PRIMARY_SECONDARY_FAILURE, PRIMARY_DOWN, DOWN, DOWN, (0, 0), 0),
    (Mode.PRIMARY_SECONDARY_FAILURE, SECONDARY_DOWN, OK, OK, (1, 0), 1),
    (Mode.SECONDARY_PRIMARY_SUCCESS, UP, OK, OK, (1, 1), 0),
    (Mode.SECONDARY_PRIMARY_SUCCESS, PRIMARY_DOWN, OK, HALF, (0, 1), 1),
    (Mode.SECONDARY_PRIMARY_SUCCESS, SECONDARY_DOWN, DOWN, DOWN, (0, 0), 0),
    (Mode.SECONDARY_PRIMARY_FAILURE, UP, OK, OK, (1, 1), 0),
    (Mode.SECONDARY_PRIMARY_FAILURE, PRIMARY_DOWN, OK, OK, (0, 1), 1),
    (Mode.SECONDARY_PRIMARY_FAILURE, SECONDARY_DOWN, DOWN, DOWN, (0, 0), 0),
]


@pytest.fixture
def log(tmp_path: Path) -> DivergenceLog:
    return DivergenceLog(tmp_path / "divergence.jsonl", lambda: 1_800_000_000.0)


@contextmanager
def paired(one: Fake, two: Fake, mode: Mode, log: DivergenceLog, options: Options = FAST) -> Iterator[Pair]:
    with Pair(Metastore(one.uri, options), Metastore(two.uri, options), mode, log) as pair:
        yield pair


def table(comment: str) -> ttypes.Table:
    return ttypes.Table(dbName="d", tableName="t", parameters={"comment": comment})


def alter(pair: Pair, comment: str = "new") -> None:
    pair.call("alter_table", "d", "t", table(comment))


class TestModes:
    @pytest.mark.parametrize(("mode", "down", "read", "write", "writes", "lines"), CASES)
    def test_each_mode_reads_and_writes_as_its_name_says(  # noqa: PLR0913, PLR0917 -- a row of the table
        self,
        log: DivergenceLog,
        mode: Mode,
        down: str,
        read: object,
        write: object,
        writes: tuple[int, int],
        lines: int,
    ) -> None:
        with Fake() as one, Fake() as two, paired(one, two, mode, log) as pair:
            if down != UP:
                (one if down == PRIMARY_DOWN else two).stop()
            for expected, call in ((read, lambda: pair.table("d", "t")), (write, lambda: alter(pair))):
                if expected == OK:
                    call()
                else:
                    with pytest.raises(LakehouseError) as error:
                        call()
                    assert error.type is expected
            assert (one.seen["alter_table"], two.seen["alter_table"]) == writes
            reads = (one.seen["get_table_req"], two.seen["get_table_req"])
            first = mode.value.first == "primary"
            assert reads == ((int(read == OK), 0) if first else (0, int(read == OK)))
        assert len(list(log)) == lines

    def test_every_mode_is_in_the_table(self) -> None:
        assert [(mode, down) for mode, down, *_ in CASES] == [
            (mode, down) for mode in Mode for down in (UP, PRIMARY_DOWN, SECONDARY_DOWN)
        ]

    def test_two_that_are_written_to_need_a_log(self) -> None:
        with pytest.raises(UsageError, match="needs a divergence log"):
            Pair(Metastore("thrift://a"), Metastore("thrift://b"), BOTH)

    def test_locks_are_those_of_the_metastore_that_is_read(self, log: DivergenceLog) -> None:
        with Fake() as one, Fake() as two, paired(one, two, BOTH, log) as pair:
            pair.call("unlock", ttypes.UnlockRequest(lockid=7))
            assert (one.seen["unlock"], two.seen["unlock"]) == (1, 0)

    def test_both_together_wait_no_longer_than_one_call_may(self, log: DivergenceLog) -> None:
        with (
            patience.kept(),
            Fake() as one,
            Fake(silent=True) as two,
            paired(one, two, BOTH, log, ENDLESS) as pair,
        ):
            pair.call("alter_table", "d", "t", table("new"), seconds=2)
        assert [entry.primary for entry in log] == [DONE]


class TestLog:
    def test_what_was_missed_can_be_done_again(self, log: DivergenceLog) -> None:
        with Fake() as one, Fake(without={"alter_table"}) as two, paired(one, two, BOTH, log) as pair:
            alter(pair, "first")
            alter(pair, "second")
        assert [(entry.primary, entry.secondary.split(":")[0]) for entry in log] == [
            (DONE, "UnsupportedError")
        ] * 2
        with Fake() as fake, Metastore(fake.uri, FAST) as secondary:
            for entry in log:
                secondary.call(entry.method, *entry.arguments)
            assert (fake.seen["alter_table"], fake.catalog.comment) == (2, "second")

    def test_a_line_is_for_people_too(self, log: DivergenceLog) -> None:
        with Fake() as one, Fake(without={"alter_table"}) as two, paired(one, two, BOTH, log) as pair:
            alter(pair)
        said = json.loads(log.path.read_text(encoding="utf-8"))
        del said["arguments"]
        assert said == {
            "at": "2027-01-15T08:00:00+00:00",
            "method": "alter_table",
            "about": ["d.t"],
            "primary": "done",
            "secondary": f"UnsupportedError: {two.uri} knows no alter_table",
        }

    def test_a_change_that_may_be_done_in_the_first_alone_is_in_it(self, log: DivergenceLog) -> None:
        with Fake(cut={"alter_table"}) as one, Fake() as two, paired(one, two, BOTH, log) as pair:
            with pytest.raises(OutcomeError):
                alter(pair)
            assert two.seen["alter_table"] == 0
        [entry] = log
        assert entry.primary.startswith("may be done: ")
        assert entry.secondary == "not sent"

    def test_so_is_one_that_could_not_be_read_back(self, log: DivergenceLog) -> None:
        with Fake(cut={"alter_table"}) as one, Fake() as two, paired(one, two, BOTH, log) as pair:

            def applied() -> bool:
                one.stop()
                return bool(pair.table("d", "t").parameters["comment"] == "new")

            with pytest.raises(OutcomeError, match="could not be read back"):
                pair.call("alter_table", "d", "t", table("new"), applied=applied)
            assert (one.catalog.comment, two.catalog.comment) == ("new", "")
        [entry] = log
        assert "could not be read back" in entry.primary
        assert entry.secondary == "not sent"

    @pytest.mark.parametrize("at_the_first", [True, False])
    def test_so_is_one_that_was_interrupted(self, log: DivergenceLog, *, at_the_first: bool) -> None:
        class Interrupted(Metastore):
            def call(self, *_: Any, **__: Any) -> None:
                raise KeyboardInterrupt

        with Fake() as fake, Metastore(fake.uri, FAST) as one, Interrupted(fake.uri) as two:
            first, then = (two, one) if at_the_first else (one, two)
            pair = Pair(first, then, BOTH, log)
            with pytest.raises(KeyboardInterrupt):
                alter(pair)
            assert fake.seen["alter_table"] == (0 if at_the_first else 1)
        [entry] = log
        assert entry.primary == ("may be done: KeyboardInterrupt" if at_the_first else DONE)

    def test_an_unknown_outcome_that_cannot_be_written_down_stays_one(self, tmp_path: Path) -> None:
        log = DivergenceLog(tmp_path / "no folder" / "log")
        unwritten = pytest.raises(OutcomeError, match=r"may be done.* cannot be written")
        with Fake(cut={"alter_table"}) as one, Fake() as two, paired(one, two, BOTH, log) as pair, unwritten:
            alter(pair)

    @pytest.mark.parametrize(
        "letters", ["\u2028", "\u2029", "\x85", "\x0b\x0c\x1c\x1d\x1e", "\r\n", "\udc80", "ü"]
    )
    def test_any_text_is_one_line(self, log: DivergenceLog, letters: str) -> None:
        said = f"before{letters}after"
        for _ in range(2):
            log.add(Divergence("alter_table", ("d", "t", table("new")), f"may be done: {said}", said))
        lines = log.path.read_text(encoding="ascii").splitlines()
        assert len(lines) == 2
        assert [(one.primary, one.secondary) for one in log] == [(f"may be done: {said}", said)] * 2

    def test_a_log_of_before_is_read_too(self, log: DivergenceLog) -> None:
        """Texts were once written as they are."""
        log.add(Divergence("alter_table", ("d", "t", table("new")), DONE, "before\u2028\x85after"))
        said = json.loads(log.path.read_text(encoding="utf-8"))
        log.path.write_text(f"{json.dumps(said, ensure_ascii=False)}\n" * 2, encoding="utf-8")
        assert [one.secondary for one in log] == ["before\u2028\x85after"] * 2

    @pytest.mark.parametrize("line", [b"\xff\n", b"\n", b"[]\n", b"7\n", b'{"method": "no_such"}\n'])
    def test_a_damaged_line_is_named(self, log: DivergenceLog, line: bytes) -> None:
        log.add(Divergence("alter_table", ("d", "t", table("new")), DONE, "no"))
        log.path.write_bytes(log.path.read_bytes() + line)
        with pytest.raises(LakehouseError, match="line 2 is damaged"):
            list(log)

    def test_an_empty_log_has_no_line(self, log: DivergenceLog) -> None:
        log.path.touch()
        assert not list(log)

    def test_a_refusal_of_the_first_is_no_divergence(self, log: DivergenceLog) -> None:
        with Fake() as one, Fake() as two, paired(one, two, BOTH, log) as pair:
            one.catalog.refuses = True
            with pytest.raises(ttypes.InvalidOperationException):
                alter(pair)
            assert two.seen["alter_table"] == 0
        assert not list(log)

    def test_a_change_that_cannot_be_written_down_is_no_success(self, tmp_path: Path) -> None:
        log = DivergenceLog(tmp_path / "no folder" / "log")
        unwritten = pytest.raises(DivergedError, match=r"primary done, secondary .* cannot be written")
        with (
            Fake() as one,
            Fake(without={"alter_table"}) as two,
            paired(one, two, BOTH, log) as pair,
            unwritten,
        ):
            alter(pair)

    def test_a_line_that_was_cut_off_is_told_and_takes_no_other_with_it(self, log: DivergenceLog) -> None:
        with Fake() as one, Fake(without={"alter_table"}) as two, paired(one, two, BOTH, log) as pair:
            alter(pair, "first")
            whole = log.path.read_bytes()
            log.path.write_bytes(whole + whole[:20])
            alter(pair, "second")
        given = iter(log)
        assert next(given).arguments[2].parameters == {"comment": "first"}
        with pytest.raises(LakehouseError, match="line 2 is damaged"):
            next(given)
        lines = log.path.read_bytes().splitlines(keepends=True)
        log.path.write_bytes(lines[0] + lines[2])
        assert [entry.arguments[2].parameters["comment"] for entry in log] == ["first", "second"]


class TestFailover:
    def test_the_other_one_answers_on_request_and_its_answer_is_marked(self, log: DivergenceLog) -> None:
        with Fake() as one, Fake() as two, paired(one, two, BOTH, log) as pair:
            two.catalog.comment = "of the second"
            one.stop()
            reply = pair.ask("get_table", "d", "t", stale=Stale(secondary=True))
            assert (reply.value.parameters["comment"], reply.stale_possible) == ("of the second", True)
            assert reply.why.startswith("the primary metastore does not answer: ")
            for taken in (None, Stale(age_s=60)):
                with pytest.raises(UnavailableError):
                    pair.ask("get_table", "d", "t", stale=taken)
            two.stop()
            with pytest.raises(UnavailableError, match="nor does the secondary one"):
                pair.ask("get_table", "d", "t", stale=Stale(secondary=True))

    def test_the_first_answers_where_it_can_and_a_refusal_is_an_answer(self, log: DivergenceLog) -> None:
        with Fake() as one, Fake() as two, paired(one, two, BOTH, log) as pair:
            assert not pair.ask("get_table", "d", "t", stale=Stale(secondary=True)).stale_possible
            with pytest.raises(ttypes.NoSuchObjectException):
                pair.ask("get_table", "d", "nobody", stale=Stale(secondary=True))
            assert two.connections == 0

    def test_a_silent_first_one_leaves_time_for_the_other(self, log: DivergenceLog) -> None:
        with (
            patience.kept(),
            Fake(silent=True) as one,
            Fake() as two,
            paired(one, two, BOTH, log, ENDLESS) as pair,
        ):
            reply = pair.ask("get_table", "d", "t", seconds=4, stale=Stale(secondary=True))
            assert reply.stale_possible
            with pytest.raises(DeadlineError):
                pair.ask("get_table", "d", "t", seconds=0.3)

    def test_it_is_not_kept_as_if_it_were_fresh(self, log: DivergenceLog) -> None:
        with Fake() as one, Fake(Catalog()) as two, paired(one, two, BOTH, log) as pair:
            one.stop()
            with Cached(pair) as client:
                assert client.ask("get_table", "d", "t", stale=Stale(secondary=True)).stale_possible
                with pytest.raises(UnavailableError):
                    client.table("d", "t")
