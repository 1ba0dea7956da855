"""A reply is the right one, or the call ends with an error of the client's own: never with success."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import pytest
import thrift.protocol
from hive_metastore import ttypes
from hypothesis import example, given
from hypothesis import strategies as st
from thrift.Thrift import TException, TType

from lakehouse.metastore import (
    Metastore,
    MetastoreError,
    Options,
    OutcomeError,
    ReplyError,
    ReplySizeError,
    UnavailableError,
)
from lakehouse.metastore.health import Step, check
from lakehouse.metastore.options import endpoints
from tests.unit.metastore_fake import Catalog, Fake
from tests.unit.metastore_garbage import EXCEPTIONS, GARBAGE, LISTS, STOP, Garble, field, of_body, text

ONCE = Options(rounds=1)
# One that is never left alone, however often it fails.
PATIENT = Options(rounds=1, failures=sys.maxsize)
KINDS: Mapping[str, Garble] = {**GARBAGE, **LISTS}
OF_CHANGES: Mapping[str, Garble] = {**GARBAGE, **EXCEPTIONS}
ASKED, CHANGES = "get_all_databases", "drop_table"


@pytest.fixture(params=["the decoder in C", "the decoder in Python"], autouse=True)
def decoder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thrift installs without a compiler, too."""
    if "Python" in request.param:
        monkeypatch.setitem(sys.modules, "thrift.protocol.fastbinary", None)
        monkeypatch.delattr(thrift.protocol, "fastbinary", raising=False)


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Fake, Metastore]]:
    """One for all examples. Each has a connection of its own, since the fake may just be ending the last."""
    with Fake() as fake, Metastore(fake.uri, replace(PATIENT, lifetime=0)) as metastore:
        yield fake, metastore


@contextmanager
def garbling(method: str, garble: Garble) -> Iterator[tuple[Fake, Metastore]]:
    with Fake(garble={method: garble}) as fake, Metastore(fake.uri, PATIENT) as metastore:
        yield fake, metastore


class TestQuestions:
    @pytest.mark.parametrize("kind", KINDS)
    def test_garbage_is_an_error_with_its_reason(self, kind: str) -> None:
        with (
            garbling(ASKED, KINDS[kind]) as (fake, metastore),
            pytest.raises(UnavailableError, match=fake.uri) as error,
        ):
            metastore.databases()
        assert error.value.sent
        assert isinstance(error.value.__cause__, ReplyError | OSError)
        assert str(error.value).isprintable()

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_good_second_address_answers(self, kind: str) -> None:
        with Fake(garble={ASKED: KINDS[kind]}) as bad, Fake() as good:
            with Metastore(f"{bad.uri},{good.uri}", ONCE) as metastore:
                assert metastore.databases() == ["d", "e"]
            assert (bad.seen[ASKED], good.seen[ASKED]) == (1, 1)

    def test_the_connection_is_not_used_again(self) -> None:
        with garbling(ASKED, KINDS["another number"]) as (fake, metastore):
            fake.hangs_up = False
            for count in (1, 2):
                with pytest.raises(UnavailableError, match="is to request 2, this was request 1"):
                    metastore.databases()
                assert fake.connections == count

    def test_nor_is_one_with_more_than_the_reply(self) -> None:
        with garbling(ASKED, lambda reply: reply + b"more") as (fake, metastore):
            fake.hangs_up = False
            for count in (1, 2):
                assert metastore.databases() == ["d", "e"]
                assert fake.connections == count

    def test_garbage_to_the_users_name_is_no_reply_to_the_question(self) -> None:
        options = Options(rounds=1, user="ann")
        with Fake(without={"set_ugi"}) as bad, Fake() as good:
            with Metastore(f"{bad.uri},{good.uri}", options) as metastore:
                assert metastore.databases() == ["d", "e"]
            with (
                Metastore(bad.uri, options) as metastore,
                pytest.raises(UnavailableError, match="set_ugi: Unknown function") as error,
            ):
                metastore.databases()
            assert not error.value.sent

    def test_a_field_of_another_type_that_has_to_be_there_is_missed(self) -> None:
        """The decoders pass over it, as over one that a younger release has."""
        number = of_body(field(TType.STRUCT, 0, field(TType.STRING, 1, text(b"7")) + STOP) + STOP)
        with (
            garbling("get_current_notificationEventId", number) as (_, metastore),
            pytest.raises(UnavailableError, match="Required field eventId is unset"),
        ):
            metastore.call("get_current_notificationEventId")

    def test_so_is_one_in_an_entry_of_a_list(self) -> None:
        events = field(TType.LIST, 1, b"\x0c\0\0\0\x01" + STOP) + STOP
        with (
            garbling("get_next_notification", of_body(field(TType.STRUCT, 0, events) + STOP)) as (
                _,
                metastore,
            ),
            pytest.raises(UnavailableError, match="Required field"),
        ):
            metastore.call("get_next_notification", ttypes.NotificationEventRequest(lastEvent=0))

    def test_a_reply_is_read_up_to_its_bound_and_not_asked_for_again(self) -> None:
        with Fake(Catalog(count=1000)) as fake, Metastore(fake.uri, Options(reply=1000)) as metastore:
            with pytest.raises(ReplySizeError, match=r"get_partition_names.*more than 1000 bytes"):
                metastore.partition_names("d", "t")
            assert fake.seen["get_partition_names"] == 1
            assert metastore.databases() == ["d", "e"]

    def test_one_that_never_ends_is_read_up_to_it_too(self) -> None:
        endless = of_body(field(TType.LIST, 0, b"\x0b\0\0\xff\xff" + bytes(400_000)) + STOP)
        with Fake(garble={ASKED: endless}) as bad, Fake() as good:
            options = Options(rounds=1, reply=200_000 * 16)
            with Metastore(f"{bad.uri},{good.uri}", options) as metastore:
                # 100,000 names of no letter are within the bound.
                assert len(metastore.databases()) == 0xFFFF
            with Metastore(f"{bad.uri},{good.uri}", Options(rounds=1, reply=100_000)) as metastore:
                assert metastore.databases() == ["d", "e"]


