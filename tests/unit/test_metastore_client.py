"""The client of metastores: no call waits for longer than it was given, and none is lost that need not be."""

from __future__ import annotations

import inspect
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest
from hive_metastore import ThriftHiveMetastore, ttypes
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from pyiceberg.catalog.hive import HiveCatalog
from thrift.transport.TTransport import TTransportException

from lakehouse.errors import UsageError
from lakehouse.metastore import (
    BusyError,
    DeadlineError,
    Endpoint,
    IncompleteError,
    Metastore,
    Options,
    OutcomeError,
    UnavailableError,
    UnsupportedError,
    calls,
    options,
)
from lakehouse.metastore.breaker import Breaker, State
from lakehouse.run import ROOT
from lakehouse.terminal import printable
from tests.unit import patience
from tests.unit.metastore_fake import Catalog, Fake, dead

PAGE = ROOT / "docs" / "metastore.md"
FAST = Options(backoff=0.01, longest_backoff=0.02)
# By itself it ends nothing: the deadline of a call has to.
ENDLESS = replace(FAST, total=patience.LONGER, connect=patience.LONGER, read=patience.LONGER)
BUSY = Options(connections=1, borrow=0.1, total=patience.SECONDS, read=patience.SECONDS)
Start = Callable[[Fake], Fake]


@pytest.fixture
def start() -> Iterator[Start]:
    with ExitStack() as stack:
        yield stack.enter_context


@contextmanager
def held(fake: Fake, metastore: Metastore) -> Iterator[None]:
    """Keep the only connection in use until the block ends."""
    reads, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        reads.set()
        go_on.wait()

    fake.catalog.after_reading = hold
    first = threading.Thread(target=metastore.call, args=("get_table", "d", "t"))
    first.start()
    try:
        assert reads.wait(patience.SECONDS)
        yield
    finally:
        go_on.set()
        first.join()


def table(comment: str) -> ttypes.Table:
    return ttypes.Table(dbName="d", tableName="t", parameters={"comment": comment})


class TestEndpoints:
    def test_a_thousand_calls_lose_none_while_the_first_is_dead(self, start: Start) -> None:
        alive = start(Fake())
        with Metastore(f"{dead()},{alive.uri}", FAST) as metastore:
            for number in range(1000):
                assert metastore.call("get_table", "d", f"t{number}").tableName == f"t{number}"
        assert alive.seen["get_table_req"] == 1000

    def test_pyiceberg_never_asks_the_second(self, start: Start) -> None:
        """Why there is a client of our own: the list of addresses that PyIceberg takes is no help."""
        alive = start(Fake())
        with pytest.raises(TTransportException):
            HiveCatalog("it", uri=f"{dead()},{alive.uri}").list_namespaces()
        assert alive.connections == 0

    def test_the_next_one_takes_over_within_a_call_and_stays(self, start: Start) -> None:
        one, two = start(Fake()), start(Fake())
        with Metastore(f"{one.uri},{two.uri}", FAST) as metastore:
            metastore.call("get_table", "d", "t")
            one.stop()
            for _ in range(5):
                metastore.call("get_table", "d", "t")
        assert (one.seen["get_table_req"], two.seen["get_table_req"]) == (1, 5)

    def test_a_connection_that_the_metastore_has_ended_is_no_failure(self, start: Start) -> None:
        fake = start(Fake())
        with Metastore(fake.uri, FAST) as metastore:
            metastore.call("get_all_tables", "d")
            for plug in list(fake._open):
                plug.shutdown(2)
            metastore.call("alter_table", "d", "t", table("new"))
        assert fake.seen["alter_table"] == 1

    @pytest.mark.parametrize(
        "text",
        [
            "", ",", "node1:9083", "http://node1:9083", "thrift://", "thrift://n:x",
            "thrift://[abc", "thrift://abc]", "thrift://[abc]", "thrift://[::1]x", "thrift://:9083",
            "thrift://n:0", "thrift://n:65536", "thrift://n:-1", "thrift://n:1:2",
            "thrift://ann@n", "thrift://n/warehouse", "thrift://n?a=b", "thrift://n#a",
            "thrift://a b", "thrift://a\nb", "thrift://a\x00b", "thrift://\u2100", "thrift:n", "//n",
        ],
    )  # fmt: skip
    def test_what_is_no_address_is_said(self, text: str) -> None:
        with pytest.raises(UsageError, match=r"thrift://node1:9083") as error:
            Metastore(text)
        assert printable(error.value.message) == error.value.message

    @given(text=st.text(max_size=40))
    def test_any_text_is_an_address_or_is_none(self, text: str) -> None:
        for one in (text, f"thrift://{text}"):
            with suppress(UsageError):
                found = options.endpoints(one)
                assert options.endpoints(",".join(map(str, found))) == found

    @pytest.mark.parametrize(("host", "port"), [("", 9083), ("a b", 9083), ("n", 0), ("n", 70_000)])
    def test_nor_is_one_made_of_such_a_host_or_port(self, host: str, port: int) -> None:
        with pytest.raises(UsageError, match="a metastore's address reads as"):
            Endpoint(host, port)

    @pytest.mark.parametrize("name", ["rounds", "failures", "connections", "chunk", "reply"])
    def test_an_option_that_lets_nothing_through_is_refused(self, name: str) -> None:
        none: dict[str, Any] = {name: 0}
        with pytest.raises(UsageError, match=f"{name}=0: the least is 1"):
            Options(**none)

    def test_addresses_are_read_as_hive_writes_them(self) -> None:
        found = options.endpoints("thrift://a, thrift://[::1]:9084,thrift://a:9083")
        assert list(map(str, found)) == ["thrift://a:9083", "thrift://[::1]:9084"]


