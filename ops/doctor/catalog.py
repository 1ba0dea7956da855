"""Checks of the metastore and of its database."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from lakehouse import hive_types, yamlfile
from lakehouse.catalog.shared_files import overlaps, places
from lakehouse.run import ROOT
from lakehouse.validation.finding import Level
from ops.doctor.model import SETTLED_SECONDS, Case, Check, Fault, Seen, judged, runs
from ops.doctor.probes import CALLS
from ops.maybe import Answer, unknown
from ops.status import judge, questions
from plugins.module_utils.lakehouse.counting import counted

# What the metastore's login prints where it succeeds, and PostgreSQL's codes where it does not.
_LOGGED_IN, _STATE, _NOT_AUTHORIZED = "ok", re.compile(r"[0-9A-Z]{5}"), "28"
_SESSIONS = (
    "SELECT usename, application_name, client_addr, state, count(*) FROM pg_stat_activity GROUP BY 1, 2, 3, 4"
)
# The metastore holds its own from the start; this many are left for people and other engines.
_FREE_CONNECTIONS = 8
# A lock whose holder is silent goes after hive_metastore_lock_seconds, at the next look; this is much later.
_LOCK_SECONDS, _LOCK_TIMES = 900, 3


@cache
def _role(folder: str) -> Mapping[str, object]:
    """The metastore role's own variables; templates in them are as they stand."""
    found: Mapping[str, object] = yamlfile.read(ROOT / "roles" / "hive_metastore" / folder / "main.yml")
    return found


def _of_rows(
    seen: Seen, judge_it: Callable[[Mapping[str, str]], Iterator[Fault]], part: str = "catalog"
) -> Iterator[Case]:
    """Give the case of what the database or the server counts; none where another check says why not."""
    database = seen.active("postgresql")
    rows = seen.part(database.host, part).then(_rows)
    if judge.is_full(rows.why) or judge.is_lost(rows.why):
        return
    yield Case(database.host, judged(rows, judge_it), database)


def _rows(text: str) -> dict[str, str]:
    return dict(line.split("|", 1) for line in text.strip().splitlines())


def _calls(seen: Seen) -> Iterator[Case]:
    """Every one of many calls at once is answered: a connection of its pool that died fails some of them."""
    metastore, database = seen.active("metastore"), seen.active("postgresql")
    failed = [why for name in CALLS if (why := seen.answers[name].why)]
    if not failed:
        yield Case(metastore.host, Answer(()))
    elif not (runs(metastore) and runs(database)):
        # Who is stopped is said by the unit, and who is silent by the host.
        yield Case(metastore.host, unknown(failed[0]), database if runs(metastore) else metastore)
    elif _refused(seen):
        # A check of its own says why, and a restart would not mend it.
        return
    elif seen.age(metastore) < SETTLED_SECONDS:
        yield Case(metastore.host, unknown(failed[0]), metastore)
    else:
        fact = f"{len(failed)} of {counted(len(CALLS), 'call')} fail: {failed[0]}"
        action = seen.on(metastore.host, f"systemctl restart {metastore.unit}")
        yield Case(metastore.host, Answer((Fault(fact, action, "an answer to each"),)))


def _refused(seen: Seen) -> str:
    """Return why PostgreSQL refuses the metastore's own login; empty where it does not, or is not known."""
    said = (seen.part(seen.active("metastore").host, "login").value or "").strip()
    return "" if said == _LOGGED_IN else said


def _login(seen: Seen) -> Iterator[Case]:
    """PostgreSQL takes the password that the metastore has."""
    metastore = seen.active("metastore")

    def refused(text: str) -> Iterator[Fault]:
        said = text.strip()
        state, _, words = said.partition(" ")
        if said != _LOGGED_IN and not _STATE.fullmatch(state):
            raise ValueError(said)
        if state[:2] == _NOT_AUTHORIZED:
            yield Fault(f"PostgreSQL refuses the metastore's login: {words}", seen.site, "a session")

    yield Case(metastore.host, judged(seen.part(metastore.host, "login"), refused), seen.active("postgresql"))


def _exhausted(seen: Seen) -> Iterator[Case]:
    """PostgreSQL takes sessions of the metastore: it has connections left, and its database."""
    database = seen.active("postgresql")
    parts = ((database.host, "catalog"), (database.host, "connections"))
    why = [seen.part(host, name).why for host, name in parts] + [_refused(seen)]

    def none_left(rows: Mapping[str, str]) -> Iterator[Fault]:
        if (used := int(rows["used"])) >= int(rows["allowed"]):
            yield Fault(f"no connection is left: {used} are used", seen.restart(database))

    if any(map(judge.is_full, why)):
        fact = f"no connection is left: {next(filter(judge.is_full, why))}"
        yield Case(database.host, Answer((Fault(fact, seen.restart(database)),)))
    else:
        rows = seen.part(database.host, "connections").then(_rows)
        yield Case(database.host, judged(rows, none_left), database)


