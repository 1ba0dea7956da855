"""Names of tables, and queries that hold them."""

from __future__ import annotations

import pytest
from lakehouse_clients import ClientError
from lakehouse_clients.names import Name, split_query


def test_a_name_has_format_database_and_table() -> None:
    assert Name.parse("delta.nycflights_delta.flights") == Name("delta", "nycflights_delta", "flights")
    assert str(Name("iceberg", "a", "b")) == "iceberg.a.b"


@pytest.mark.parametrize("text", ["flights", "a.b", "hive.a.b", "delta.a.b.c", "delta.a.b; DROP", ""])
def test_another_name_says_how_one_is_written(text: str) -> None:
    with pytest.raises(ClientError, match=r"next: write iceberg\.database\.table or delta\.database\.table"):
        Name.parse(text)


@pytest.mark.parametrize(
    ("query", "rewritten", "names"),
    [
        ("SELECT 1", "SELECT 1", []),
        ("FROM delta.a.b", 'FROM "delta.a.b"', ["delta.a.b"]),
        ("FROM delta.a.b JOIN delta.a.b", 'FROM "delta.a.b" JOIN "delta.a.b"', ["delta.a.b"]),
        (
            "FROM iceberg.a.b x, delta.a.c y",
            'FROM "iceberg.a.b" x, "delta.a.c" y',
            ["iceberg.a.b", "delta.a.c"],
        ),
        ("SELECT 'it''s delta.a.b'", "SELECT 'it''s delta.a.b'", []),
        ('FROM "delta.a.b"', 'FROM "delta.a.b"', ["delta.a.b"]),
        ("SELECT 1 -- delta.a.b\n/* delta.a.b */", "SELECT 1 -- delta.a.b\n/* delta.a.b */", []),
        ("SELECT x.delta.a.b", "SELECT x.delta.a.b", []),
        ("SELECT b.n FROM delta.a.b AS b", 'SELECT b.n FROM "delta.a.b" AS b', ["delta.a.b"]),
    ],
)
def test_only_names_are_quoted(query: str, rewritten: str, names: list[str]) -> None:
    assert split_query(query) == (rewritten, [Name.parse(name) for name in names])