class TestDeadlines:
    def test_there_is_always_one(self) -> None:
        assert 0 < Options().total <= 20

    @pytest.mark.parametrize("seconds", [0, -1.5])
    def test_without_time_nothing_is_sent(self, start: Start, seconds: float) -> None:
        fake = start(Fake(Catalog(count=3)))
        with Metastore(fake.uri, Options(failures=1)) as client:
            late = "no answer within"
            with pytest.raises(DeadlineError, match=late):
                client.call("get_table", "d", "t", seconds=seconds)
            with pytest.raises(DeadlineError, match=late):
                client.call("alter_table", "d", "t", table("new"), seconds=seconds)
            with pytest.raises(DeadlineError, match=late):
                client.partitions("d", "t", ["n=1"], seconds=seconds)
            assert not fake.connections
            # No address was tried, so none has failed.
            assert client.table("d", "t")

    @pytest.mark.parametrize("seconds", [float("nan"), float("inf"), 1e300])
    def test_what_no_clock_can_wait_for_is_refused(self, start: Start, seconds: float) -> None:
        fake = start(Fake())
        with Metastore(fake.uri) as metastore, pytest.raises(UsageError, match="is no deadline"):
            metastore.call("get_table", "d", "t", seconds=seconds)

    def test_a_silent_metastore_ends_with_the_deadline(self, start: Start) -> None:
        fake = start(Fake(silent=True))
        late = pytest.raises(DeadlineError, match=r"within 0\.5 s")
        with patience.kept(), Metastore(fake.uri, ENDLESS) as metastore, late:
            metastore.call("get_table", "d", "t", seconds=0.5)

    def test_so_does_one_that_sends_a_byte_now_and_then(self, start: Start) -> None:
        fake = start(Fake(trickle=True))
        with patience.kept(), Metastore(fake.uri, ENDLESS) as metastore, pytest.raises(DeadlineError):
            metastore.call("get_all_tables", "d", seconds=0.5)

    def test_a_silent_one_leaves_time_for_the_next(self, start: Start) -> None:
        silent, alive = start(Fake(silent=True)), start(Fake())
        with Metastore(f"{silent.uri},{alive.uri}", Options(read=0.2)) as metastore:
            assert metastore.call("get_table", "d", "t").tableName == "t"

    def test_a_name_that_is_not_looked_up_keeps_nobody_from_the_next(
        self, start: Start, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """However many ask for it at once; no resolver can be made to hang."""
        alive, ended, looks = start(Fake()), threading.Event(), socket.getaddrinfo

        def look_up(host: str, *arguments: Any, **more: Any) -> Any:
            if host == "hangs":
                ended.wait()
            return looks(host, *arguments, **more)

        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        options = Options(connect=0.2, failures=1000)
        with Metastore(f"thrift://hangs,{alive.uri}", options) as metastore, ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(metastore.call, "get_table", "d", "t") for _ in range(8)]
            assert [one.result().tableName for one in asked] == ["t"] * 8
        ended.set()

    def test_nobody_there_is_said_with_every_address(self) -> None:
        one, two = dead(), dead()
        with Metastore(f"{one},{two}", FAST) as metastore, pytest.raises(UnavailableError) as error:
            metastore.call("get_all_tables", "d")
        assert one in str(error.value)
        assert two in str(error.value)


