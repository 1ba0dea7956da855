"""One look at all tables: their commits since the last one go into the timeline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from lakehouse.catalog.psql import Ask
from lakehouse.census.files import DamagedError, UnavailableError
from lakehouse.errors import LakehouseError
from lakehouse.next_command import PROGRAM
from lakehouse.timeline import delta, hive, hudi, iceberg, source
from lakehouse.timeline.commits import Commit, Files, Seen
from lakehouse.timeline.source import Table
from lakehouse.timeline.store import Known, Store, observation
from lakehouse.timeline.tree import Tree

# Parallel requests to HDFS.
_AT_ONCE = 8


@dataclass(frozen=True)
class Look:
    """What a look needs: both databases, HDFS, and the time in milliseconds."""

    metastore: Ask
    store: Store
    tree: Tree
    now_ms: int

    def run(self) -> int:
        """Write the commits of all tables; return how many are new. LakehouseError where nothing answers."""
        previous = self.store.tables()
        tables = source.tables(self.metastore)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            try:
                result = list(pool.map(lambda table: self._seen(table, previous.get(table.key)), tables))
            except UnavailableError as error:
                raise LakehouseError(f"HDFS does not answer: {error}", f"{PROGRAM} status") from error
        new = [pair for pair in zip(tables, result, strict=True) if _is_new(*pair, previous.get(pair[0].key))]
        # In the order of time, as far as tables of one look go.
        new.sort(key=lambda pair: min((commit.time_ms for commit in pair[1].commits), default=0))
        missing = previous.keys() - {table.key for table in tables}
        written = [observation(table, result) for table, result in new]
        return self.store.observe(written + [_dropped(previous[key], self.now_ms) for key in sorted(missing)])

    def _seen(self, table: Table, previous: Known | None) -> Seen:
        state = str(previous.row["state"]) if previous else ""
        try:
            result = self._readers().get(table.format, self._hive)(table, state)
        except DamagedError as error:
            return Seen(state, fault=str(error))
        renamed = _renamed(table, previous, self.now_ms) if previous else ()
        return Seen(result.state, [*renamed, *result.commits], result.open, result.fault, result.lag)

    def _readers(self) -> Mapping[str, Callable[[Table, str], Seen]]:
        return {
            "iceberg": lambda table, state: iceberg.look(table, self.tree, state),
            "delta": lambda table, state: delta.look(table, self.tree, state, self.now_ms),
            "hudi": lambda table, state: hudi.look(table, self.tree, state),
        }

    def _hive(self, table: Table, state: str) -> Seen:
        return hive.look(table, partial(source.partitions, self.metastore), state, self.now_ms)


def _is_new(table: Table, result: Seen, previous: Known | None) -> bool:
    """Return whether there is something to write."""
    if previous is None or result.commits or result.open:
        return True
    state = {"state": result.state, "fault": result.fault, "lag": result.lag, "location": table.location}
    return any(previous.row[name] != value for name, value in state.items())


def _renamed(table: Table, previous: Known, now_ms: int) -> Iterable[Commit]:
    before = f"{previous.row['database']}.{previous.row['name']}"
    after = f"{table.database}.{table.name}"
    if before != after:
        facts = {"before": before, "after": after}
        yield Commit(f"rename@{now_ms}", "rename", now_ms, facts=facts, files=Files())


def _dropped(previous: Known, now_ms: int) -> Mapping[str, object]:
    row = previous.row
    table = Table(*previous.key, row["database"], row["name"], row["format"], "", row["location"])
    commit = Commit(f"drop@{now_ms}", "drop", now_ms, files=Files())
    return observation(table, Seen(str(row["state"]), [commit]), dropped=True)
