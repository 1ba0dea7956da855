"""Brings one table of a backup back, or one database, into the cluster that runs: docs/decisions/0054.

What decides is pure: which tables of the catalog are in the way, and which have the same files.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from lakehouse.catalog.shared_files import normal_path
from lakehouse.errors import LakehouseError, UsageError
from lakehouse.next_command import PROGRAM, command
from ops.backup import catalog, engines, restore, shell
from ops.backup.catalog import Catalog, Entry, Place
from ops.change import datanodes
from ops.change.facts import Living
from ops.change.result import Ending, Refusal, Stopped
from ops.change.run import Request, Running, Work
from ops.clients import Files, MetastoreSession
from plugins.module_utils.lakehouse import backup_manifest
from plugins.module_utils.lakehouse.counting import counted
from plugins.module_utils.lakehouse.webhdfs import WebHdfsError

_LONG_SECONDS = 6 * 3600.0
_NAME = re.compile(r"[^.\s]+\.[^.\s]+")
_SHOWN = 20
_KEEPS_PLACE = "iceberg"
_PLACEHOLDER = "-__PLACEHOLDER__"
_MIB = 1024**2


@dataclass(frozen=True)
class Wanted:
    """A table that comes back: its row of the manifest and its entry, both as they will be named."""

    row: Mapping[str, Any]
    entry: Entry

    def __str__(self) -> str:
        return f"{self.entry['database']}.{self.entry['name']}"

    @property
    def folder(self) -> str:
        """Where its files will be; empty for a view."""
        return "" if self.row["format"] == "view" else catalog.location(self.entry)

    @property
    def metadata(self) -> str:
        """Iceberg's metadata file."""
        return str(self.row["metadata"]) if self.row["format"] == _KEEPS_PLACE else ""


# Entries of databases.
Homes = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Planned:
    """What comes back: of which part of a backup, the tables, the folder of a copy, and databases to make."""

    found: Mapping[str, Any]
    wanted: Sequence[Wanted]
    words: Sequence[str]
    into: str
    homes: Homes


def in_the_way(wanted: Iterable[Wanted], live: Mapping[str, Place]) -> list[str]:
    """Return the tables of the catalog that would become what they were: an Iceberg table may be it still."""
    return [
        str(one)
        for one in wanted
        if (there := live.get(str(one))) and not (one.metadata and one.metadata == there.metadata)
    ]


def shared(wanted: Sequence[Wanted], live: Mapping[str, Place]) -> str:
    """Return which table has files where one comes back: each would remove the other's. Empty for none."""
    names = set(map(str, wanted))
    for one in wanted:
        for place in live.values():
            same = one.metadata and one.metadata == place.metadata
            if str(place) not in names and (same or catalog.overlap(one.folder, place.location)):
                return f"{place} has its files in {place.location}"
    return ""


def beside(found: Mapping[str, Any], other: str) -> tuple[Wanted, str]:
    """Return the one table under another name, and the folder of its copy: none for an Iceberg table.

    Raises LakehouseError where its partitions are elsewhere, and cannot be copied with it.
    """
    [row], [entry] = found["tables"], found["entries"]
    database, _, name = other.partition(".")
    old = catalog.location(entry)
    folder = f"{old.rpartition('/')[0]}/{name}" if row["format"] not in {_KEEPS_PLACE, "view"} else ""
    inside = f"{normal_path(old)}/"
    if folder and not all(
        normal_path(one["storage"]["location"]).startswith(inside) for one in entry["partitions"]
    ):
        raise LakehouseError(
            f"{row['database']}.{row['name']} has partitions outside of {old}: it cannot be copied",
            f"{PROGRAM} restore {found['name']} --table {row['database']}.{row['name']}",
        )
    changed = {**row, "database": database, "name": name, "location": folder or row["location"]}
    return Wanted(changed, catalog.renamed(entry, database, name, folder)), folder


def prepare_restore(living: Living, request: Request) -> Work:
    """Return the plan of a restore, of the whole cluster or of the tables that the arguments name."""
    part = request.arguments["table"] or request.arguments["database"]
    return prepare(living, request) if part else restore.prepare(living, request)


def prepare(living: Living, request: Request) -> Work:
    """Return the plan; a Work with a refusal where the backup is damaged, or files would be another's too."""
    arguments = request.arguments
    # A name that is none is said before anything is read.
    _other(arguments)
    name = [arguments["backup"]] if arguments["backup"] else []
    found = shell.program(
        living.cluster, "verify", *name, *_words(arguments), seconds=_LONG_SECONDS,
        read=backup_manifest.verified_part,
    )  # fmt: skip
    return _planned(found, living, request)


