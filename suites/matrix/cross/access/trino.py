"""What people may do through Trino: statements, and every procedure that the release brings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import pytest
import requests

from suites.matrix.cross import federation
from suites.matrix.cross.access.acts import Act, Ground, of_trino
from suites.matrix.cross.engines import TRINO
from suites.testbed.databases import Table
from suites.testbed.engines import EngineError
from suites.testbed.formats import DELTA
from suites.testbed.tables import suffix

# By the plugin that brings them: the name of the interface that its catalog is.
CATALOGS = {
    "iceberg": "Trino, `iceberg`",
    "hive": "Trino, `hive`",
    "delta-lake": "Trino, `delta`",
}


def of_hive(ground: Ground) -> Table:
    """Make a Hive table by Trino, with two partitions."""
    table = ground.name()
    ground.engines.sql(
        TRINO,
        f"CREATE TABLE hive.{table.short} WITH (format = 'PARQUET', partitioned_by = ARRAY['p'])"
        " AS SELECT * FROM (VALUES (1, 1), (2, 2)) AS rows (id, p)",
    )
    return table


def of_forgotten(ground: Ground) -> Table:
    """Make a table that the metastore no longer knows: it lets no second one have a table's folder."""
    table = ground.makers["iceberg"].databases.found(of_trino(ground))
    ground.forget(table.database, table.name)
    return table


def of_view(ground: Ground) -> Table:
    """Make a Hive table, and beside it a view of Trino that shows it."""
    table = of_hive(ground)
    ground.engines.sql(TRINO, f"CREATE VIEW hive.{table.short}_view AS SELECT id FROM hive.{table.short}")
    ground.at_the_end(lambda: ground.engines.sql(TRINO, f"DROP VIEW hive.{table.short}_view"))
    return table


def of_delta(ground: Ground) -> Table:
    """Make a Delta table by Spark."""
    return ground.makers[DELTA.name].new("", "SELECT 1 AS id")


def of_postgresql(ground: Ground) -> Table:
    """Make a table in the database of the catalog `postgresql`, as PostgreSQL's superuser."""
    run = federation.superuser(ground.engines.trino, ground.nodes, ground.endpoints)
    if not run:
        pytest.skip("the inventory has no lakehouse_federation")
    table = replace(ground.name(), database=federation.SCHEMA)
    run(f"CREATE TABLE {table.short} AS SELECT 1 AS id")
    ground.at_the_end(lambda: run(f"DROP TABLE {table.short}"))
    return table


def said(
    *statements: str,
    make: Callable[[Ground], Table] = of_trino,
    before: str = "",
    fresh: bool = False,
) -> Act:
    """Return the act of sending statements; `before` sends one as Trino's own user each time.

    In them stand the names of `Words`, like `{t}` for the table with its database.
    """

    def do(ground: Ground, user: str, table: Table) -> None:
        session = ground.trino(user)
        for statement in statements:
            session.sql(_Words(ground, table).fill(statement))

    def prepare(ground: Ground, table: Table) -> None:
        if before:
            ground.engines.sql(TRINO, _Words(ground, table).fill(before))

    return Act(do, make, fresh, before=prepare)


