"""Restore one table or one database from a backup into a running cluster: docs/decisions/0054.

Pure functions decide which tables would be overwritten, and which would share files.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from lakehouse.backup import catalog, engines, restore, shell
from lakehouse.backup.catalog import Catalog, Entry, Place
from lakehouse.catalog.shared_files import normal_path
from lakehouse.clients import Files, MetastoreSession
from lakehouse.errors import LakehouseError, UsageError
from lakehouse.next_command import PROGRAM, command
from lakehouse.rolling import datanodes
from lakehouse.rolling.facts import Living
from lakehouse.rolling.result import Ending, Refusal, Stopped
from lakehouse.rolling.run import Request, Running, Work
from plugins.module_utils.lakehouse import backup_manifest
from plugins.module_utils.lakehouse.counting import counted, first_and_rest
from plugins.module_utils.lakehouse.webhdfs import WebHdfsError

_LONG_SECONDS = 6 * 3600.0
_NAME = re.compile(r"[^.\s]+\.[^.\s]+")
_SHOWN = 20
_KEEPS_PLACE = "iceberg"
_PLACEHOLDER = "-__PLACEHOLDER__"
_MIB = 1024**2


@dataclass(frozen=True)
class RestoredTable:
    """A table to restore: its row of the manifest and its entry, both with the new name."""

    row: Mapping[str, Any]
    entry: Entry

    def __str__(self) -> str:
        return f"{self.entry['database']}.{self.entry['name']}"

    @property
    def folder(self) -> str:
        """The folder of its files; empty for a view."""
        return "" if self.row["format"] == "view" else catalog.location(self.entry)

    @property
    def metadata(self) -> str:
        """Iceberg's metadata file."""
        return str(self.row["metadata"]) if self.row["format"] == _KEEPS_PLACE else ""


DatabaseEntries = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Plan:
    """What to restore: a verified part of a backup, its tables, the folder of a copy, databases to create."""

    part: Mapping[str, Any]
    tables: Sequence[RestoredTable]
    options: Sequence[str]
    copy_folder: str
    databases: DatabaseEntries


def overwritten(tables: Iterable[RestoredTable], current: Mapping[str, Place]) -> list[str]:
    """Return the existing tables that a restore would change; an unchanged Iceberg table is none."""
    return [
        str(table)
        for table in tables
        if (place := current.get(str(table))) and not (table.metadata and table.metadata == place.metadata)
    ]


def shared(tables: Sequence[RestoredTable], current: Mapping[str, Place]) -> str:
    """Return which other table has its files in a restored table's folder; empty for none."""
    names = set(map(str, tables))
    for table in tables:
        for place in current.values():
            same = table.metadata and table.metadata == place.metadata
            if str(place) not in names and (same or catalog.overlap(table.folder, place.location)):
                return f"{place} has its files in {place.location}"
    return ""


def copied(part: Mapping[str, Any], copy_name: str) -> tuple[RestoredTable, str]:
    """Return the one table under another name, and the folder of its copy; empty for an Iceberg table.

    Raises LakehouseError where partitions are outside of its folder, and cannot be copied with it.
    """
    [row], [entry] = part["tables"], part["entries"]
    database, _, name = copy_name.partition(".")
    old_folder = catalog.location(entry)
    folder = f"{old_folder.rpartition('/')[0]}/{name}" if row["format"] not in {_KEEPS_PLACE, "view"} else ""
    inside = f"{normal_path(old_folder)}/"
    if folder and not all(
        normal_path(partition["storage"]["location"]).startswith(inside) for partition in entry["partitions"]
    ):
        raise LakehouseError(
            f"{row['database']}.{row['name']} has partitions outside of {old_folder}: it cannot be copied",
            f"{PROGRAM} restore {part['name']} --table {row['database']}.{row['name']}",
        )
    copy_row = {**row, "database": database, "name": name, "location": folder or row["location"]}
    return RestoredTable(copy_row, catalog.renamed_copy(entry, database, name, folder)), folder


def prepare_restore(living: Living, request: Request) -> Work:
    """Return the plan of a restore: of the whole cluster, or of the tables in the arguments."""
    part = request.arguments["table"] or request.arguments["database"]
    return prepare(living, request) if part else restore.prepare(living, request)


def prepare(living: Living, request: Request) -> Work:
    """Return the plan; a Work with a refusal where the backup is damaged, or tables would share files."""
    arguments = request.arguments
    # An invalid name is rejected before the backup is verified.
    _copy_name(arguments)
    name = [arguments["backup"]] if arguments["backup"] else []
    part = shell.program(
        living.cluster, "verify", *name, *_options(arguments), seconds=_LONG_SECONDS,
        read=backup_manifest.verified_part,
    )  # fmt: skip
    return _planned(part, living, request)


