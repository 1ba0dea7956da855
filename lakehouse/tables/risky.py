"""Tables of a cluster that another engine reads wrongly, from the metastore and HDFS."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from hive_metastore.ttypes import MetaException, NoSuchObjectException

from lakehouse.catalog.partition_names import NOTHING
from lakehouse.catalog.readable import DamagedError, UnreadableError
from lakehouse.catalog.shared_files import SHARED, Place, overlaps, places
from lakehouse.metastore import Endpoint, Metastore, Options
from lakehouse.next_command import PROGRAM
from lakehouse.report import record
from lakehouse.report.record import Record
from lakehouse.tables import table_files
from lakehouse.tables.features import CUT, LATER, LOST, UNKNOWN, Risk, delta_risks
from lakehouse.tables.hive_features import HiveTable, hive_risks, type_risks
from lakehouse.tables.iceberg_features import Live, iceberg_risks, is_known
from lakehouse.tables.table_files import Files
from lakehouse.terminal import printable
from plugins.module_utils.lakehouse import table_format
from plugins.module_utils.lakehouse.webhdfs import WebHdfs

_SECONDS = 30.0
_AT_ONCE = 8
# Of one call to the metastore: tables with everything that it knows of them, and names of partitions.
_TABLES, _PARTITIONS = 300, 10_000
# Of a table with buckets, to see how its files are named.
_FOLDERS = 20
# Of one answer of the metastore: it lets tables have any text, and as many columns as they like.
_REPLY_BYTES = 256 << 20
# Of a reason, in letters.
_SHOWN = 300
# What is wrong with a table, when its metadata is not what it should be.
_OF_ONE_TABLE = (
    DamagedError, UnreadableError, LookupError, TypeError, ValueError, AttributeError, RecursionError,
    OSError, pa.ArrowException,
)  # fmt: skip
VIEW = "view"
# Effects that many tables share without harm until something is done: their tables share a line.
_SHARED_LINES = (CUT, LATER)
_MEND = f"{PROGRAM} catalog restore, or drop it with Spark or Trino (docs/limits.md)"


@dataclass(frozen=True)
class Finding:
    """A table (`database.name`) of a format, or a database, and one risk that it carries."""

    table: str
    format: str
    risk: Risk

    def __str__(self) -> str:
        risk = self.risk
        line = f"{self.table} ({self.format}) {risk.feature}: {risk.effect}: {risk.consequence}; {risk.link}"
        return printable(line)


def find(endpoints: Path) -> list[Finding]:
    """Return the risky tables of the cluster of `endpoints.json`; LakehouseError if a service fails."""
    data = record.load(endpoints, "make lakehouse")
    catalog, files = _asked(data, _catalog), _files(data)
    # Each table takes a few small requests, which mostly wait.
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        judged = pool.map(
            lambda table: judge(table, files, catalog.partitions.get(_name(table), ())), catalog.tables
        )
        findings = [finding for table_findings in judged for finding in table_findings]
    return findings + shared_locations(catalog.databases, catalog.tables)


def of_table(endpoints: Path, database: str, name: str) -> list[Finding]:
    """Return the risks of a table of the cluster, without that of its location; LakehouseError as `find`."""
    data = record.load(endpoints, "make lakehouse")
    catalog = _asked(
        data, lambda client: _of(client, [], client.call("get_table_objects_by_name", database, [name]))
    )
    return [
        finding
        for table in catalog.tables
        for finding in judge(table, _files(data), catalog.partitions.get(_name(table), ()))
    ]


def _files(data: Record) -> Files:
    addresses = {name: host.text("address") for name, host in data["hosts"].items()}
    return Files(WebHdfs(data["namenode"].text("http"), data["users"].text("hdfs"), addresses))


def judge(table: Any, files: Files, partitions: Sequence[str] | UnreadableError = ()) -> list[Finding]:
    """Return the risks of one table; one whose metadata cannot be read hides no other's.

    `partitions` are names of a Hive table's partitions, or why they could not be listed.
    """
    kind = table_format.of(table.tableType, table.parameters or {})
    columns, keys = _columns(table.sd and table.sd.cols), _columns(table.partitionKeys)
    risks = type_risks([*columns, *keys])
    try:
        if kind in _JUDGES:
            risks += _JUDGES[kind](table, files)
        elif kind != VIEW:
            if isinstance(partitions, UnreadableError):
                raise partitions
            input_format = str((table.sd and table.sd.inputFormat) or "")
            names = _bucket_files(table, partitions, files)
            hive = HiveTable(table.parameters or {}, columns, keys, input_format, partitions, names)
            risks += hive_risks(hive)
    except _OF_ONE_TABLE as error:
        why = " ".join(str(getattr(error, "message", error)).split())[:_SHOWN] or type(error).__name__
        risks.append(Risk("metadata", UNKNOWN, f"it cannot be read: {why}", _MEND))
    return [Finding(_name(table), kind, risk) for risk in risks]


def _bucket_files(table: Any, partitions: Sequence[str], files: Files) -> list[str]:
    """Return the names of files in folders of a table with buckets: one folder is like the other."""
    if not table.sd or not table.sd.bucketCols or not table.sd.location:
        return []
    place = table.sd.location
    folders = (
        [posixpath.join(place, name) for name in partitions[:_FOLDERS]] if table.partitionKeys else [place]
    )
    return [name for folder in folders for name in files.names(folder) if not name.startswith((".", "_"))]


def _name(table: Any) -> str:
    return f"{table.dbName}.{table.tableName}"


def _columns(fields: Sequence[Any] | None) -> list[tuple[str, str]]:
    return [(str(field.name), str(field.type)) for field in fields or ()]


def shared_locations(databases: Sequence[Any], tables: Sequence[Any]) -> list[Finding]:
    """Return a finding for each table or database whose location equals or is below another's."""
    every_place = [
        place
        for database in databases
        for place in places(
            database.name, "", {"parameters": database.parameters or {}}, [database.locationUri]
        )
    ]
    for table in tables:
        document = {"type": table.tableType, "parameters": table.parameters or {}}
        properties = (table.sd.serdeInfo.parameters if table.sd and table.sd.serdeInfo else None) or {}
        locations = [table.sd.location if table.sd else None, properties.get("path")]
        every_place += places(table.dbName, table.tableName, document, locations)
    return [_overlap(*pair) for pair in overlaps(every_place)]