@dataclass(frozen=True)
class _Words:
    """What may stand in a statement; only what does is looked up."""

    ground: Ground
    table: Table

    def fill(self, statement: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda match: str(getattr(self, match[1])), statement)

    @property
    def t(self) -> str:
        return self.table.short

    @property
    def db(self) -> str:
        return self.table.database

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def new(self) -> str:
        """A name for a table that the statement makes."""
        return self.ground.name().short

    @property
    def source(self) -> str:
        """The name of a new Hive table with one row."""
        table = self.ground.name()
        self.ground.engines.sql(TRINO, f"CREATE TABLE hive.{table.short} AS SELECT 1 AS id")
        return table.name

    @property
    def alias(self) -> str:
        """A name for the table's files; it is forgotten, not dropped, at the end."""
        name = f"alias_{suffix()}"
        self.ground.at_the_end(lambda: self.ground.forget(self.db, name))
        return name

    @property
    def view(self) -> str:
        """A name for a view that the statement makes."""
        name = f"{self.db}.view_{suffix()}"
        self.ground.at_the_end(lambda: self.ground.engines.sql(TRINO, f"DROP VIEW IF EXISTS hive.{name}"))
        return name

    @property
    def schema(self) -> str:
        """A name for a schema that the statement makes."""
        name = f"smoke_{suffix()}"
        self.ground.at_the_end(lambda: self.ground.engines.sql(TRINO, f"DROP SCHEMA IF EXISTS hive.{name}"))
        return name

    @property
    def number(self) -> int:
        """A value that no partition has."""
        return int(suffix(), 16)

    @property
    def snapshot(self) -> int:
        """The table's first snapshot."""
        history = f'iceberg.{self.db}."{self.name}$snapshots"'
        return int(
            self.ground.engines.trino.value(f"SELECT min_by(snapshot_id, committed_at) FROM {history}")
        )

    @property
    def query(self) -> str:
        """Return the last query of Trino's own user; Trino checks permissions before its state."""
        condition = f"\"user\" = '{self.ground.endpoints.users['trino']}'"
        return str(
            self.ground.engines.trino.value(
                f"SELECT max(query_id) FROM system.runtime.queries WHERE {condition}"
            )
        )

    @property
    def location(self) -> str:
        return self.ground.endpoints.uri(self.ground.location(self.table))

    @property
    def forgotten(self) -> str:
        """Where a forgotten table is, as arguments of a procedure."""
        names = self.ground.namenode.names(f"{self.table.path}/metadata")
        return f"'{self.table.uri}', '{max(name for name in names if name.endswith('.metadata.json'))}'"


def _orphan(ground: Ground, table: Table) -> None:
    """Put a file into the table's folder that belongs to nothing."""
    path = f"{ground.location(table)}/data/orphan.parquet"
    ground.namenode.create(path, ground.endpoints.users["trino"], ground.endpoints.address_of)


_ADD = "INSERT INTO iceberg.{t} (id) VALUES 3"

ICEBERG: Mapping[str, Act] = {
    "`SELECT`": said("SELECT id FROM iceberg.{t}"),
    "`SELECT` from `$files`, with the least and the greatest values": said(
        'SELECT lower_bounds FROM iceberg.{db}."{name}$files"'
    ),
    "`SHOW COLUMNS`": said("SHOW COLUMNS FROM iceberg.{t}"),
    "`INSERT`": said("INSERT INTO iceberg.{t} (id) VALUES 3"),
    "`UPDATE`": said("UPDATE iceberg.{t} SET id = 4 WHERE id = 2"),
    "`DELETE`": said("DELETE FROM iceberg.{t} WHERE id = 4"),
    "`ADD COLUMN`": said("ALTER TABLE iceberg.{t} ADD COLUMN c_{number} INT"),
    "`COMMENT`": said("COMMENT ON TABLE iceberg.{t} IS 'a word'"),
    "`ANALYZE`": said("ANALYZE iceberg.{t}"),
    "`EXECUTE drop_extended_stats`": said("ALTER TABLE iceberg.{t} EXECUTE drop_extended_stats"),
    "`EXECUTE rollback_to_snapshot`": said(
        "ALTER TABLE iceberg.{t} EXECUTE rollback_to_snapshot(snapshot_id => {snapshot})", before=_ADD
    ),
    "`CALL rollback_to_snapshot`": said(
        "CALL iceberg.system.rollback_to_snapshot('{db}', '{name}', {snapshot})", before=_ADD
    ),
    "`EXECUTE optimize`": said("ALTER TABLE iceberg.{t} EXECUTE optimize", before=_ADD),
    "`EXECUTE optimize_manifests`": said("ALTER TABLE iceberg.{t} EXECUTE optimize_manifests", before=_ADD),
    "`EXECUTE expire_snapshots`": said(
        "SET SESSION iceberg.expire_snapshots_min_retention = '0s'",
        "ALTER TABLE iceberg.{t} EXECUTE expire_snapshots(retention_threshold => '0s')",
        before=_ADD,
    ),
    "`EXECUTE remove_orphan_files`": replace(
        said(
            "SET SESSION iceberg.remove_orphan_files_min_retention = '0s'",
            "ALTER TABLE iceberg.{t} EXECUTE remove_orphan_files(retention_threshold => '0s')",
        ),
        before=_orphan,
    ),
    "`EXECUTE add_files`": said(
        "ALTER TABLE iceberg.{t} EXECUTE add_files(location => '{location}/data', format => 'PARQUET')"
    ),
    "`EXECUTE add_files_from_table`": said(
        "ALTER TABLE iceberg.{t}"
        " EXECUTE add_files_from_table(schema_name => '{db}', table_name => '{source}')"
    ),
    "`CALL register_table`": said(
        "CALL iceberg.system.register_table('{db}', '{alias}', {forgotten})", make=of_forgotten, fresh=True
    ),
    "`CALL unregister_table`": said("CALL iceberg.system.unregister_table('{db}', '{name}')", fresh=True),
    "`CALL migrate`": said("CALL iceberg.system.migrate('{db}', '{name}')", make=of_hive, fresh=True),
    "`CREATE TABLE`": said("CREATE TABLE iceberg.{new} (id INT)"),
    "`CREATE TABLE AS`": said("CREATE TABLE iceberg.{new} AS SELECT 1 AS id"),
    "`CREATE SCHEMA`": said("CREATE SCHEMA iceberg.{schema}"),
    "`RENAME`": said("ALTER TABLE iceberg.{t} RENAME TO iceberg.{new}", fresh=True),
    "`DROP`": said("DROP TABLE iceberg.{t}", fresh=True),
}