def _planned(part: Mapping[str, Any], living: Living, request: Request) -> Work:
    """Return the plan for a verified part, by the current tables of the metastore."""
    arguments, path, resumed = request.arguments, request.path, request.stopped is not None
    cluster, copy_name = living.cluster, _copy_name(arguments)
    name = str(arguments["table"] or arguments["database"])
    options = _options(arguments)
    typed_words = f"{part['name']} {' '.join(options)}{f' --as {copy_name}' if copy_name else ''}"
    existing: list[str] = []

    def work(
        tables: Sequence[RestoredTable] = (),
        copy_folder: str = "",
        databases: DatabaseEntries = (),
        **settings: Any,
    ) -> Work:
        plan = Plan(part, tables, options, copy_folder, databases)
        return Work(
            target=f"{part['name']} {name}",
            arguments={**arguments, "backup": part["name"]},
            plan=[
                *({"database": database["name"]} for database in databases),
                *({"table": str(table), "format": table.row["format"]} for table in tables),
            ],
            lines=[
                f"restore {name} of {part['name']}{f' as {copy_name}' if copy_name else ''}:"
                f" {counted(len(tables), 'table')}",
                *(f"  {database['name']} (database)" for database in databases),
                *(f"  {table} ({table.row['format']})" for table in tables[:_SHOWN]),
                *([f"  and {len(tables) - _SHOWN} more"] if tables[_SHOWN:] else []),
            ]
            if tables or databases
            else [],
            question="" if resumed else f"Bring {name} back?",
            do=partial(_do, plan, None if resumed else frozenset(existing)),
            typed=name,
            words=typed_words,
            reread=partial(_planned, part),
            **settings,
        )

    if part["problems"]:
        fact = f"damaged: {first_and_rest(part['problems'])}"
        return work(refusal=Refusal(fact, command("backup list", path)))
    cluster_name = str(cluster.variable("lakehouse_cluster"))
    if part["cluster"] != cluster_name:
        raise LakehouseError(
            f"{part['name']} is a backup of {part['cluster']}, not of {cluster_name}",
            command("status", path),
        )
    copy_folder, tables = "", [RestoredTable(*pair) for pair in _pairs(part)]
    if copy_name:
        copy, copy_folder = copied(part, copy_name)
        tables = [copy]
    with MetastoreSession(cluster) as metastore:
        entries = Catalog(metastore)
        current = entries.places()
        databases = [database for database in part["databases"] if not entries.has_database(database["name"])]
        missing = copy_name and not entries.has_database(copy_name.partition(".")[0])
    if missing:
        raise UsageError(f"--as {copy_name}: there is no such database", command("status", path))
    if users := shared(tables, current):
        why = f"{users}, and two tables of the same files destroy each other"
        return work(refusal=Refusal(why, _alternative(part, tables, path)))
    existing = [] if resumed else overwritten(tables, current)
    if copy_name and not resumed and (existing or (copy_folder and Files.of(cluster).exists(copy_folder))):
        occupied = f"{copy_name} exists" if existing else f"{copy_folder} exists"
        retry = f"{PROGRAM} restore {part['name']} {' '.join(options)} --as ..."
        return work(refusal=Refusal(occupied, retry))
    no_room = _room(living, part["room"]["copy" if copy_folder else "lacking"], path)
    if existing:
        suffix = f" and {len(existing) - 1} more of {name}" if existing[1:] else ""
        danger = f"{existing[0]}{suffix} exists and becomes what it was; newer rows leave it"
        return work(tables, databases=databases, refusal=no_room, danger=danger)
    return work(tables, copy_folder, () if copy_name else databases, refusal=no_room)


def _pairs(part: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], Entry]]:
    entries = {(entry["database"], entry["name"]): entry for entry in part["entries"]}
    return [(row, entries[row["database"], row["name"]]) for row in part["tables"]]


def _copy_name(arguments: Mapping[str, Any]) -> str:
    """Return the qualified name of a copy; empty for none; UsageError for an invalid name."""
    table, name = str(arguments["table"]), str(arguments["as"])
    if table and not _NAME.fullmatch(table):
        raise UsageError(f"--table {table} is no table: a name reads as sales.orders")
    if not name:
        return ""
    qualified = name if "." in name else f"{table.partition('.')[0]}.{name}"
    if not _NAME.fullmatch(qualified) or qualified == table:
        raise UsageError(f"--as {name} is no other name for {table}")
    if "/" in qualified:
        raise UsageError(f"--as {name}: a copy's folder is called as the table is, so its name has no /")
    return qualified


def _options(arguments: Mapping[str, Any]) -> list[str]:
    kind = "table" if arguments["table"] else "database"
    return [f"--{kind}", str(arguments[kind])]


def _alternative(part: Mapping[str, Any], tables: Sequence[RestoredTable], path: str) -> str:
    """Return the command to run instead: a query of the Iceberg table as of its snapshot, or `status`."""
    row = part["tables"][0]
    if tables[0].row["format"] == _KEEPS_PLACE and row["version"] is not None:
        name = f"iceberg.{row['database']}.{row['name']}"
        statement = f"select * from {name} for version as of {row['version']}"  # noqa: S608 -- to be read
        return f"{command('sql --engine trino', path)} {shlex.quote(statement)}"
    return command("status", path)