def _planned(found: Mapping[str, Any], living: Living, request: Request) -> Work:
    """Return the plan of a part that was verified, by what the metastore has now."""
    arguments, path, resumed = request.arguments, request.path, request.stopped is not None
    cluster, other = living.cluster, _other(arguments)
    what = str(arguments["table"] or arguments["database"])
    words = _words(arguments)
    again = f"{found['name']} {' '.join(words)}{f' --as {other}' if other else ''}"
    way: list[str] = []

    def work(wanted: Sequence[Wanted] = (), into: str = "", homes: Homes = (), **more: Any) -> Work:
        return Work(
            target=f"{found['name']} {what}",
            arguments={**arguments, "backup": found["name"]},
            plan=[
                *({"database": one["name"]} for one in homes),
                *({"table": str(one), "format": one.row["format"]} for one in wanted),
            ],
            lines=[
                f"restore {what} of {found['name']}{f' as {other}' if other else ''}:"
                f" {counted(len(wanted), 'table')}",
                *(f"  {one['name']} (database)" for one in homes),
                *(f"  {one} ({one.row['format']})" for one in wanted[:_SHOWN]),
                *([f"  and {len(wanted) - _SHOWN} more"] if wanted[_SHOWN:] else []),
            ]
            if wanted or homes
            else [],
            question="" if resumed else f"Bring {what} back?",
            do=partial(_do, Planned(found, wanted, words, into, homes), None if resumed else frozenset(way)),
            typed=what,
            words=again,
            reread=partial(_planned, found),
            **more,
        )

    if found["problems"]:
        more = f" and {len(found['problems']) - 1} more" if found["problems"][1:] else ""
        return work(refusal=Refusal(f"damaged: {found['problems'][0]}{more}", command("backup list", path)))
    known = str(cluster.variable("lakehouse_cluster"))
    if found["cluster"] != known:
        raise LakehouseError(
            f"{found['name']} is a backup of {found['cluster']}, not of {known}",
            command("status", path),
        )
    into, wanted = "", [Wanted(*pair) for pair in _pairs(found)]
    if other:
        copy, into = beside(found, other)
        wanted = [copy]
    with MetastoreSession(cluster) as metastore:
        entries = Catalog(metastore)
        live = entries.places()
        homes = [one for one in found["databases"] if not entries.has_database(one["name"])]
        missing = other and not entries.has_database(other.partition(".")[0])
    if missing:
        raise UsageError(f"--as {other}: there is no such database", command("status", path))
    if users := shared(wanted, live):
        why = f"{users}, and two tables of the same files destroy each other"
        return work(refusal=Refusal(why, _way_out(found, wanted, path)))
    way = [] if resumed else in_the_way(wanted, live)
    if other and not resumed and (way or (into and Files.of(cluster).exists(into))):
        there = f"{other} exists" if way else f"{into} exists"
        return work(refusal=Refusal(there, f"{PROGRAM} restore {found['name']} {' '.join(words)} --as ..."))
    no_room = _room(living, found["room"]["copy" if into else "lacking"], path)
    if way:
        more = f" and {len(way) - 1} more of {what}" if way[1:] else ""
        danger = f"{way[0]}{more} exists and becomes what it was; newer rows leave it"
        return work(wanted, homes=homes, refusal=no_room, danger=danger)
    return work(wanted, into, () if other else homes, refusal=no_room)


def _pairs(found: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], Entry]]:
    entries = {(one["database"], one["name"]): one for one in found["entries"]}
    return [(row, entries[row["database"], row["name"]]) for row in found["tables"]]


def _other(arguments: Mapping[str, Any]) -> str:
    """Return the whole name of a copy; UsageError for what is no name."""
    table, other = str(arguments["table"]), str(arguments["as"])
    if table and not _NAME.fullmatch(table):
        raise UsageError(f"--table {table} is no table: a name reads as sales.orders")
    if not other:
        return ""
    whole = other if "." in other else f"{table.partition('.')[0]}.{other}"
    if not _NAME.fullmatch(whole) or whole == table:
        raise UsageError(f"--as {other} is no other name for {table}")
    if "/" in whole:
        raise UsageError(f"--as {other}: a copy's folder is called as the table is, so its name has no /")
    return whole


def _words(arguments: Mapping[str, Any]) -> list[str]:
    kind = "table" if arguments["table"] else "database"
    return [f"--{kind}", str(arguments[kind])]


def _way_out(found: Mapping[str, Any], wanted: Sequence[Wanted], path: str) -> str:
    """Return what to do instead: rows of an Iceberg table that is there are read as of their snapshot."""
    row = found["tables"][0]
    if wanted[0].row["format"] == _KEEPS_PLACE and row["version"] is not None:
        name = f"iceberg.{row['database']}.{row['name']}"
        statement = f"select * from {name} for version as of {row['version']}"  # noqa: S608 -- to be read
        return f"{command('sql --engine trino', path)} {shlex.quote(statement)}"
    return command("status", path)


def _room(living: Living, needed: int, path: str) -> Refusal | None:
    """Return that the DataNodes have no room for so many bytes, or do not say; None where they have."""
    bean = living.bean("NameNodeInfo").then(datanodes.nodes)
    if bean.value is None:
        return Refusal(f"the NameNode does not tell its room: {bean.why}", command("doctor", path))
    return crowded(sum(node.remaining for node in bean.value.values()), needed)