class TestChanges:
    def test_one_whose_answer_was_lost_is_sent_once(self, start: Start) -> None:
        fake = start(Fake(cut={"alter_table"}))
        with Metastore(fake.uri, FAST) as metastore:
            with pytest.raises(OutcomeError, match="alter_table was sent, and may be done"):
                metastore.call("alter_table", "d", "t", table("new"))
            assert fake.seen["alter_table"] == 1

    def test_it_is_done_if_it_can_be_read_back(self, start: Start) -> None:
        fake = start(Fake(cut={"alter_table"}))
        with Metastore(fake.uri, FAST) as metastore:

            def applied() -> bool:
                return bool(metastore.call("get_table", "d", "t").parameters["comment"] == "new")

            metastore.call("alter_table", "d", "t", table("new"), applied=applied)
        assert (fake.seen["alter_table"], fake.catalog.comment) == (1, "new")

    def test_whatever_reading_it_back_meets_the_outcome_is_unknown(self, start: Start) -> None:
        fake = start(Fake(cut={"alter_table"}))
        with Metastore(fake.uri, FAST) as metastore:

            def applied() -> bool:
                fake.stop()
                return bool(metastore.table("d", "t").parameters["comment"] == "new")

            with pytest.raises(OutcomeError, match="may be done; it could not be read back") as error:
                metastore.call("alter_table", "d", "t", table("new"), applied=applied)
        assert fake.catalog.comment == "new"
        assert isinstance(error.value.__cause__, UnavailableError)

    @pytest.mark.parametrize(
        "wrong", [ttypes.NoSuchObjectException(message="t"), RuntimeError("a bug"), UsageError("no name")]
    )
    def test_also_where_it_is_no_error_of_a_connection(self, start: Start, wrong: Exception) -> None:
        fake = start(Fake(cut={"alter_table"}))

        def applied() -> bool:
            raise wrong

        with Metastore(fake.uri, FAST) as metastore, pytest.raises(OutcomeError) as error:
            metastore.call("alter_table", "d", "t", table("new"), applied=applied)
        assert error.value.__cause__ is wrong

    def test_a_change_that_cannot_be_read_back_is_unknown_with_the_reason(self, start: Start) -> None:
        fake = start(Fake(cut={"alter_table"}))
        not_there = pytest.raises(OutcomeError, match="was not there when it was read back")
        with Metastore(fake.uri, FAST) as metastore, not_there as error:
            metastore.call("alter_table", "d", "t", table("new"), applied=lambda: False)
        assert "the connection was ended" in str(error.value.__cause__)

    def test_an_error_within_the_metastore_does_not_say_that_nothing_was_changed(self, start: Start) -> None:
        class Fails(Catalog):
            def alter_table(self, dbname: str, tbl_name: str, new_tbl: ttypes.Table) -> None:
                super().alter_table(dbname, tbl_name, new_tbl)
                raise RuntimeError("after the change")

        fake = start(Fake(Fails()))
        with Metastore(fake.uri, Options(failures=1)) as metastore:
            with pytest.raises(OutcomeError, match="Internal error"):
                metastore.call("alter_table", "d", "t", table("new"))
            metastore.call(
                "alter_table", "d", "t", table("newer"), applied=lambda: fake.catalog.comment == "newer"
            )
            assert fake.connections == 1

    def test_arguments_that_cannot_be_written_are_not_sent(self, start: Start) -> None:
        fake = start(Fake())
        with Metastore(fake.uri, FAST) as metastore:
            for arguments in (("d",), ("d", "t", "no table"), ("d", 7, table("new"))):
                with pytest.raises((TypeError, AttributeError)):
                    metastore.call("alter_table", *arguments)
            assert not fake.seen

    def test_one_that_was_not_sent_goes_to_the_next(self, start: Start) -> None:
        alive = start(Fake())
        with Metastore(f"{dead()},{alive.uri}", FAST) as metastore:
            metastore.call("alter_table", "d", "t", table("new"))
        assert alive.seen["alter_table"] == 1

    @pytest.mark.parametrize("method", ["get_partitions_by_names", "get_table", "get_table_objects_by_name"])
    def test_every_variant_takes_the_arguments_of_its_method(self, method: str) -> None:
        names = list(inspect.signature(getattr(ThriftHiveMetastore.Iface, method)).parameters)[1:]
        for variant in calls.variants(method):
            assert variant.arguments(*names)

    def test_every_method_is_a_question_or_sent_once(self) -> None:
        """By the words that the names of the bindings begin with: none that changes is a question."""
        questions = {
            name for name, _ in inspect.getmembers(ThriftHiveMetastore.Iface) if calls.repeatable(name)
        }
        changes = (
            "add",
            "alter",
            "append",
            "create",
            "drop",
            "grant",
            "lock",
            "open",
            "rename",
            "set",
            "update",
        )
        assert {"get_table", "get_all_databases", "list_roles", "show_locks"} <= questions
        assert not [name for name in questions if name.startswith(changes)]
        # It gives a compaction to every client.
        assert not {"find_next_compact", "find_next_compact2"} & questions