def _overlap(place: Place, outer: Place) -> Finding:
    name = f"{place.database}.{place.table}" if place.table else place.database
    relation = "is" if place.path == outer.path else "lies in"
    consequence = f"{place.path} {relation} the location of {outer}: to drop one removes files of the other"
    action = f"copy one to a location of its own, or set {SHARED}=true (docs/limits.md)"
    kind = table_format.of(None, place.document["parameters"]) if place.table else "database"
    return Finding(name, kind, Risk("location", LOST, consequence, action))


def summary(findings: Sequence[Finding]) -> list[str]:
    """Return a line for each finding; effects that are harmless so far share a line for all their tables."""
    lines = [str(finding) for finding in findings if finding.risk.effect not in _SHARED_LINES]
    shared: dict[tuple[str, str, str], set[str]] = {}
    for finding in findings:
        if finding.risk.effect in _SHARED_LINES:
            kind = finding.risk.effect, finding.risk.consequence, finding.risk.link
            shared.setdefault(kind, set()).add(finding.table)
    lines += [
        printable(f"{effect}: {consequence}: {', '.join(sorted(tables))}; {link}")
        for (effect, consequence, link), tables in shared.items()
    ]
    return lines or ["no table carries a feature that another engine reads otherwise"]


def _delta(table: Any, files: Files) -> list[Risk]:
    properties = (table.sd.serdeInfo and table.sd.serdeInfo.parameters) or {}
    return delta_risks(*table_files.delta(properties.get("path") or table.sd.location, files))


def _iceberg(table: Any, files: Files) -> list[Risk]:
    metadata = table_files.iceberg(table.parameters.get("metadata_location") or "", files)
    return iceberg_risks(metadata, table_files.live(metadata, files) if is_known(metadata) else Live())


_JUDGES: Mapping[str, Callable[[Any, Files], list[Risk]]] = {"delta": _delta, "iceberg": _iceberg}


@dataclass(frozen=True)
class _Catalog:
    """What the metastore knows; `partitions` are of Hive tables by name, or why they are unknown."""

    databases: list[Any]
    tables: list[Any]
    partitions: Mapping[str, Sequence[str] | UnreadableError]


def _asked(data: Record, ask: Callable[[Metastore], _Catalog]) -> _Catalog:
    """Ask the metastore as HDFS's superuser; MetastoreError where it does not answer."""
    place = data["metastore"]
    endpoint = Endpoint(place.text("address"), place.count("port"))
    options = Options(user=data["users"].text("hdfs"), read=_SECONDS, total=2 * _SECONDS, reply=_REPLY_BYTES)
    with Metastore(str(endpoint), options) as client:
        return ask(client)


def _catalog(client: Metastore) -> _Catalog:
    """Return every database, every table, and the partitions of Hive tables."""
    databases, tables = [], []
    for database in sorted(client.call("get_all_databases")):
        try:
            databases.append(client.call("get_database", database))
        except NoSuchObjectException:
            # It was dropped meanwhile.
            continue
        names = sorted(client.call("get_all_tables", database))
        for first in range(0, len(names), _TABLES):
            tables += client.call("get_table_objects_by_name", database, names[first : first + _TABLES])
    return _of(client, databases, tables)


def _of(client: Metastore, databases: list[Any], tables: list[Any]) -> _Catalog:
    hive_tables = [
        table
        for table in tables
        if table.partitionKeys and table_format.of(None, table.parameters or {}) not in _JUDGES
    ]
    partitions = {_name(table): _partitions(client, table) for table in hive_tables}
    return _Catalog(databases, tables, partitions)


def _partitions(client: Metastore, table: Any) -> Sequence[str] | UnreadableError:
    """Return names of partitions, with one for each key that is null somewhere; or the error."""
    try:
        place = table.dbName, table.tableName
        names = list(client.call("get_partition_names", *place, _PARTITIONS))
        if len(names) < _PARTITIONS:
            return names
        return names + [
            name
            for values in _nulls(len(table.partitionKeys))
            for name in client.call("get_partition_names_ps", *place, values, 1)
        ]
    except (MetaException, NoSuchObjectException) as error:
        return UnreadableError(f"the metastore does not list its partitions: {error.message}", _MEND)


def _nulls(keys: int) -> Iterator[list[str]]:
    """Give what asks for partitions of which one value is null."""
    for null in range(keys):
        yield [NOTHING if place == null else "" for place in range(keys)]