HIVE: Mapping[str, Act] = {
    name: said(*statements, make=of_view if "a view" in name else of_hive, fresh=fresh)
    for name, (statements, fresh) in {
        "`SELECT`": (["SELECT id FROM hive.{t}"], False),
        "`INSERT`": (["INSERT INTO hive.{t} VALUES (3, {number})"], False),
        "`DELETE` of a partition": (["DELETE FROM hive.{t} WHERE p = 2"], False),
        "`COMMENT`": (["COMMENT ON TABLE hive.{t} IS 'a word'"], False),
        "`ANALYZE`": (["ANALYZE hive.{t}"], False),
        "`EXECUTE optimize`": (
            [
                "SET SESSION hive.non_transactional_optimize_enabled = true",
                "ALTER TABLE hive.{t} EXECUTE optimize",
            ],
            False,
        ),
        "`CALL create_empty_partition`": (
            ["CALL hive.system.create_empty_partition('{db}', '{name}', ARRAY['p'], ARRAY['{number}'])"],
            False,
        ),
        "`CALL drop_stats`": (["CALL hive.system.drop_stats('{db}', '{name}', ARRAY[ARRAY['1']])"], False),
        "`CALL flush_metadata_cache`": (["CALL hive.system.flush_metadata_cache()"], False),
        "`CALL register_partition`": (
            [
                "CALL hive.system.register_partition('{db}', '{name}', ARRAY['p'], ARRAY['1'],"
                " '{location}/p=1')"
            ],
            False,
        ),
        "`CALL sync_partition_metadata`": (
            ["CALL hive.system.sync_partition_metadata('{db}', '{name}', 'FULL')"],
            False,
        ),
        "`CALL unregister_partition`": (
            ["CALL hive.system.unregister_partition('{db}', '{name}', ARRAY['p'], ARRAY['1'])"],
            True,
        ),
        "`CREATE TABLE AS`": (["CREATE TABLE hive.{new} AS SELECT 1 AS id"], False),
        "`CREATE VIEW`": (["CREATE VIEW hive.{view} AS SELECT 1 AS id"], False),
        "`SELECT` from a view of a member": (["SELECT id FROM hive.{db}.{name}_view"], False),
        "`RENAME`": (["ALTER TABLE hive.{t} RENAME TO hive.{new}"], True),
        "`DROP`": (["DROP TABLE hive.{t}"], True),
    }.items()
}

DELTA_CATALOG: Mapping[str, Act] = {
    name: said(statement, make=of_delta)
    for name, statement in {
        "`SELECT`": "SELECT id FROM delta.{t}",
        "`INSERT`": "INSERT INTO delta.{t} VALUES 2",
        "`EXECUTE optimize`": "ALTER TABLE delta.{t} EXECUTE optimize",
        "`CALL drop_extended_stats`": "CALL delta.system.drop_extended_stats('{db}', '{name}')",
        "`CALL flush_metadata_cache`": "CALL delta.system.flush_metadata_cache()",
        "`CALL register_table`": "CALL delta.system.register_table('{db}', '{name}_2', '{location}')",
        "`CALL unregister_table`": "CALL delta.system.unregister_table('{db}', '{name}')",
        "`CALL vacuum`": "CALL delta.system.vacuum('{db}', '{name}', '7d')",
        "`DROP`": "DROP TABLE delta.{t}",
    }.items()
}


