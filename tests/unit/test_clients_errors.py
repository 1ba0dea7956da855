"""What HDFS or the metastore refuses is one line with their words, whichever call of the lake meets it."""

from __future__ import annotations

import inspect
from typing import Any

import pyarrow as pa
import pytest
from hive_metastore.ttypes import AlreadyExistsException, InvalidObjectException, MetaException
from lakehouse_clients import ClientError, Lake, Settings
from lakehouse_clients.errors import DeniedError, refusals_in_one_line
from thrift.transport.TTransport import TTransportException

WORDS = "Add request failed : INSERT INTO COLUMNS_V2"
SETTINGS = Settings("thrift://127.0.0.1:1", "hdfs://none/lake", "ada", "members")
ROWS = pa.table({"body": ["a"]})

CALLS: dict[str, tuple[Any, ...]] = {
    "create": ("iceberg.db.t", ROWS),
    "append": ("iceberg.db.t", ROWS),
    "overwrite": ("delta.db.t", ROWS),
    "arrow": ("iceberg.db.t",),
    "polars": ("delta.db.t",),
    "sql": ("SELECT * FROM iceberg.db.t",),
    "duckdb": ("delta.db.t",),
    "delta": ("db.t",),
    "create_database": ("iceberg.db",),
    "tables": (),
}


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A lake whose metastore refuses every call, as Thrift says it."""

    def refuse(*_arguments: Any) -> Any:
        raise MetaException(WORDS)

    monkeypatch.setattr("lakehouse_clients.catalog.Catalog._create_hive_client", refuse)
    return Lake(SETTINGS)


def test_every_call_of_the_lake_is_tried() -> None:
    """`iceberg` is PyIceberg itself, and raises what PyIceberg raises."""
    public = {name for name, _ in inspect.getmembers(Lake, inspect.isfunction) if not name.startswith("_")}
    assert public == set(CALLS)


@pytest.mark.parametrize("call", CALLS)
def test_the_metastores_words_are_the_error(refused: Lake, call: str) -> None:
    with pytest.raises(ClientError, match=WORDS) as raised:
        getattr(refused, call)(*CALLS[call])
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("kind", [MetaException, AlreadyExistsException, InvalidObjectException])
def test_every_exception_of_the_metastore_is_one_line(kind: type[Exception]) -> None:
    with pytest.raises(ClientError) as raised, refusals_in_one_line("members"):
        raise kind("no\n  such thing")
    assert str(raised.value) == (
        "the metastore refuses: no such thing; next: change what it names, and run it again"
    )


@pytest.mark.parametrize("kind", ["iceberg", "delta"])
def test_columns_that_are_one_to_the_metastore_are_named(refused: Lake, kind: str) -> None:
    with pytest.raises(ClientError, match="the columns Body and body are one to the metastore"):
        refused.create(f"{kind}.db.t", pa.table({"Body": ["a"], "id": [1], "body": ["b"]}))


def test_a_metastore_that_does_not_answer_is_one_line() -> None:
    with pytest.raises(ClientError, match="the metastore does not answer: Could not connect"):
        Lake(SETTINGS).tables()
    with pytest.raises(ClientError, match="does not answer: read 0 bytes"), refusals_in_one_line("members"):
        raise TTransportException(4, "read 0 bytes")


def test_a_refusal_of_hdfs_that_the_metastore_passes_on_is_that_of_hdfs() -> None:
    denied = 'Got exception: Permission denied: user=ada, access=WRITE, inode="/lake/t":spark'
    with pytest.raises(DeniedError, match="ada may not write /lake/t"), refusals_in_one_line("members"):
        raise MetaException(denied)


def test_what_a_library_says_by_itself_stays() -> None:
    with pytest.raises(KeyError), refusals_in_one_line("members"):
        raise KeyError("k")