class TestChanges:
    @pytest.mark.parametrize("kind", OF_CHANGES)
    def test_after_garbage_the_outcome_is_unknown(self, kind: str) -> None:
        with garbling(CHANGES, OF_CHANGES[kind]) as (fake, metastore):
            with pytest.raises(OutcomeError, match="drop_table was sent, and may be done") as error:
                metastore.call(CHANGES, "d", "t", False)
            assert isinstance(error.value.__cause__, ReplyError | OSError)
            assert fake.seen[CHANGES] == 1

    def test_it_is_done_if_it_can_be_read_back(self) -> None:
        with garbling(CHANGES, GARBAGE["zero bytes"]) as (fake, metastore):
            metastore.call(CHANGES, "d", "t", False, applied=lambda: fake.catalog.gone == "t")
            assert fake.seen[CHANGES] == 1


class TestAnyBytes:
    @given(data=st.binary(max_size=200))
    def test_are_no_reply_to_a_change(self, served: tuple[Fake, Metastore], data: bytes) -> None:
        fake, metastore = served
        fake.garble = {CHANGES: lambda _: data}
        with pytest.raises(OutcomeError):
            metastore.call(CHANGES, "d", "t", False)

    @given(data=st.binary(min_size=1, max_size=60))
    @example(data=STOP)
    def test_after_the_right_beginning_are_success_only_as_the_right_end(
        self, served: tuple[Fake, Metastore], data: bytes
    ) -> None:
        fake, metastore = served
        fake.garble = {CHANGES: of_body(data)}
        try:
            metastore.call(CHANGES, "d", "t", False)
        except (OutcomeError, ttypes.NoSuchObjectException, ttypes.MetaException):
            assert not data.startswith(STOP)
        else:
            assert data.startswith(STOP)

    @given(place=st.integers(0, 200), bits=st.integers(1, 255))
    def test_with_one_of_them_changed_a_done_change_is_no_longer_certain(
        self, served: tuple[Fake, Metastore], place: int, bits: int
    ) -> None:
        def garble(reply: bytes) -> bytes:
            at = place % len(reply)
            return reply[:at] + bytes([reply[at] ^ bits]) + reply[at + 1 :]

        fake, metastore = served
        fake.garble = {CHANGES: garble}
        with pytest.raises(OutcomeError):
            metastore.call(CHANGES, "d", "t", False)

    @given(data=st.binary(max_size=200), whole=st.booleans())
    def test_are_names_or_an_error(self, served: tuple[Fake, Metastore], data: bytes, *, whole: bool) -> None:
        fake, metastore = served
        fake.garble = {ASKED: (lambda _: data) if whole else of_body(data)}
        self._names_or_error(metastore)

    @given(place=st.integers(0, 200), bits=st.integers(1, 255), cut=st.integers(0, 200))
    def test_that_were_names_are_names_or_an_error(
        self, served: tuple[Fake, Metastore], place: int, bits: int, cut: int
    ) -> None:
        def garble(reply: bytes) -> bytes:
            at = place % len(reply)
            changed = reply[:at] + bytes([reply[at] ^ bits]) + reply[at + 1 :]
            return changed[: max(1, len(reply) - cut % 4)]

        fake, metastore = served
        fake.garble = {ASKED: garble}
        self._names_or_error(metastore)

    @given(data=st.binary(max_size=300))
    def test_are_a_table_or_an_error(self, served: tuple[Fake, Metastore], data: bytes) -> None:
        fake, metastore = served
        fake.garble = {"get_table_req": of_body(data), "get_table": of_body(data)}
        try:
            table = metastore.table("d", "t")
        except (MetastoreError, TException):
            return
        assert isinstance(table, ttypes.Table)

    def _names_or_error(self, metastore: Metastore) -> None:
        try:
            names = metastore.databases()
        except (MetastoreError, ttypes.MetaException):
            return
        assert all(isinstance(name, str) for name in names)


class TestUsers:
    @pytest.mark.parametrize("kind", KINDS)
    def test_a_look_at_the_health_ends_with_the_reason(self, kind: str) -> None:
        with Fake(garble={ASKED: KINDS[kind]}) as bad, Fake() as good:
            one, two = check(endpoints(f"{bad.uri},{good.uri}"))
        assert (one.failed, two.failed) == (Step.DATABASE, None)
        assert one.why.startswith("get_all_databases: ")
        assert one.why.isprintable()