class TestConnections:
    def test_a_late_answer_is_nobody_elses(self, start: Start) -> None:
        fake, go_on = start(Fake()), threading.Event()
        fake.catalog.after_reading = go_on.wait
        with Metastore(fake.uri, FAST) as metastore:
            with pytest.raises(DeadlineError):
                metastore.call("get_table", "d", "late", seconds=0.5)
            # A reader of this connection would get the late answer first.
            go_on.set()
            assert metastore.call("get_table", "d", "mine").tableName == "mine"

    def test_what_the_metastore_refuses_comes_as_it_is_and_keeps_the_connection(self, start: Start) -> None:
        fake = start(Fake())
        with Metastore(fake.uri, FAST) as metastore:
            for _ in range(10):
                with pytest.raises(ttypes.NoSuchObjectException):
                    metastore.call("get_table", "d", "nobody")
        assert fake.connections == 1

    def test_fifty_threads_share_eight(self, start: Start) -> None:
        fake = start(Fake())
        with Metastore(fake.uri, FAST) as metastore, ThreadPoolExecutor(50) as pool:

            def ask(number: int) -> bool:
                return all(
                    metastore.call("get_table", "d", f"t{number}_{one}").tableName == f"t{number}_{one}"
                    for one in range(20)
                )

            assert all(pool.map(ask, range(50)))
        assert fake.most_at_once <= FAST.connections

    def test_whoever_finds_none_free_is_told_in_time(self, start: Start) -> None:
        fake, busy = start(Fake()), r"none is free, and 1 connection is in use for 0\.1 s"
        with Metastore(fake.uri, BUSY) as metastore:
            with held(fake, metastore), pytest.raises(BusyError, match=busy):
                metastore.call("get_table", "d", "t")
            assert metastore.call("get_table", "d", "t")

    def test_one_is_replaced_after_its_lifetime(self, start: Start) -> None:
        fake = start(Fake())
        with Metastore(fake.uri, Options(lifetime=0)) as metastore:
            for _ in range(3):
                metastore.call("get_all_tables", "d")
        assert fake.connections == 3

    def test_one_that_was_in_use_at_the_end_is_closed_when_it_comes_back(self, start: Start) -> None:
        fake = start(Fake())
        metastore = Metastore(fake.uri, FAST)
        fake.catalog.after_reading = metastore.close
        metastore.call("get_table", "d", "t")
        until = time.monotonic() + 10
        while fake._open:
            assert time.monotonic() < until, "the connection is open"
            threading.Event().wait(0.01)
        metastore.call("get_table", "d", "t")
        metastore.close()
        assert fake.connections == 2

    def test_it_is_a_persons(self, start: Start) -> None:
        fake = start(Fake())
        with Metastore(fake.uri, Options(user="ann")) as metastore:
            metastore.call("get_all_tables", "d")
            metastore.call("get_all_tables", "d")
        assert fake.seen == {"set_ugi": 1, "get_all_tables": 2}