def _room(living: Living, needed: int, path: str) -> Refusal | None:
    """Return that the DataNodes lack space, or that it is unknown; None where they have it."""
    bean = living.bean("NameNodeInfo").then(datanodes.nodes)
    if bean.value is None:
        return Refusal(f"the NameNode does not tell its room: {bean.why}", command("doctor", path))
    return crowded(sum(node.remaining for node in bean.value.values()), needed)


def crowded(available: int, needed: int) -> Refusal | None:
    """Return that the DataNodes lack space for the files; None where they have it."""
    if needed <= available:
        return None
    fact = f"HDFS has room for {available // _MIB} MiB, and the files need {needed // _MIB} MiB"
    return Refusal(fact, "hdfs dfsadmin -report on a node, then the same command")


def _do(plan: Plan, confirmed: frozenset[str] | None, running: Running) -> tuple[str, ...]:
    """Restore; `confirmed` are the tables that may be overwritten, None to overwrite all of a resumed run."""
    try:
        if confirmed is not None:
            _check_unchanged(running.living, plan.tables, confirmed)
        return _steps(plan, running)
    except LakehouseError as error:
        ending = Ending.HALFWAY if running.changed else Ending.FAILED
        raise Stopped(ending, error.message, "" if running.changed else error.next_command or "") from error


def _check_unchanged(living: Living, tables: Sequence[RestoredTable], confirmed: frozenset[str]) -> None:
    """Raise Stopped where a table was created since the confirmation that would be overwritten."""
    path = str(living.cluster.inventory.path)
    with MetastoreSession(living.cluster) as metastore:
        current = Catalog(metastore).places()
    new = [table for table in overwritten(tables, current) if table not in confirmed]
    if fact := f"{new[0]} is there by now" if new else shared(tables, current):
        raise Stopped(Ending.REFUSED, fact, command("status", path))


def _steps(plan: Plan, running: Running) -> tuple[str, ...]:
    part, tables, options = plan.part, plan.tables, plan.options
    living, cluster = running.living, running.living.cluster
    keeper, [metastore, *_] = shell.keeper(cluster), living.having("metastore")

    def program(verb: str, *parameters: str, read: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        """Run a program of the host that stores backups for these tables."""
        return shell.program(
            cluster, verb, part["name"], *options, *parameters, seconds=_LONG_SECONDS, read=read
        )

    running.begins(keeper, "files")
    running.say("brings the files back")
    folder_option = ["--into", plan.copy_folder] if plan.copy_folder else []
    files = program("reconcile", *folder_option, read=backup_manifest.brought)
    running.done(keeper, "files", **files)
    running.begins(metastore.name, "catalog")
    running.say("writes the catalog")
    previous = _write(living, plan)
    # The journal has the state that was replaced.
    running.done(metastore.name, "catalog", before=previous)
    if not tables:
        return ("the database is there, and has no tables",)
    running.say("compares with the manifest, in Spark and in Trino")
    rows = [table.row for table in tables]
    name_option = ["--named", str(tables[0])] if str(tables[0]) not in _names(part) else []
    spark = program("compare", *name_option, read=backup_manifest.compared)
    differences = [*spark["differences"], *engines.differences(cluster, rows)]
    for line in differences:
        running.say(line)
    if differences:
        raise Stopped(Ending.HALFWAY, f"not as in the manifest: {first_and_rest(differences)}", "")
    return tuple(_facts(rows, files, previous))


def _names(part: Mapping[str, Any]) -> set[str]:
    return {f"{row['database']}.{row['name']}" for row in part["tables"]}


def _write(living: Living, plan: Plan) -> dict[str, str]:
    """Write the entries of the tables; return the old location of each one that was replaced."""
    tables = plan.tables
    with MetastoreSession(living.cluster) as metastore:
        entries = Catalog(metastore)
        current = entries.places()
        for database in plan.databases:
            if not entries.has_database(database["name"]):
                entries.make_database(database)
        for table in tables:
            entries.put(table.entry)
            _without_placeholder(living, table.entry)
    return {
        str(table): old
        for table in tables
        if (place := current.get(str(table)))
        and (old := place.metadata or place.location)
        and old != (table.metadata or table.folder)
    }


def _without_placeholder(living: Living, entry: Entry) -> None:
    """Remove the folder that the metastore creates for a Spark table whose files are elsewhere.

    Spark does so too. Only where it is empty: the call is not recursive.
    """
    folder = normal_path(str((entry["storage"] or {}).get("location") or ""))
    if folder.endswith(_PLACEHOLDER):
        with suppress(WebHdfsError):
            Files.of(living.cluster).hdfs.call("DELETE", "DELETE", folder, recursive="false")


def _facts(
    rows: Sequence[Mapping[str, Any]], files: Mapping[str, Any], previous: Mapping[str, str]
) -> Iterable[str]:
    yield counted(files["written"], "file written", "files written")
    if files["aside"]:
        yield f"{files['aside']} set aside in {files['place']}"
    if len(previous) == 1:
        [location] = previous.values()
        yield f"until now it was {location}"
    counted_tables = sum(row["rows"] is not None for row in rows)
    yield f"{counted_tables} of {counted(len(rows), 'table')} counted, and equal to the manifest"