def crowded(there: int, needed: int) -> Refusal | None:
    """Return that the DataNodes have no room for so many bytes; None where they have."""
    if needed <= there:
        return None
    fact = f"HDFS has room for {there // _MIB} MiB, and the files need {needed // _MIB} MiB"
    return Refusal(fact, "hdfs dfsadmin -report on a node, then the same command")


def _do(plan: Planned, known: frozenset[str] | None, running: Running) -> tuple[str, ...]:
    """Do it; `known` are the tables that may become what they were, None for those that are there."""
    try:
        if known is not None:
            _still(running.living, plan.wanted, known)
        return _steps(plan, running)
    except LakehouseError as error:
        ending = Ending.HALFWAY if running.changed else Ending.FAILED
        raise Stopped(ending, error.message, "" if running.changed else error.next_command or "") from error


def _still(living: Living, wanted: Sequence[Wanted], known: frozenset[str]) -> None:
    """Return if nothing has come into the way since the confirmation."""
    path = str(living.cluster.inventory.path)
    with MetastoreSession(living.cluster) as metastore:
        live = Catalog(metastore).places()
    fresh = [one for one in in_the_way(wanted, live) if one not in known]
    if fact := f"{fresh[0]} is there by now" if fresh else shared(wanted, live):
        raise Stopped(Ending.REFUSED, fact, command("status", path))


def _steps(plan: Planned, running: Running) -> tuple[str, ...]:
    found, wanted, words = plan.found, plan.wanted, plan.words
    living, cluster = running.living, running.living.cluster
    keeper, [metastore, *_] = shell.keeper(cluster), living.having("metastore")

    def program(verb: str, *more: str, read: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        """Run a program of the backup's keeper about these tables."""
        return shell.program(cluster, verb, found["name"], *words, *more, seconds=_LONG_SECONDS, read=read)

    running.begins(keeper, "files")
    running.say("brings the files back")
    place = ["--into", plan.into] if plan.into else []
    files = program("reconcile", *place, read=backup_manifest.brought)
    running.done(keeper, "files", **files)
    running.begins(metastore.name, "catalog")
    running.say("writes the catalog")
    before = _write(living, plan)
    # An operator who wants a state back that this has replaced finds it here.
    running.done(metastore.name, "catalog", before=before)
    if not wanted:
        return ("the database is there, and has no tables",)
    running.say("compares with the manifest, in Spark and in Trino")
    rows = [one.row for one in wanted]
    named = ["--named", str(wanted[0])] if str(wanted[0]) not in _names(found) else []
    spark = program("compare", *named, read=backup_manifest.compared)
    wrong = [*spark["differences"], *engines.differences(cluster, rows)]
    for line in wrong:
        running.say(line)
    if wrong:
        more = f" and {len(wrong) - 1} more" if wrong[1:] else ""
        raise Stopped(Ending.HALFWAY, f"not as in the manifest: {wrong[0]}{more}", "")
    return tuple(_facts(rows, files, before))


def _names(found: Mapping[str, Any]) -> set[str]:
    return {f"{row['database']}.{row['name']}" for row in found["tables"]}


def _write(living: Living, plan: Planned) -> dict[str, str]:
    """Write the entries of the tables; return where each was that has been another one until now."""
    wanted = plan.wanted
    with MetastoreSession(living.cluster) as metastore:
        entries = Catalog(metastore)
        live = entries.places()
        for database in plan.homes:
            if not entries.has_database(database["name"]):
                entries.make_database(database)
        for one in wanted:
            entries.put(one.entry)
            _without_placeholder(living, one.entry)
    there = [(str(one), live[str(one)], one.metadata or one.folder) for one in wanted if str(one) in live]
    before = ((name, place.metadata or place.location, now) for name, place, now in there)
    return {name: was for name, was, now in before if was and was != now}


def _without_placeholder(living: Living, entry: Entry) -> None:
    """Remove the folder that the metastore makes for a table of Spark whose files are elsewhere.

    Spark does so too. Only where it is empty: the call is not recursive.
    """
    folder = normal_path(str((entry["storage"] or {}).get("location") or ""))
    if folder.endswith(_PLACEHOLDER):
        with suppress(WebHdfsError):
            Files.of(living.cluster).hdfs.call("DELETE", "DELETE", folder, recursive="false")


def _facts(
    rows: Sequence[Mapping[str, Any]], files: Mapping[str, Any], before: Mapping[str, str]
) -> Iterable[str]:
    yield counted(files["written"], "file written", "files written")
    if files["aside"]:
        yield f"{files['aside']} set aside in {files['place']}"
    if len(before) == 1:
        [place] = before.values()
        yield f"until now it was {place}"
    known = sum(row["rows"] is not None for row in rows)
    yield f"{known} of {counted(len(rows), 'table')} counted, and equal to the manifest"