class TestReleases:
    @pytest.mark.parametrize(
        ("has", "lacks"), [("get_table", "get_table_req"), ("get_table_req", "get_table")]
    )
    def test_the_same_code_reads_an_older_and_a_younger_one(self, start: Start, has: str, lacks: str) -> None:
        fake = start(Fake(without={lacks}))
        with Metastore(fake.uri, FAST) as metastore:
            metastore.call("get_table", "d", "t")
            before = fake.seen.total()
            assert metastore.call("get_table", "d", "t").tableName == "t"
        assert fake.seen.total() - before == 1
        assert fake.seen[has] == 2

    def test_what_none_of_them_knows_is_said(self, start: Start) -> None:
        fake = start(Fake(without={"get_table", "get_table_req"}))
        with Metastore(fake.uri, FAST) as metastore:
            for _ in range(2):
                with pytest.raises(UnsupportedError, match="knows no get_table_req, get_table"):
                    metastore.call("get_table", "d", "t")


class TestBreaker:
    def test_it_opens_and_one_probe_closes_it(self) -> None:
        now = [0.0]
        breaker = Breaker(5, 10, lambda: now[0])
        for _ in range(5):
            assert breaker.allows()
            breaker.record_failure()
        assert (breaker.state, breaker.allows()) == (State.OPEN, False)
        now[0] = 10.0
        assert breaker.state == State.PROBING
        assert [breaker.allows(), breaker.allows()] == [True, False]
        breaker.record_failure()
        assert not breaker.allows()
        now[0] = 20.0
        assert breaker.allows()
        breaker.record_success()
        assert not breaker.resting

    def test_an_endpoint_that_rests_is_not_connected_to(self, start: Start) -> None:
        now = [0.0]
        fake, alive = start(Fake(cut={"get_all_tables"})), start(Fake())
        fast = Options(failures=2, rounds=1)
        with Metastore(fake.uri, fast, clock=lambda: now[0]) as metastore:
            for _ in range(2):
                with pytest.raises(UnavailableError):
                    metastore.call("get_all_tables", "d")
            before = fake.connections
            with pytest.raises(UnavailableError, match="left alone after many failures"):
                metastore.call("get_all_tables", "d")
            assert fake.connections == before
            assert f'breaker_open{{endpoint="{fake.uri}"}} 1.0' in metastore.metrics()
            now[0] = fast.rest
            assert metastore.call("get_table", "d", "t")
            assert f'breaker_open{{endpoint="{fake.uri}"}} 0.0' in metastore.metrics()
        assert not alive.connections


