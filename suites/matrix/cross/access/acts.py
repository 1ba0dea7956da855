"""An act that a user may or may not do, and the ground on which it is tried."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cached_property

from hive_metastore.ttypes import NoSuchObjectException

from suites.matrix.cross.engine_tables import EngineTables
from suites.matrix.cross.engines import TRINO, Engines
from suites.testbed import metastore, sessions
from suites.testbed.databases import Table
from suites.testbed.endpoints import Endpoints
from suites.testbed.engines.trino import Trino
from suites.testbed.formats import ICEBERG, Format
from suites.testbed.namenode import NameNode
from suites.testbed.nodes import Nodes

MEMBER, READER, OUTSIDER, ANONYMOUS = "member", "reader", "outsider", "anonymous"
# In the order in which they try: who is refused leaves everything as it was.
PEOPLE = (ANONYMOUS, OUTSIDER, READER, MEMBER)
# What a refusal says: HDFS, the metastore, Trino's rules, HDFS about people for whom Trino may not act, the
# Python clients. What is switched off is refused to every user. Thrift declares no error for two calls, whose
# client reads no reason.
REFUSED = re.compile(
    r"(?i)permission denied|access denied|not allowed to impersonate|not writable"
    r"|may not (?:read|write|pass) /|procedure is disabled|not enabled|403 Forbidden"
    r"|internal error processing (?:open_txns|fire_listener_event)"
)


@dataclass(eq=False)
class Ground:
    """A cluster with its sessions, and tables on which people try what they may."""

    engines: Engines
    endpoints: Endpoints
    namenode: NameNode
    nodes: Nodes
    makers: Mapping[str, EngineTables]
    reader: str
    _shared: dict[Callable[[Ground], Table], Table] = field(default_factory=dict)
    _begun: dict[Act, tuple[Table, Future[str]]] = field(default_factory=dict)
    _undoing: ExitStack = field(default_factory=ExitStack)

    @cached_property
    def people(self) -> Mapping[str, str]:
        """The user's name of each kind of person; a member here is no user under whom Trino or Spark runs."""
        return {MEMBER: self.endpoints.users["hive"], READER: self.reader, OUTSIDER: "nobody"}

    def table(self, act: Act) -> Table:
        """Return the table on which an act is tried: one of its own if it asks for that, else a shared."""
        if act.fresh:
            return act.make(self)
        if act.make not in self._shared:
            self._shared[act.make] = act.make(self)
        return self._shared[act.make]

    def begin(self, act: Act) -> None:
        """Start an act of the outsider that is refused slowly, beside all that follows."""
        table = self.table(act)
        self._begun[act] = table, self._pool.submit(refusal, self, act, self.people[OUTSIDER], table)

    def tried(self, act: Act) -> dict[str, str]:
        """Try as every user; return the words with which each kind of person was refused, empty if not."""
        table, outsider = self._begun.get(act) or (self.table(act), None)
        return {
            kind: outsider.result()
            if kind == OUTSIDER and outsider
            else refusal(self, act, self.people.get(kind, ""), table)
            for kind in PEOPLE
            if act.anonymous or kind != ANONYMOUS
        }

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return self._undoing.enter_context(ThreadPoolExecutor())

    def at_the_end(self, undo: Callable[[], object]) -> None:
        """Do something when all has been tried, before the tables are dropped."""
        self._undoing.callback(undo)

    def close(self) -> None:
        """Undo what was said to be undone."""
        self._undoing.close()

    def forget(self, database: str, table: str) -> None:
        """Remove a table from the metastore, if it knows it; its files stay."""
        with self.metastore(self.endpoints.users["hdfs"]) as client, suppress(NoSuchObjectException):
            client.drop_table(database, table, False)

    def name(self, fmt: Format = ICEBERG) -> Table:
        """Return the name of a table that is yet to be made; it is dropped at the end."""
        return self.makers[fmt.name].name()

    def location(self, table: Table) -> str:
        """Return the folder of a table in HDFS."""
        location = self.makers[table.format.name].location(table)
        assert location, f"there is no table {table}"
        return location

    def trino(self, user: str) -> Trino:
        """Return a new session of Trino in which a user asks."""
        return sessions.trino(self.endpoints, user=user)

    def metastore(self, user: str) -> metastore.Connection:
        """Return a connection to the metastore as a user in no other group; anonymous where it is empty."""
        return metastore.Connection(self.endpoints.metastore, user or None, (user,))


def of_trino(ground: Ground) -> Table:
    """Make an Iceberg table by Trino: two rows in two snapshots."""
    table = ground.name()
    ground.engines.sql(TRINO, f"CREATE TABLE {table.full(TRINO)} AS SELECT 1 AS id")
    ground.engines.sql(TRINO, f"INSERT INTO {table.full(TRINO)} VALUES 2")
    return table


@dataclass(frozen=True)
class Act:
    """Something that a user tries with a table, and how that table is made.

    `fresh`: the act takes the table away, so it gets one of its own. `slow`: an outsider learns late that it
    is refused. `anonymous`: a client can send no user name. `before` runs each time before a user tries.
    """

    do: Callable[[Ground, str, Table], object]
    make: Callable[[Ground], Table] = of_trino
    fresh: bool = False
    slow: bool = False
    anonymous: bool = False
    before: Callable[[Ground, Table], object] = lambda _ground, _table: None


def refusal(ground: Ground, act: Act, user: str, table: Table) -> str:
    """Try as one user; return the words with which they were refused, empty if they were not.

    Whatever else goes wrong is raised as it comes.
    """
    act.before(ground, table)
    try:
        act.do(ground, user, table)
    except Exception as error:
        if REFUSED.search(str(error)):
            return str(error)
        raise
    return ""
