"""What others change is forgotten by the notification log, and what is missing in it is never passed over."""

from __future__ import annotations

import base64
import gzip
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from hive_metastore import ttypes

from lakehouse.metastore import (
    Cached,
    DeadlineError,
    Follower,
    Limits,
    Look,
    Metastore,
    Options,
    UnsupportedError,
)
from lakehouse.metastore import events as read
from lakehouse.metastore.about import EVERYTHING, Name
from tests.unit import patience
from tests.unit.metastore_fake import Fake

# By itself it ends nothing: the deadline of a look has to.
ENDLESS = Options(rounds=1, total=patience.LONGER, connect=patience.LONGER, read=patience.LONGER)
LONG = Limits(ttl=3600)


@dataclass
class Followed:
    """A metastore, a cache before it, and who follows its log."""

    fake: Fake
    cache: Cached
    follower: Follower
    cursor: Path

    def comment(self) -> str:
        return str(self.cache.table("d", "t").parameters["comment"])

    def elsewhere(self, comment: str) -> None:
        """Change the table as another client does."""
        self.fake.catalog.comment = comment
        self.fake.catalog.happens("ALTER_TABLE", message=message("t"))

    def purge(self) -> None:
        """Throw the log away, as the metastore does with what is old."""
        self.fake.catalog.events.clear()


@contextmanager
def followed(cursor: Path, fake: Fake) -> Iterator[Followed]:
    with fake, Cached(Metastore(fake.uri, ENDLESS), LONG) as cache:
        yield Followed(fake, cache, Follower(cache, cursor), cursor)


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Followed]:
    """One that has looked once, and has a table in its cache."""
    with followed(tmp_path / "cursor", Fake()) as one:
        one.fake.catalog.newest = 40
        one.follower.look()
        one.comment()
        yield one


def message(table: str, database: str = "d") -> str:
    return json.dumps({"tableObjBeforeJson": json.dumps({"1": {"str": table}, "2": {"str": database}})})


def test_what_another_client_has_changed_is_seen_after_the_next_look(here: Followed) -> None:
    here.elsewhere("new")
    assert here.comment() == ""
    assert here.follower.look() == Look(cursor=41, events=1)
    assert here.comment() == "new"


def test_another_table_stays(here: Followed) -> None:
    here.cache.table("d", "other")
    before = here.fake.seen["get_table_req"]
    here.elsewhere("new")
    here.follower.look()
    here.cache.table("d", "other")
    assert here.fake.seen["get_table_req"] == before


def test_more_events_than_one_answer_holds_are_all_read(here: Followed) -> None:
    for _ in range(2500):
        here.fake.catalog.happens("INSERT", table="other")
    here.elsewhere("new")
    assert here.follower.look() == Look(cursor=2541, events=2501)
    assert here.comment() == "new"


def test_the_first_look_knows_nothing_of_what_was_before(tmp_path: Path) -> None:
    with followed(tmp_path / "cursor", Fake()) as one:
        one.fake.catalog.newest = 40
        one.comment()
        one.fake.catalog.comment = "new"
        look = one.follower.look()
        assert (look.cursor, look.gap) == (40, "nothing is known of what was before")
        assert one.comment() == "new"


def test_the_next_process_goes_on_where_this_one_ended(here: Followed) -> None:
    here.elsewhere("new")
    here.follower.look()
    here.elsewhere("newer")
    assert Follower(here.cache, here.cursor).look() == Look(cursor=42, events=1)


class TestGaps:
    def test_a_log_that_was_thrown_away_is_told_and_everything_forgotten(self, here: Followed) -> None:
        here.elsewhere("new")
        here.purge()
        assert here.follower.look() == Look(cursor=41, gap="events 41 to 41 are gone")
        assert here.comment() == "new"
        assert here.follower.look() == Look(cursor=41)

    def test_so_is_one_of_which_the_first_part_was_thrown_away(self, here: Followed) -> None:
        here.elsewhere("new")
        here.purge()
        here.fake.catalog.happens("INSERT", table="other")
        assert here.follower.look() == Look(cursor=42, gap="events 41 to 41 are gone")
        assert here.comment() == "new"

    def test_so_is_the_log_of_another_database(self, here: Followed) -> None:
        here.fake.catalog.newest, here.fake.catalog.comment = 3, "new"
        look = here.follower.look()
        assert (look.cursor, look.gap[:26]) == (3, "the log ends at event 3, b")
        assert here.comment() == "new"

    def test_so_is_a_cursor_that_cannot_be_read(self, here: Followed) -> None:
        here.cursor.write_text("", encoding="ascii")
        assert here.follower.look().gap == f"{here.cursor} has no number of an event"

    def test_a_metastore_that_writes_no_log_is_told(self, tmp_path: Path) -> None:
        fake = Fake()
        fake.catalog.listeners = "org.example.Guard"
        with followed(tmp_path / "cursor", fake) as one, pytest.raises(UnsupportedError, match="writes no"):
            one.follower.look()


class TestThread:
    def test_it_looks_until_it_is_closed(self, here: Followed) -> None:
        looks: list[Look] = []
        with Follower(here.cache, here.cursor, every=0.01, report=looks.append):
            here.elsewhere("new")
            until = time.monotonic() + patience.SECONDS
            while here.comment() != "new":
                assert time.monotonic() < until, looks
            thread = next(one for one in threading.enumerate() if one.name == "metastore-events")
            assert thread.daemon
        thread.join(patience.SECONDS)
        assert not thread.is_alive()

    def test_it_tells_what_keeps_it_from_the_log_and_goes_on(
        self, here: Followed, caplog: pytest.LogCaptureFixture
    ) -> None:
        here.fake.stop()
        with Follower(here.cache, here.cursor, every=0.01):
            until = time.monotonic() + patience.SECONDS
            while caplog.text.count("the notification log cannot be read") < 2:
                assert time.monotonic() < until, caplog.text
        assert here.fake.uri in caplog.text
        assert here.comment() == ""

    def test_a_look_ends_with_its_deadline(self, tmp_path: Path) -> None:
        silent = followed(tmp_path / "cursor", Fake(silent=True))
        with patience.kept(), silent as one, pytest.raises(DeadlineError):
            one.follower.look(seconds=0.3)


def event(kind: str, database: str | None, table: str | None, **more: str) -> ttypes.NotificationEvent:
    return ttypes.NotificationEvent(eventType=kind, dbName=database, tableName=table, **more)


ZIPPED = base64.b64encode(gzip.compress(message("Old", "E").encode())).decode()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (event("INSERT", "D", "T"), {Name("d", "t")}),
        (event("DROP_DATABASE", "d", None), {Name("d")}),
        (event("ALTER_TABLE", "d", "t", message=message("old")), {Name("d", "t"), Name("d", "old")}),
        (
            event("ALTER_TABLE", "d", "t", message=ZIPPED, messageFormat="gzip(json-2.0)"),
            {Name("d", "t"), Name("e", "old")},
        ),
        (event("ALTER_TABLE", "d", "t", message="{}"), {Name("d", "t"), EVERYTHING}),
        (event("ALTER_TABLE", "d", "t"), {Name("d", "t"), EVERYTHING}),
        (event("COMMIT_TXN", None, None), set()),
        (event("SOMETHING_NEW", None, None), {EVERYTHING}),
    ],
)
def test_an_event_is_about_what_it_says(given: ttypes.NotificationEvent, expected: set[Name]) -> None:
    assert read.changed(given) == expected