class TestPartitions:
    def test_chunks_halve_until_the_metastore_can_answer(self, start: Start) -> None:
        fake = start(Fake(Catalog(count=1000, most=250)))
        with Metastore(fake.uri, FAST) as metastore:
            names = metastore.partition_names("d", "t")
            found = metastore.partitions("d", "t", names)
        assert [one.values for one in found] == [[str(number)] for number in range(1000)]

    def test_one_that_is_left_out_is_named(self, start: Start) -> None:
        fake = start(Fake(Catalog(count=1000, missing=frozenset({"n=777"}))))
        with Metastore(fake.uri, FAST) as metastore, pytest.raises(IncompleteError, match="partition n=777"):
            metastore.partitions("d", "t", metastore.partition_names("d", "t"))

    def test_known_ones_come_by_their_names(self, start: Start) -> None:
        fake = start(Fake(Catalog(count=9, missing=frozenset({"n=2"}))))
        with Metastore(fake.uri, Options(chunk=2)) as metastore:
            found = metastore.known_partitions("d", "t", ["n=3", "n=2", "n=1", "n=3"])
            assert [(name, one.values) for name, one in found.items()] == [("n=3", ["3"]), ("n=1", ["1"])]
            assert metastore.known_partitions("d", "t", []) == {}
        assert fake.catalog.asked == [["n=3", "n=2"], ["n=1"]]

    def test_two_names_of_one_partition_are_both_answered(self, start: Start) -> None:
        fake = start(Fake(Catalog(count=9)))
        with Metastore(fake.uri, FAST) as metastore:
            found = metastore.partitions("d", "t", ["n=%31", "n=1"])
        assert [one.values for one in found] == [["1"], ["1"]]

    def test_a_reply_that_would_be_too_large_is_had_in_halves(self, start: Start) -> None:
        fake = start(Fake(Catalog(count=1000)))
        with Metastore(fake.uri, Options(reply=4000)) as metastore:
            names = [f"n={number}" for number in range(1000)]
            assert [f"n={one.values[0]}" for one in metastore.partitions("d", "t", names)] == names
        sizes = [len(asked) for asked in fake.catalog.asked]
        assert (sizes[0], sum(sizes) > 1000, max(sizes[4:]) < 1000) == (1000, True, True)

    def test_who_finds_no_connection_waits_once(self, start: Start) -> None:
        fake = start(Fake())
        with Metastore(fake.uri, BUSY) as metastore:
            with held(fake, metastore), pytest.raises(BusyError):
                metastore.partitions("d", "t", [f"n={number}" for number in range(1000)])
            assert f'tries_total{{end="busy",endpoint="{fake.uri}"}} 1.0' in metastore.metrics()

    def test_so_does_who_finds_nobody(self) -> None:
        gone = dead()
        with Metastore(gone, FAST) as metastore:
            with pytest.raises(UnavailableError):
                metastore.partitions("d", "t", [f"n={number}" for number in range(1000)])
            assert f'tries_total{{end="failed",endpoint="{gone}"}} {FAST.rounds}.0' in metastore.metrics()

    def test_all_requests_together_have_one_deadline(self, start: Start) -> None:
        class Late(Catalog):
            def get_partitions_by_names(
                self, db_name: str, tbl_name: str, names: list[str]
            ) -> list[ttypes.Partition]:
                time.sleep(0.2)
                return super().get_partitions_by_names(db_name, tbl_name, names)

        fake = start(Fake(Late(count=100), without={"get_partitions_by_names_req"}))
        with Metastore(fake.uri, Options(chunk=1)) as metastore:
            names = [f"n={number}" for number in range(100)]
            with pytest.raises(DeadlineError):
                metastore.partitions("d", "t", names, seconds=0.5)
        assert len(fake.catalog.asked) < 10

    def test_of_no_table_is_asked_once(self, start: Start) -> None:
        class NoTable(Catalog):
            def get_partitions_by_names(
                self, db_name: str, tbl_name: str, names: list[str]
            ) -> list[ttypes.Partition]:
                super().get_partitions_by_names(db_name, tbl_name, names)
                raise ttypes.NoSuchObjectException(message=tbl_name)

        fake = start(Fake(NoTable()))
        with Metastore(fake.uri, FAST) as metastore:
            names = ["n=1", "n=2", "n=3"]
            with pytest.raises(ttypes.NoSuchObjectException):
                metastore.partitions("d", "t", names)
        assert len(fake.catalog.asked) == 1

    def test_there_may_be_more_than_sixteen_bits_count(self, start: Start) -> None:
        fake = start(Fake(Catalog(count=40_000)))
        with Metastore(fake.uri, FAST) as metastore:
            assert len(metastore.partition_names("d", "t")) == 40_000

    def test_a_list_of_tables_asks_for_nothing_else(self, start: Start) -> None:
        fake = start(Fake(Catalog(count=1000)))
        with Metastore(fake.uri, FAST) as metastore:
            assert len(metastore.call("get_all_tables", "d")) == 3
        assert fake.seen == {"get_all_tables": 1}


def test_prometheus_reads_what_was_done(start: Start) -> None:
    fake = start(Fake())
    gone = dead()
    with Metastore(f"{gone},{fake.uri}", FAST) as metastore:
        for _ in range(3):
            metastore.call("get_all_tables", "d")
        with pytest.raises(ttypes.NoSuchObjectException):
            metastore.call("get_table", "d", "nobody")
        families = list(text_string_to_metric_families(metastore.metrics()))
    samples = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }
    assert samples["lakehouse_metastore_calls_total", "get_all_tables", "ok"] == 3
    assert samples["lakehouse_metastore_calls_total", "NoSuchObjectException", "get_table"] == 1
    assert samples["lakehouse_metastore_call_seconds_count", "get_all_tables"] == 3
    assert samples["lakehouse_metastore_tries_total", "failed", gone] == 1
    assert samples["lakehouse_metastore_tries_total", "ok", fake.uri] == 4
    assert samples["lakehouse_metastore_connections_used", fake.uri] == 0


def test_the_page_shows_what_can_be_run(start: Start) -> None:
    fake = start(Fake())
    [example] = re.findall(
        r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    exec(example.replace("thrift://node1:9083,thrift://node2:9083", fake.uri), {})  # noqa: S102 -- our own page
    assert fake.catalog.comment == "of the shop"