def _lost(seen: Seen) -> Iterator[Case]:
    database = seen.active("postgresql")
    answer = seen.part(database.host, "catalog")
    if judge.is_lost(answer.why):
        yield Case(database.host, Answer((Fault(answer.why, judge.restore(seen.status)),)))
    elif not judge.is_full(answer.why):
        yield Case(database.host, answer.then(_rows).then(lambda _: ()), database)


def _schema(seen: Seen) -> Iterator[Case]:
    expected = str(_role("vars")["hive_metastore_schema_version"])

    def other(rows: Mapping[str, str]) -> Iterator[Fault]:
        if (found := rows["schema"]) != expected:
            fact = f"the schema in the database has version {found or 'none'}"
            yield Fault(fact, seen.journal(seen.active("metastore")), expected)

    return _of_rows(seen, other)


def _connections(seen: Seen) -> Iterator[Case]:
    def many(rows: Mapping[str, str]) -> Iterator[Fault]:
        used, allowed = int(rows["used"]), int(rows["allowed"])
        # Where none is left, a check of its own says so.
        if 0 < allowed - used < _FREE_CONNECTIONS:
            host = seen.host(seen.active("postgresql").host)
            action = seen.on(host.name, f"sh -c {shlex.quote(questions.server_psql(host, _SESSIONS))}")
            expected = f"at least {_FREE_CONNECTIONS} free"
            yield Fault(
                f"{used} of {counted(allowed, 'connection')} are used", action, expected, Level.WARNING
            )

    return _of_rows(seen, many, "connections")


def _locks(seen: Seen) -> Iterator[Case]:
    name, metastore = "hive_metastore_lock_seconds", seen.active("metastore")
    kept = int(str(seen.variable(metastore.host, name, _role("defaults")[name])))
    limit = max(_LOCK_SECONDS, _LOCK_TIMES * kept)

    def forgotten(rows: Mapping[str, str]) -> Iterator[Fault]:
        if (oldest := rows["lock_seconds"]) and int(oldest) > limit:
            fact = f"a lock is kept whose holder has been silent for {oldest} s"
            yield Fault(fact, seen.journal(metastore), f"at most {kept} s")

    return _of_rows(seen, forgotten)


def _locations(seen: Seen) -> Iterator[Case]:
    def misplaced(rows: Mapping[str, str]) -> Iterator[Fault]:
        if count := int(rows["misplaced"]):
            those = counted(count, "table or database is", "tables or databases are")
            fact = f"{those} on a local disk, or at a host of HDFS by its name"
            action = seen.lakehouse("risky-tables")
            expected = f"hdfs://{seen.cluster.variable('lakehouse_nameservice')}/..."
            yield Fault(fact, action, expected, Level.WARNING)

    return _of_rows(seen, misplaced)


def _overlaps(seen: Seen) -> Iterator[Case]:
    def shared(rows: Mapping[str, str]) -> Iterator[Fault]:
        known = (
            place
            for one in json.loads(rows["overlaps"])
            for place in places(one["database"], one["table"], one, [one["location"]])
        )
        if found := list(overlaps(known)):
            place, other = found[0]
            more = f", and {len(found) - 1} more" if found[1:] else ""
            relation = "has" if place.path == other.path else "lies in"
            fact = f"{place} {relation} the location of {other}{more}: to drop one removes files of the other"
            yield Fault(fact, seen.lakehouse("risky-tables"), "a location of its own", Level.WARNING)

    return _of_rows(seen, shared, "overlaps")


def _types(seen: Seen) -> Iterator[Case]:
    def unreadable(rows: Mapping[str, str]) -> Iterator[Fault]:
        columns = json.loads(rows["types"])
        if found := [(one, why) for one in columns if (why := hive_types.unreadable(one["type"]))]:
            one, why = found[0]
            more = f", and of {len(found) - 1} more" if found[1:] else ""
            place = f"{one['database']}.{one['table']}.{one['column']}"
            fact = f"Trino cannot read the type of {place} ({why}){more}, nor list the columns of any table"
            yield Fault(fact, seen.lakehouse("risky-tables"), "names of letters, digits and _")

    return _of_rows(seen, unreadable, "types")


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
