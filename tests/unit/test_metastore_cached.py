"""What a cache keeps of a metastore's answers, for how long, and what takes it away."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from hive_metastore import ThriftHiveMetastore, ttypes
from prometheus_client.parser import text_string_to_metric_families

from lakehouse.metastore import Cached, Kind, Limits, Metastore, Options, Stale, UnavailableError, about
from tests.unit import patience
from tests.unit.metastore_fake import Catalog, Fake

FAST = Options(rounds=1)
LIMITS = Limits(ttl=60, refresh=0.5)


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def cached(fake: Fake, clock: Clock | None = None, limits: Limits = LIMITS) -> Iterator[Cached]:
    with Cached(Metastore(fake.uri, FAST), limits, clock=clock or Clock()) as client:
        yield client


def table(comment: str, name: str = "t") -> ttypes.Table:
    return ttypes.Table(dbName="d", tableName=name, parameters={"comment": comment})


def becomes(condition: Callable[[], object], what: str) -> None:
    """Wait until it is so, for a while."""
    until = time.monotonic() + patience.SECONDS
    while not condition():
        assert time.monotonic() < until, what
        threading.Event().wait(0.01)


def comment(client: Cached) -> str:
    return str(client.table("d", "t").parameters["comment"])


class TestKept:
    def test_the_second_time_nobody_is_asked(self) -> None:
        with Fake() as fake, cached(fake) as client:
            first = client.table("d", "t")
            before = fake.seen.total()
            assert client.table("d", "t") == first
            assert fake.seen.total() == before

    def test_after_its_time_it_is_asked_for_once(self) -> None:
        clock = Clock()
        with Fake() as fake, cached(fake, clock) as client:
            comment(client)
            fake.catalog.comment = "new"
            clock.now += LIMITS.ttl + 1
            assert [comment(client), comment(client)] == ["new", "new"]
            assert fake.seen["get_table_req"] == 2

    def test_it_says_how_old_it_is(self) -> None:
        clock = Clock()
        with Fake() as fake, cached(fake, clock) as client:
            client.table("d", "t")
            clock.now += 7
            reply = client.ask("get_table", "d", "t")
            assert (reply.age_s, reply.stale_possible) == (7.0, False)

    def test_what_is_asked_for_late_in_its_time_is_renewed_by_a_thread(self) -> None:
        clock = Clock()
        with Fake() as fake, cached(fake, clock) as client:
            comment(client)
            fake.catalog.comment = "new"
            clock.now += LIMITS.ttl * LIMITS.refresh
            assert comment(client) == ""
            becomes(lambda: comment(client) == "new", "the answer was not renewed")
            clock.now += LIMITS.ttl * LIMITS.refresh - 1
            assert client.ask("get_table", "d", "t").age_s < LIMITS.ttl * LIMITS.refresh
            assert fake.seen["get_table_req"] == 2

    def test_the_thread_ends_with_the_cache(self) -> None:
        clock = Clock()
        with Fake() as fake:
            with cached(fake, clock) as client:
                comment(client)
                clock.now += LIMITS.ttl * LIMITS.refresh
                comment(client)
                thread = next(one for one in threading.enumerate() if one.name == "metastore-cache")
                assert thread.daemon
            thread.join(patience.SECONDS)
            assert not thread.is_alive()

    def test_who_changes_what_was_given_changes_nothing_that_is_kept(self) -> None:
        with Fake() as fake, cached(fake) as client:
            for _ in range(3):
                found = client.table("d", "t")
                assert found.parameters == {"comment": ""}
                found.parameters["comment"] = "mine"

    def test_partitions_are_kept_one_by_one(self) -> None:
        with Fake(Catalog(count=9)) as fake, cached(fake) as client:
            client.partitions("d", "t", ["n=1", "n=2"])
            found = client.partitions("d", "t", ["n=3", "n=2", "n=1"])
            assert [one.values for one in found] == [["3"], ["2"], ["1"]]
            assert fake.catalog.asked == [["n=1", "n=2"], ["n=3"]]

    def test_lists_of_names_are_asked_for_each_time(self) -> None:
        with Fake() as fake, cached(fake) as client:
            for _ in range(2):
                client.tables("d")
                client.databases()
            assert (fake.seen["get_all_tables"], fake.seen["get_all_databases"]) == (2, 2)

    def test_each_kind_has_a_size_and_what_was_not_used_for_longest_goes(self) -> None:
        few = Limits(sizes={Kind.TABLE: 2, Kind.NAMES: 1})
        with Fake() as fake, cached(fake, limits=few) as client:
            for name in ("a", "b", "a", "c", "a", "b"):
                client.table("d", name)
                client.tables("d")
            assert (fake.seen["get_table_req"], fake.seen["get_all_tables"]) == (4, 1)

    def test_prometheus_reads_hits_and_misses(self) -> None:
        with Fake() as fake, cached(fake) as client:
            for _ in range(3):
                client.table("d", "t")
            samples = {
                (sample.name, sample.labels.get("kind"), sample.labels.get("end")): sample.value
                for family in text_string_to_metric_families(client.metrics())
                for sample in family.samples
            }
        assert samples["lakehouse_metastore_cache_total", "table", "hit"] == 2
        assert samples["lakehouse_metastore_cache_total", "table", "miss"] == 1


class TestChanged:
    def test_after_an_own_change_it_is_asked_for_once(self) -> None:
        with Fake() as fake, cached(fake) as client:
            comment(client)
            client.call("alter_table", "d", "t", table("new"))
            assert [comment(client), comment(client)] == ["new", "new"]
            assert fake.seen["get_table_req"] == 2

    def test_what_was_asked_for_before_a_change_and_answered_after_it_is_not_kept(self) -> None:
        with Fake() as fake, cached(fake) as client:
            fake.catalog.after_reading = lambda: client.call("alter_table", "d", "t", table("new"))
            assert comment(client) == ""
            assert comment(client) == "new"

    def test_a_change_that_failed_may_have_been_made(self) -> None:
        with Fake(cut={"alter_table"}) as fake, cached(fake) as client:
            comment(client)
            with pytest.raises(Exception, match="alter_table was sent, and may be done"):
                client.call("alter_table", "d", "t", table("new"))
            assert comment(client) == "new"

    def test_another_table_stays(self) -> None:
        with Fake() as fake, cached(fake) as client:
            client.table("d", "other")
            client.database("d")
            client.call("alter_table", "D", "T", table("new"))
            client.table("d", "other")
            client.database("d")
            assert (fake.seen["get_table_req"], fake.seen["get_database"]) == (1, 1)

    @pytest.mark.parametrize(
        ("method", "arguments", "expected"),
        [
            ("alter_table", ("d", "t", table("", "u")), {("d", "t"), ("d", "u")}),
            ("create_table", (table(""),), {("d", "t")}),
            ("drop_table", ("@hive#D", "T", False), {("d", "t")}),
            ("drop_database", ("d", False, True), {("d", "")}),
            ("alter_database", ("d", ttypes.Database(name="e")), {("d", ""), ("e", "")}),
            ("add_partitions", ([ttypes.Partition(dbName="d", tableName="t")],), {("d", "t")}),
            ("lock", (ttypes.LockRequest(),), set()),
            ("exchange_partition", ({}, "d", "t", "e", "u"), {("", "")}),
        ],
    )
    def test_a_change_is_about_what_it_names(
        self, method: str, arguments: tuple[Any, ...], expected: set[tuple[str, str]]
    ) -> None:
        assert about.changed(method, arguments) == expected

    def test_every_method_that_is_known_is_one_of_the_bindings(self) -> None:
        known = {name for name in vars(ThriftHiveMetastore.Iface) if not name.startswith("_")}
        assert {*about._READS, *about._CHANGES} <= known


class TestStale:
    def test_it_is_given_on_request_while_nobody_answers(self) -> None:
        clock = Clock()
        with Fake() as fake, cached(fake, clock) as client:
            client.table("d", "t")
            fake.stop()
            clock.now += LIMITS.ttl + 30
            reply = client.ask("get_table", "d", "t", stale=Stale(age_s=120))
            assert (reply.value.tableName, reply.age_s, reply.stale_possible) == ("t", 90.0, True)
            assert fake.uri in reply.why
            for unasked in (lambda: client.table("d", "t"), lambda: client.ask("get_table", "d", "t")):
                with pytest.raises(UnavailableError):
                    unasked()
            clock.now += 31
            with pytest.raises(UnavailableError):
                client.ask("get_table", "d", "t", stale=Stale(age_s=120))

    def test_a_fresh_one_is_given_wherever_there_is_one(self) -> None:
        clock = Clock()
        with Fake() as fake, cached(fake, clock) as client:
            client.table("d", "t")
            fake.catalog.comment = "new"
            clock.now += LIMITS.ttl + 1
            reply = client.ask("get_table", "d", "t", stale=Stale(age_s=1000))
            assert (reply.value.parameters["comment"], reply.stale_possible) == ("new", False)

    def test_what_is_known_to_be_another_one_is_never_given(self) -> None:
        clock = Clock()
        with ExitStack() as stack:
            fake = stack.enter_context(Fake())
            client = stack.enter_context(cached(fake, clock))
            client.table("d", "t")
            client.table("d", "gone")
            client.call("alter_table", "d", "t", table("new"))
            clock.now += LIMITS.ttl + 1
            fake.catalog.gone = "gone"
            with pytest.raises(ttypes.NoSuchObjectException):
                client.table("d", "gone")
            fake.stop()
            for name in ("t", "gone"):
                with pytest.raises(UnavailableError):
                    client.ask("get_table", "d", name, stale=Stale(age_s=1000))
