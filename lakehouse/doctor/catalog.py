"""Checks of the metastore and of its database."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from lakehouse import yamlfile
from lakehouse.catalog.shared_files import overlaps, places
from lakehouse.doctor.model import SETTLED_SECONDS, Case, Check, Fault, Snapshot, judged, runs
from lakehouse.doctor.probes import CALLS
from lakehouse.maybe import Answer, unknown
from lakehouse.run import ROOT
from lakehouse.status import judge, questions
from lakehouse.tables import hive_types
from lakehouse.validation.finding import Level
from plugins.module_utils.lakehouse.counting import counted

# Output of a successful login of the metastore, and PostgreSQL's SQLSTATE of a failed one.
_LOGGED_IN, _STATE, _NOT_AUTHORIZED = "ok", re.compile(r"[0-9A-Z]{5}"), "28"
_SESSIONS = (
    "SELECT usename, application_name, client_addr, state, count(*) FROM pg_stat_activity GROUP BY 1, 2, 3, 4"
)
# Minimum for users and other engines; the metastore holds its connections from its start.
_FREE_CONNECTIONS = 8
# A lock without heartbeats expires after hive_metastore_lock_seconds; this is much later.
_LOCK_SECONDS, _LOCK_TIMES = 900, 3


@cache
def _role(folder: str) -> Mapping[str, object]:
    """Return the metastore role's variables, with unrendered templates."""
    variables: Mapping[str, object] = yamlfile.read(ROOT / "roles" / "hive_metastore" / folder / "main.yml")
    return variables


def _of_rows(
    snapshot: Snapshot, find_faults: Callable[[Mapping[str, str]], Iterator[Fault]], part: str = "catalog"
) -> Iterator[Case]:
    """Yield the case of a query's rows; none where another check reports why the query failed."""
    database = snapshot.active("postgresql")
    rows = snapshot.part(database.host, part).then(_rows)
    if judge.is_full(rows.why) or judge.is_lost(rows.why):
        return
    yield Case(database.host, judged(rows, find_faults), database)


def _rows(text: str) -> dict[str, str]:
    return dict(line.split("|", 1) for line in text.strip().splitlines())


def _calls(snapshot: Snapshot) -> Iterator[Case]:
    """Check that many parallel calls succeed: a dead connection in the pool makes some fail."""
    metastore, database = snapshot.active("metastore"), snapshot.active("postgresql")
    failed = [why for name in CALLS if (why := snapshot.answers[name].why)]
    if not failed:
        yield Case(metastore.host, Answer(()))
    elif not (runs(metastore) and runs(database)):
        # The checks of units and hosts report a stopped service and a silent host.
        yield Case(metastore.host, unknown(failed[0]), database if runs(metastore) else metastore)
    elif _refused(snapshot):
        # The check of the login reports why, and a restart would not fix it.
        return
    elif snapshot.age(metastore) < SETTLED_SECONDS:
        yield Case(metastore.host, unknown(failed[0]), metastore)
    else:
        fact = f"{len(failed)} of {counted(len(CALLS), 'call')} fail: {failed[0]}"
        action = snapshot.on(metastore.host, f"systemctl restart {metastore.unit}")
        yield Case(metastore.host, Answer((Fault(fact, action, "an answer to each"),)))


def _refused(snapshot: Snapshot) -> str:
    """Return why PostgreSQL refuses the metastore's login; empty where it does not, or if unknown."""
    output = (snapshot.part(snapshot.active("metastore").host, "login").value or "").strip()
    return "" if output == _LOGGED_IN else output


def _login(snapshot: Snapshot) -> Iterator[Case]:
    """Check that PostgreSQL accepts the metastore's password."""
    metastore = snapshot.active("metastore")

    def refused(text: str) -> Iterator[Fault]:
        output = text.strip()
        state, _, message = output.partition(" ")
        if output != _LOGGED_IN and not _STATE.fullmatch(state):
            raise ValueError(output)
        if state[:2] == _NOT_AUTHORIZED:
            yield Fault(f"PostgreSQL refuses the metastore's login: {message}", snapshot.site, "a session")

    yield Case(
        metastore.host, judged(snapshot.part(metastore.host, "login"), refused), snapshot.active("postgresql")
    )


def _exhausted(snapshot: Snapshot) -> Iterator[Case]:
    """Check that PostgreSQL accepts sessions of the metastore: free connections, and the database."""
    database = snapshot.active("postgresql")
    parts = ((database.host, "catalog"), (database.host, "connections"))
    why = [snapshot.part(host, name).why for host, name in parts] + [_refused(snapshot)]

    def none_left(rows: Mapping[str, str]) -> Iterator[Fault]:
        if (used := int(rows["used"])) >= int(rows["allowed"]):
            yield Fault(f"no connection is left: {used} are used", snapshot.restart(database))

    if any(map(judge.is_full, why)):
        fact = f"no connection is left: {next(filter(judge.is_full, why))}"
        yield Case(database.host, Answer((Fault(fact, snapshot.restart(database)),)))
    else:
        rows = snapshot.part(database.host, "connections").then(_rows)
        yield Case(database.host, judged(rows, none_left), database)


def _lost(snapshot: Snapshot) -> Iterator[Case]:
    database = snapshot.active("postgresql")
    answer = snapshot.part(database.host, "catalog")
    if judge.is_lost(answer.why):
        yield Case(database.host, Answer((Fault(answer.why, judge.restore(snapshot.status)),)))
    elif not judge.is_full(answer.why):
        yield Case(database.host, answer.then(_rows).then(lambda _: ()), database)


