"""One instant is the same for every engine that writes or reads it, and every clock says UTC."""

from __future__ import annotations

import datetime as dt

import pytest

from suites.matrix.cross import canonical, dialects
from suites.matrix.cross.data_types import INSTANT, LOCAL, TEXT
from suites.matrix.cross.engines import DELTA_RS, FLINK, PYICEBERG, READERS, SPARK, TRINO, Engines
from suites.testbed.databases import Table
from suites.testbed.endpoints import Endpoints
from suites.testbed.formats import DELTA, ICEBERG, Format
from suites.testbed.nodes import Nodes
from suites.testbed.tables import Tables

COLUMNS = {"writer": TEXT, "moment": INSTANT, "wall": LOCAL, "now": INSTANT}
# The night in which Europe's clocks skip an hour, told by a clock 5 h 45 min ahead of UTC.
MOMENT = dt.datetime(2024, 3, 31, 1, 30, 0, 123000, dt.UTC)
WALL = dt.datetime(2024, 3, 31, 2, 30)
INSTANTS = {
    SPARK: "TIMESTAMP '2024-03-31 07:15:00.123 Asia/Kathmandu'",
    TRINO: "TIMESTAMP '2024-03-31 07:15:00.123 Asia/Kathmandu'",
    # Flink has no literal with a zone: the session's, which must be UTC, counts.
    FLINK: "CAST(TIMESTAMP '2024-03-31 01:30:00.123' AS TIMESTAMP_LTZ(6))",
}
NOW = {
    SPARK: "current_timestamp()",
    TRINO: "CAST(current_timestamp AS TIMESTAMP(6) WITH TIME ZONE)",
    FLINK: "CURRENT_TIMESTAMP",
}
ALLOWED_SECONDS = 120
# What runs on a host that is in no other group may be no Java.
WITHOUT_JAVA = {"postgresql", "clients"}
# The command line of each process, which may have another name: Trino calls its own trino-server.
COMMANDS = r"for file in /proc/[0-9]*/cmdline; do tr '\0\n' '  ' <$file; echo; done 2>/dev/null"


@pytest.fixture(scope="module")
def clocks(_engines: Engines, makers: dict[str, Tables]) -> dict[Format, Table]:
    """A table of each format, with a row by every engine that can write it."""
    tables = {fmt: makers[fmt.name].name() for fmt in (ICEBERG, DELTA)}
    for fmt, table in tables.items():
        _engines.spark.sql(f"CREATE TABLE {table} ({dialects.SPARK.columns(COLUMNS)}) USING {fmt}")
    for engine, instant in INSTANTS.items():
        wall = dialects.DIALECTS[engine].literal(WALL, LOCAL)
        values = f"'{engine}', {instant}, {wall}, {NOW[engine]}"
        for fmt in (ICEBERG, DELTA) if engine == SPARK else (ICEBERG,):
            _engines.sql(engine, f"INSERT INTO {tables[fmt].full(engine)} VALUES ({values})")

    def row_of(client: str) -> object:
        instant = MOMENT.astimezone(dt.timezone(dt.timedelta(hours=5, minutes=45)))
        return dialects.arrow([(client, instant, WALL, dt.datetime.now(dt.UTC))], COLUMNS)

    _engines.clients.iceberg.load_table(tables[ICEBERG].short).append(row_of(PYICEBERG))
    _engines.clients.append(f"delta.{tables[DELTA].short}", row_of(DELTA_RS))
    return tables


@pytest.mark.operation("one instant", engine="{reader}")
@pytest.mark.parametrize(
    ("fmt", "reader"), [(fmt, reader) for fmt in (ICEBERG, DELTA) for reader in READERS[fmt]], ids=str
)
def test_an_instant_written_by_each(
    fmt: Format, reader: str, clocks: dict[Format, Table], engines: Engines
) -> None:
    got = canonical.rows(engines.read(reader, clocks[fmt], list(COLUMNS)), COLUMNS.values())
    writers = {ICEBERG: [*INSTANTS, PYICEBERG], DELTA: [SPARK, DELTA_RS]}[fmt]
    expected = [canonical.spell(MOMENT, INSTANT), canonical.spell(WALL, LOCAL)]
    assert [row[:3] for row in got] == [[writer, *expected] for writer in sorted(writers)]
    for *_, written in got:
        age = dt.datetime.now(dt.UTC) - dt.datetime.fromisoformat(f"{written}+00:00")
        assert abs(age.total_seconds()) < ALLOWED_SECONDS


@pytest.mark.operation("sessions in UTC", engine="all")
def test_every_session_is_in_utc(engines: Engines) -> None:
    assert engines.spark.value("SELECT current_timezone()") == "UTC"
    assert engines.trino.value("SELECT current_timezone()") == "UTC"
    assert engines.flink.value("SELECT DATE_FORMAT(TO_TIMESTAMP_LTZ(0, 3), 'yyyy-MM-dd HH:mm')") == (
        "1970-01-01 00:00"
    )


@pytest.mark.operation("hosts and JVMs in UTC", engine="all")
def test_every_host_and_jvm_is_in_utc(nodes: Nodes, endpoints: Endpoints) -> None:
    for host, machine in endpoints.hosts.items():
        assert {zone.strip() for zone in nodes.run_everywhere(host, "date", "+%Z")} == {"UTC"}
        lines = "".join(nodes.run_everywhere(host, "sh", "-c", COMMANDS)).splitlines()
        processes = [line for line in lines if line.partition(" ")[0].endswith("/java")]
        assert processes or machine.groups <= WITHOUT_JAVA
        assert [line for line in processes if "-Duser.timezone=UTC" not in _options(nodes, host, line)] == []


def _options(nodes: Nodes, host: str, command: str) -> str:
    """Return a command with the content of each file of options (`@file`) that it names."""
    files = [word[1:] for word in command.split() if word.startswith("@")]
    return " ".join([command, *(nodes.run(host, "cat", file) for file in files)])