POSTGRESQL: Mapping[str, Act] = {
    name: said(statement, make=of_postgresql)
    for name, statement in {
        "`SELECT`": "SELECT id FROM postgresql.{t}",
        "`SHOW TABLES`": "SHOW TABLES FROM postgresql.{db}",
        "`TABLE(system.query(...))`": (
            "SELECT * FROM TABLE(postgresql.system.query(query => 'SELECT id FROM {t}'))"
        ),
        "`CALL execute`": "CALL postgresql.system.execute('SET search_path TO {db}')",
        "`CALL flush_metadata_cache`": "CALL postgresql.system.flush_metadata_cache()",
        "`INSERT`": "INSERT INTO postgresql.{t} VALUES 2",
    }.items()
}


def _cancel(ground: Ground, user: str, table: Table) -> None:
    """Ask the coordinator to end a query, as its web page does."""
    assert ground.endpoints.trino
    query = _Words(ground, table).query
    url = f"{ground.endpoints.trino.http}/v1/query/{query}"
    answer = requests.delete(url, headers={"X-Trino-User": user}, timeout=30)
    if not answer.ok:
        raise EngineError(TRINO, f"DELETE {url}", f"{answer.status_code} {answer.text}")


def _metrics(ground: Ground, user: str, _: Table) -> None:
    """Read what the coordinator counts, as a monitoring system does."""
    assert ground.endpoints.trino
    url = f"{ground.endpoints.trino.http}/metrics"
    answer = requests.get(url, headers={"X-Trino-User": user}, timeout=30)
    if not answer.ok:
        raise EngineError(TRINO, f"GET {url}", f"{answer.status_code} {answer.text}")


ITSELF: Mapping[str, Act] = {
    "`SELECT 1`": said("SELECT 1"),
    "`SHOW CATALOGS`": said("SHOW CATALOGS"),
    "`SELECT` from `tpch`": said("SELECT name FROM tpch.tiny.region"),
    "`SELECT` from `system.runtime.nodes`": said("SELECT node_id FROM system.runtime.nodes"),
    "read `/metrics`": Act(_metrics),
    "`CALL kill_query` of another's query": said(
        "CALL system.runtime.kill_query(query_id => '{query}', message => 'no')"
    ),
    "end another's query by its address": Act(_cancel),
}

ACTS: Mapping[str, Mapping[str, Act]] = {
    **dict(zip(CATALOGS.values(), (ICEBERG, HIVE, DELTA_CATALOG), strict=True)),
    "Trino, `postgresql`": POSTGRESQL,
    "Trino itself": ITSELF,
}

# Prints a line for each procedure of a plugin's own: the plugin, whether it is called or executed, its class.
_LISTING = """
import pathlib, sys, zipfile
for plugin in sys.argv[2:]:
    for path in pathlib.Path(sys.argv[1], plugin).glob(f"*trino-{plugin}-[0-9]*.jar"):
        with zipfile.ZipFile(path) as jar:
            for name in jar.namelist():
                if name.endswith("Procedure.class"):
                    code = jar.read(name)
                    for verb, kind in (
                        ("EXECUTE", b"io/trino/spi/connector/TableProcedureMetadata"),
                        ("CALL", b"io/trino/spi/procedure/Procedure"),
                    ):
                        if kind in code:
                            print(plugin, verb, pathlib.PurePath(name).stem)
                            break
"""


def listing(plugins: str) -> list[str]:
    """Return the program that lists the procedures below a folder of plugins; it wants Python alone."""
    return ["python3", "-c", _LISTING, plugins, *CATALOGS]


def procedures(listed: Iterable[str]) -> set[tuple[str, str]]:
    """Return the interface and the act of every line of the listing."""
    acts = set()
    for line in listed:
        plugin, verb, class_name = line.split()
        words = re.findall(r"[A-Z][a-z]*", class_name.removesuffix("Procedure"))
        if verb == "EXECUTE":
            words.remove("Table")
        acts.add((CATALOGS[plugin], f"`{verb} {'_'.join(words).lower()}`"))
    return acts