def _schema(snapshot: Snapshot) -> Iterator[Case]:
    expected = str(_role("vars")["hive_metastore_schema_version"])

    def wrong_version(rows: Mapping[str, str]) -> Iterator[Fault]:
        if (version := rows["schema"]) != expected:
            fact = f"the schema in the database has version {version or 'none'}"
            yield Fault(fact, snapshot.journal(snapshot.active("metastore")), expected)

    return _of_rows(snapshot, wrong_version)


def _connections(snapshot: Snapshot) -> Iterator[Case]:
    def many(rows: Mapping[str, str]) -> Iterator[Fault]:
        used, allowed = int(rows["used"]), int(rows["allowed"])
        # Another check reports that none is left.
        if 0 < allowed - used < _FREE_CONNECTIONS:
            host = snapshot.host(snapshot.active("postgresql").host)
            action = snapshot.on(host.name, f"sh -c {shlex.quote(questions.server_psql(host, _SESSIONS))}")
            expected = f"at least {_FREE_CONNECTIONS} free"
            yield Fault(
                f"{used} of {counted(allowed, 'connection')} are used", action, expected, Level.WARNING
            )

    return _of_rows(snapshot, many, "connections")


def _locks(snapshot: Snapshot) -> Iterator[Case]:
    name, metastore = "hive_metastore_lock_seconds", snapshot.active("metastore")
    timeout = int(str(snapshot.variable(metastore.host, name, _role("defaults")[name])))
    limit = max(_LOCK_SECONDS, _LOCK_TIMES * timeout)

    def forgotten(rows: Mapping[str, str]) -> Iterator[Fault]:
        if (oldest := rows["lock_seconds"]) and int(oldest) > limit:
            fact = f"a lock is kept whose holder has been silent for {oldest} s"
            yield Fault(fact, snapshot.journal(metastore), f"at most {timeout} s")

    return _of_rows(snapshot, forgotten)


def _locations(snapshot: Snapshot) -> Iterator[Case]:
    def misplaced(rows: Mapping[str, str]) -> Iterator[Fault]:
        if count := int(rows["misplaced"]):
            number = counted(count, "table or database is", "tables or databases are")
            fact = f"{number} on a local disk, or at a host of HDFS by its name"
            action = snapshot.lakehouse("risky-tables")
            expected = f"hdfs://{snapshot.cluster.variable('lakehouse_nameservice')}/..."
            yield Fault(fact, action, expected, Level.WARNING)

    return _of_rows(snapshot, misplaced)


def _overlaps(snapshot: Snapshot) -> Iterator[Case]:
    def shared(rows: Mapping[str, str]) -> Iterator[Fault]:
        locations = (
            place
            for row in json.loads(rows["overlaps"])
            for place in places(row["database"], row["table"], row, [row["location"]])
        )
        if pairs := list(overlaps(locations)):
            inner, outer = pairs[0]
            suffix = f", and {len(pairs) - 1} more" if pairs[1:] else ""
            relation = "has" if inner.path == outer.path else "lies in"
            fact = (
                f"{inner} {relation} the location of {outer}{suffix}: to drop one removes files of the other"
            )
            yield Fault(fact, snapshot.lakehouse("risky-tables"), "a location of its own", Level.WARNING)

    return _of_rows(snapshot, shared, "overlaps")


def _types(snapshot: Snapshot) -> Iterator[Case]:
    def unreadable_types(rows: Mapping[str, str]) -> Iterator[Fault]:
        columns = json.loads(rows["types"])
        if unreadable := [
            (column, why) for column in columns if (why := hive_types.unreadable(column["type"]))
        ]:
            column, why = unreadable[0]
            suffix = f", and of {len(unreadable) - 1} more" if unreadable[1:] else ""
            place = f"{column['database']}.{column['table']}.{column['column']}"
            fact = f"Trino cannot read the type of {place} ({why}){suffix}, nor list the columns of any table"
            yield Fault(fact, snapshot.lakehouse("risky-tables"), "names of letters, digits and _")

    return _of_rows(snapshot, unreadable_types, "types")


CHECKS = (
    Check("metastore.calls", "some calls of the metastore fail", _calls),
    Check("metastore.login", "PostgreSQL refuses the password of the metastore", _login),
    Check(
        "metastore.schema",
        "the schema is not the one that this metastore wants",
        _schema,
        "run the metastore's version that has made the schema, or restore a backup of it",
    ),
    Check(
        "metastore.locks",
        "a lock outlives its holder",
        _locks,
        "end the transaction that holds it, in the engine that has begun it",
    ),
    Check(
        "metastore.locations",
        "a table lies on a local disk, or names a host",
        _locations,
        "copy the table to a location with the nameservice, and drop this one",
    ),
    Check(
        "metastore.overlaps",
        "a table or database has the location of another one, or lies in it",
        _overlaps,
        "copy one of them to a location of its own",
    ),
    Check(
        "metastore.types",
        "a table has a field whose name Trino cannot read, and with it no list of columns",
        _types,
        "rename the field with Spark: ALTER TABLE db.t RENAME COLUMN s.`a-b` TO a_b; or drop the table",
    ),
    Check(
        "postgresql.connections",
        "PostgreSQL soon refuses connections",
        _connections,
        "close idle sessions, or set postgresql_max_connections higher and run site.yml",
    ),
    Check("postgresql.exhausted", "PostgreSQL refuses sessions: all connections are used", _exhausted),
    Check(
        "postgresql.lost",
        "the metastore's database is gone",
        _lost,
        "set the whole cluster back to a backup",
    ),
)
