"""Checks of the metastore and of its database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache

from lakehouse import yamlfile
from lakehouse.run import ROOT
from lakehouse.validation.finding import Level
from ops.answer import Answer, unknown
from ops.doctor.asks import CALLS
from ops.doctor.model import SETTLED_SECONDS, Case, Check, Fault, Seen, judged, runs
from plugins.module_utils.lakehouse.counting import counted

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
    """Give the case of what the database counts, or the server."""
    database = seen.the("postgresql")
    rows = seen.part(database.host, part).then(_rows)
    yield Case(database.host, judged(rows, judge_it), database)


def _rows(text: str) -> dict[str, str]:
    return dict(line.split("|", 1) for line in text.strip().splitlines())


def _calls(seen: Seen) -> Iterator[Case]:
    """Every one of many calls at once is answered: a connection of its pool that died fails some of them."""
    metastore, database = seen.the("metastore"), seen.the("postgresql")
    failed = [why for name in CALLS if (why := seen.answers[name].why)]

    def wrong() -> Iterator[Fault]:
        if failed and seen.age(metastore) >= SETTLED_SECONDS:
            fact = f"{len(failed)} of {counted(len(CALLS), 'call')} fail: {failed[0]}"
            yield Fault(
                fact, seen.on(metastore.host, f"systemctl restart {metastore.unit}"), "an answer to each"
            )

    if failed and not (runs(metastore) and runs(database)):
        # Who is stopped is said by the unit, and who is silent by the host.
        yield Case(metastore.host, unknown(failed[0]), database if runs(metastore) else metastore)
    else:
        yield Case(metastore.host, Answer(tuple(wrong())))


def _schema(seen: Seen) -> Iterator[Case]:
    expected = str(_role("vars")["hive_metastore_schema_version"])

    def other(rows: Mapping[str, str]) -> Iterator[Fault]:
        if (found := rows["schema"]) != expected:
            fact = f"the schema in the database has version {found or 'none'}"
            yield Fault(fact, seen.journal(seen.the("metastore")), expected)

    return _of_rows(seen, other)


def _connections(seen: Seen) -> Iterator[Case]:
    def many(rows: Mapping[str, str]) -> Iterator[Fault]:
        used, allowed = int(rows["used"]), int(rows["allowed"])
        if allowed - used < _FREE_CONNECTIONS:
            action = seen.on(
                seen.the("postgresql").host, "runuser -u postgres -- psql -c 'TABLE pg_stat_activity'"
            )
            expected = f"at least {_FREE_CONNECTIONS} free"
            yield Fault(
                f"{used} of {counted(allowed, 'connection')} are used", action, expected, Level.WARNING
            )

    return _of_rows(seen, many, "connections")


def _locks(seen: Seen) -> Iterator[Case]:
    name, metastore = "hive_metastore_lock_seconds", seen.the("metastore")
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
            action = f".venv/bin/lakehouse risky-tables -i {seen.status.inventory}"
            expected = f"hdfs://{seen.cluster.variable('lakehouse_nameservice')}/..."
            yield Fault(fact, action, expected, Level.WARNING)

    return _of_rows(seen, misplaced)


CHECKS = (
    Check("metastore.calls", "some calls of the metastore fail", _calls),
    Check("metastore.schema", "the schema is not the one that this metastore wants", _schema),
    Check("metastore.locks", "a lock outlives its holder", _locks),
    Check("metastore.locations", "a table lies on a local disk, or names a host", _locations),
    Check("postgresql.connections", "PostgreSQL soon refuses connections", _connections),
)
