"""A commit holds all of Hive's tables in a real PostgreSQL as they were at one moment, and nothing else."""

from __future__ import annotations

import json
import shlex
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from lakehouse import cli, commands
from lakehouse.catalog import build, diff, query, schema, source
from lakehouse.catalog.build import Base, Built
from lakehouse.catalog.merging.sides import Choice, Three
from lakehouse.catalog.merging.trees import merge
from lakehouse.catalog.names import Name
from lakehouse.catalog.overlay import Overlay
from lakehouse.catalog.psql import Ask
from lakehouse.catalog.reading import Stream
from lakehouse.catalog.snapshot_reader import SnapshotReader
from lakehouse.catalog.store import Reader, Store
from lakehouse.cluster_catalog import live
from lakehouse.errors import LakehouseError
from lakehouse.run import ROOT
from tests.unit import metastore_database
from tests.unit.metastore_database import Database

HERE = Path(__file__).parent
KINDS = (HERE / "metastore_kinds.sql").read_text(encoding="utf-8")
TRIPS = "hdfs://lake/warehouse/sales.db/trips"
LOCAL = "inventory/local"
# The path of a file in a commit.
ORDERS = "catalog/hive/db/sales/table/orders/table.json"


@pytest.fixture(scope="module")
def template() -> Iterator[Database]:
    """A database with one of each kind, from which every test has a copy."""
    with metastore_database.server() as made:
        made.run(KINDS)
        yield made


@pytest.fixture
def database(template: Database) -> Database:
    return template.copy("mine")


def ask(database: Database) -> Ask:
    @contextmanager
    def asked(script: str) -> Iterator[Iterator[bytes]]:
        with closing(database.lines(script)) as lines:
            yield lines

    return asked


def versions(_: object) -> dict[str, str]:
    return {TRIPS: "12"}


def read(
    database: Database, writer: Overlay | None = None, base: Base | None = None
) -> tuple[Overlay, Built]:
    overlay = writer or Overlay(None)
    return overlay, source.read(ask(database), overlay, base, versions)


def files(reader: Reader, tree: str, path: str = "") -> dict[str, str]:
    """Return the text of each file of a tree by its path."""
    found: dict[str, str] = {}
    for name, number in reader.tree(tree).items():
        if "." in name:
            found[f"{path}{name}"] = reader.blob(number).decode()
        else:
            found |= files(reader, number, f"{path}{name}/")
    return found


def texts(value: Any) -> Iterator[str]:
    """Give every text and number of a document."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield key
            yield from texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from texts(one)
    else:
        yield str(value)


def said(database: Database) -> set[str]:
    """Return every text and time of every table that is kept."""
    found: set[str] = set()
    rows = database.run(";".join(f'SELECT to_jsonb(t) FROM "{table}" t' for table in schema.KEPT))
    for row in rows.splitlines():
        own = json.loads(row)
        found |= {str(value) for key, value in own.items() if isinstance(value, str) or key.endswith("_TIME")}
    return found


def test_every_text_of_every_kind_is_in_a_commit(database: Database) -> None:
    counts = database.run(
        ";".join(f"""SELECT '{table}' FROM (SELECT FROM "{table}" LIMIT 1) t""" for table in schema.KEPT)
    )
    assert set(schema.KEPT) - set(counts.split()) == set(), "the test has no row of these"
    overlay, built = read(database)
    lines = [line for text in files(overlay, built.tree).values() for line in text.splitlines()]
    whole = [text for path, text in files(overlay, built.tree).items() if path.endswith(".json")]
    kept = {one for text in whole for one in texts(json.loads(text))}
    kept |= {one for line in lines if line.startswith('{"') for one in texts(json.loads(line))}
    names = {"hive", "other", "default", "sales", "far", "orders", "seen", "ice", "plain", "trips", "mask_it"}
    # An access that never was, and the catalog of a database, which is its folder.
    assert said(database) - kept - names - {"0"} == set()


def test_numbers_of_the_database_are_in_no_commit(database: Database) -> None:
    """A restored dump, or another metastore that was filled in the same way, gives the same tree."""
    _, before = read(database)
    numbers = {
        (table, column) for table, columns in schema.KEPT.items() for column in columns
        if column.endswith("_ID") or column in {"SD_ID_OID", "STRING_LIST_ID_EID", "STRING_LIST_ID_KID"}
    }  # fmt: skip
    moves = ";".join(
        f'UPDATE "{table}" SET "{column}" = "{column}" + 5000' for table, column in sorted(numbers)
    )
    database.run(f"SET session_replication_role = replica; {moves}")
    assert read(database)[1].tree == before.tree


def test_a_change_of_everything_on_each_side_is_merged_to_what_has_both(template: Database) -> None:
    changes = {
        side: ";".join(
            f"""INSERT INTO "{table}_PARAMS" SELECT "{key}", '{side}', '{side}' FROM "{rows}" """
            for table, key, rows in (
                ("TABLE", "TBL_ID", "TBLS"), ("PARTITION", "PART_ID", "PARTITIONS"),
                ("DATABASE", "DB_ID", "DBS"), ("SD", "SD_ID", "SDS"), ("SERDE", "SERDE_ID", "SERDES"),
            )
        )
        for side in ("ours", "theirs")
    }  # fmt: skip
    overlay, trees = Overlay(None), {}
    for name, sides in (("base", ()), ("ours", ("ours",)), ("theirs", ("theirs",)), ("both", changes)):
        database = template.copy(f"merging_{name}")
        for side in sides:
            database.run(changes[side])
        trees[name] = read(database, overlay)[1].tree
    found = merge(overlay, Three(*(trees[name] for name in ("base", "ours", "theirs"))), Choice())
    assert found.conflicts == ()
    assert files(overlay, found.tree) == files(overlay, trees["both"])
    assert found.tree == trees["both"]


def test_settings_of_the_server_change_no_tree(database: Database) -> None:
    _, before = read(database)
    database.run(
        f"ALTER DATABASE \"{database.name}\" SET timezone = 'Asia/Tokyo';"
        f'ALTER DATABASE "{database.name}" SET extra_float_digits = 0;'
        f"ALTER DATABASE \"{database.name}\" SET bytea_output = 'escape';"
    )
    assert read(database)[1].tree == before.tree


def test_what_has_changed_alone_is_read_and_gives_the_same_tree(database: Database) -> None:
    """Each kind of row is changed in turn, then those of each are deleted: nothing is overlooked."""
    overlay, built = read(database)
    no_tables_own = {"CTLGS", "DBS", "ROLES", "FUNCS", "SKEWED_STRING_LIST", "CDS"}
    tables = sorted(schema.KEPT.keys() - no_tables_own)
    updates = [update(database, table) for table in tables]
    deletes = [
        f'DELETE FROM "{table}"' for table in reversed(tables) if table not in {"TBLS", "PARTITIONS", "SDS"}
    ]
    for change in (*updates, *deletes):
        before = built.tree
        database.run(f"SET session_replication_role = replica; {change}")
        _, built = read(database, overlay, Base(built.tree, built.marks))
        assert built.tree != before, change
    assert built.tree == read(database)[1].tree


def update(database: Database, table: str) -> str:
    """Return the statement that changes the last text of each row of a table, or its place among others."""
    without_text = {"MV_TABLES_USED": '"TBL_ID" = 61', "SKEWED_VALUES": '"STRING_LIST_ID_EID" = 50'}
    if table in without_text:
        return f'UPDATE "{table}" SET {without_text[table]}'
    columns = database.run(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = 'public'"
        f" AND table_name = '{table}' AND data_type IN ('character varying', 'text')"
        " AND column_name NOT IN ('CAT_NAME', 'DB_NAME', 'TBL_NAME', 'TABLE_NAME')"
    ).split()
    last = columns[-1]
    return f"""UPDATE "{table}" SET "{last}" = left(coalesce("{last}", '') || 'x', 20)"""


def test_an_unchanged_catalog_is_read_in_no_part_but_delta(database: Database) -> None:
    overlay, built = read(database)
    _, again = read(database, overlay, Base(built.tree, built.marks))
    assert (built.counts["read"], again.counts["read"]) == (5, 1)
    assert again.tree == built.tree
    assert (again.counts["tables"], again.counts["partitions"]) == (5, 2)


def test_a_table_knows_the_state_of_its_files(database: Database) -> None:
    overlay, built = read(database)
    found = files(overlay, built.tree)
    data = {
        name: json.loads(found[ORDERS.replace("orders", name)])["data"] for name in ("ice", "trips", "orders")
    }
    assert data == {
        "ice": {
            "format": "iceberg", "snapshot": "4242",
            "metadata": "hdfs://lake/warehouse/sales.db/ice/metadata/00001-a.metadata.json",
        },
        "trips": {"format": "delta", "version": "12"},
        "orders": {"format": "hive"},
    }  # fmt: skip
    assert "data" not in json.loads(found[ORDERS.replace("orders", "seen")])
    silent = source.read(ask(database), overlay, None, build.no_versions)
    assert silent.unversioned == ("hive.sales.trips",)


def test_the_newest_file_of_a_log_is_the_version() -> None:
    listed = [f"{number:020d}.json" for number in (3, 12, 7)]
    others = ["_last_checkpoint", "00000000000000000099.crc", ".00000000000000000098.json.crc", "x.json"]
    assert source.newest(iter([*listed, *others])) == "12"
    assert source.newest(iter([f"{20:020d}.checkpoint.0000000001.0000000002.parquet", *listed])) == "20"
    assert source.newest(iter(others)) is None


def test_what_nobody_knows_is_named(database: Database) -> None:
    assert read(database)[1].strangers == ()
    database.run(
        'CREATE TABLE "DATACONNECTORS" (x int); INSERT INTO "DATACONNECTORS" VALUES (1);'
        'ALTER TABLE "TBLS" ADD COLUMN "WRITE_ID" bigint;'
        "INSERT INTO \"WM_RESOURCEPLAN\" VALUES (1, 'plan', 1, 'ACTIVE', NULL)"
    )
    assert {(one.name, one.why) for one in read(database)[1].strangers} == {
        ("DATACONNECTORS", "a table that Hive Metastore 3.1.3 does not have, with rows"),
        ("TBLS.WRITE_ID", "a column that Hive Metastore 3.1.3 does not have"),
        ("WM_RESOURCEPLAN", "resource plans of HiveServer2: no commit holds them"),
    }


def test_another_schema_is_refused(database: Database) -> None:
    database.run('ALTER TABLE "TBLS" DROP COLUMN "RETENTION"; DROP TABLE "FUNC_RU"')
    with pytest.raises(
        LakehouseError, match=r"no metastore that can be read: it has no FUNC_RU, TBLS\.RETENTION"
    ):
        read(database)


def test_a_reader_sees_one_moment_while_others_write(database: Database) -> None:
    """Tables come and go in one transaction each: every one that is read is whole."""
    stop = threading.Event()
    one = """BEGIN; INSERT INTO "CDS" VALUES ({0});
      INSERT INTO "COLUMNS_V2" VALUES ({0}, NULL, 'a', 'int', 0);
      INSERT INTO "SERDES" ("SERDE_ID", "SLIB") VALUES ({0}, 'lib');
      INSERT INTO "SDS" VALUES ({0}, 'i', false, 'hdfs://lake/{0}', 0, 'o', {0}, {0}, false);
      INSERT INTO "TBLS"
      VALUES ({0}, 1, 10, 0, 'w', 'USER', 0, {0}, 'w{0}', 'EXTERNAL_TABLE', NULL, NULL, false);
      COMMIT;
      BEGIN; DELETE FROM "TBLS" WHERE "TBL_ID" = {0}; DELETE FROM "SDS" WHERE "SD_ID" = {0};
      DELETE FROM "SERDES" WHERE "SERDE_ID" = {0}; DELETE FROM "COLUMNS_V2" WHERE "CD_ID" = {0};
      DELETE FROM "CDS" WHERE "CD_ID" = {0}; COMMIT;"""

    def write() -> None:
        number = 1000
        while not stop.is_set():
            database.run("".join(one.format(number + step) for step in range(20)))
            number += 20

    writer = threading.Thread(target=write)
    writer.start()
    try:
        seen = 0
        overlay, built = read(database)
        for _ in range(25):
            overlay, built = read(database, overlay, Base(built.tree, built.marks))
            found = files(overlay, built.tree)
            written = [
                json.loads(text)
                for path, text in found.items()
                if "/table/w" in path and path.startswith("cat")
            ]
            assert built.counts["tables"] == 5 + len(written)
            seen += len(written)
            for table in written:
                assert table["storage"].keys() == {
                    "columns",
                    "input_format",
                    "location",
                    "output_format",
                    "serde",
                }
    finally:
        stop.set()
        writer.join()
    assert seen, "no table of the writer was there at any moment"


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.999])
def test_a_stream_that_is_cut_off_is_no_smaller_catalog(database: Database, share: float) -> None:
    lines = list(database.lines(query.script()))
    kept = lines[: int(len(lines) * share)]
    with pytest.raises(LakehouseError, match=r"was not read to the end; nothing was committed"):
        build.build(Stream(kept), Overlay(None))


def test_a_stream_that_is_cut_off_within_a_line_is_no_smaller_catalog(database: Database) -> None:
    lines = list(database.lines(query.script()))
    for number in range(0, len(lines), max(1, len(lines) // 20)):
        kept = [*lines[:number], lines[number][: len(lines[number]) // 2]]
        with pytest.raises(LakehouseError, match="was not read to the end"):
            build.build(Stream(kept), Overlay(None))


class Kit:
    """The verbs as a person types them, with a database of the test's in place of a cluster's."""

    def __init__(self, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.store, self._capsys = store, capsys

    def run(self, *words: str) -> tuple[int, str, str]:
        """Return exit code, stdout and the last line."""
        code = cli.main(["catalog", *words, "--store", str(self.store)])
        out, err = self._capsys.readouterr()
        return code, out, err.splitlines()[-1] if err else ""

    def json(self, *words: str) -> dict[str, Any]:
        """Return what the verb says to programs."""
        _, out, _ = self.run(*words, "--json")
        return dict(json.loads(out))


@pytest.fixture
def kit(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Kit:
    monkeypatch.setattr(live, "database", lambda _: ask(database))
    monkeypatch.setattr(live, "delta_versions", lambda _: versions)
    return Kit(tmp_path / "history.git", capsys)


def test_a_history_from_the_first_commit_to_drift(kit: Kit, database: Database) -> None:
    code, _, last = kit.run("commit", "--author", "Ann <ann@example.org>")
    assert code == 0
    assert last.startswith("catalog commit lakehouse-local: OK; committed ")
    assert "3 databases, 5 tables (5 read), 2 partitions, event none: no listener writes any" in last

    code, _, last = kit.run("commit")
    assert (code, "unchanged since" in last, "0 objects written" in last) == (0, True, True)

    database.run(
        'INSERT INTO "CDS" VALUES (29);'
        'INSERT INTO "COLUMNS_V2" SELECT 29, "COMMENT", "COLUMN_NAME", "TYPE_NAME", "INTEGER_IDX"'
        ' FROM "COLUMNS_V2" WHERE "CD_ID" = 20;'
        "INSERT INTO \"COLUMNS_V2\" VALUES (29, 'of it', 'land', 'string', 3);"
        'UPDATE "SDS" SET "CD_ID" = 29 WHERE "SD_ID" = 40;'
        'UPDATE "SDS" SET "LOCATION" = \'hdfs://lake/moved\' WHERE "SD_ID" = 45'
    )
    code, out, _ = kit.run("diff")
    assert code == 0
    assert out.splitlines() == [
        "~ table hive.sales.orders: column land: none -> string (of it)",
        "~ partition hive.sales.orders/ds=2026-01-02/hr=a%3Db: location:"
        " hdfs://lake/warehouse/sales.db/orders/ds=2026-01-02/hr=a%3Db -> hdfs://lake/moved",
    ]
    assert kit.run("diff", "--sql")[1].splitlines()[-1] == (
        "ALTER TABLE `sales`.`orders` PARTITION (`ds`='2026-01-02', `hr`='a=b') SET LOCATION 'hdfs://lake/moved';"
    )
    code, _, last = kit.run("diff", "--expect", "HEAD")
    assert (code, "catalog diff" in last, "DEGRADED" in last) == (1, True, True)

    kit.run("commit", "-m", "a column and a move")
    listed = kit.json("log")["commits"]
    assert [one["message"].splitlines()[0] for one in listed] == ["a column and a move", "the first commit"]
    assert listed[1]["author"] == "Ann <ann@example.org>"
    assert listed[0]["facts"].keys() == {"Cluster", "Catalog", "Event", "Snapshot", "Schema"}
    assert kit.run("diff", "--expect", "HEAD")[0] == 0
    assert len(kit.json("show")["changes"]) == 2

    [column] = [one for one in kit.json("blame", "sales.orders")["fields"] if one["field"] == "column land"]
    [owner] = [one for one in kit.json("blame", "sales.orders")["fields"] if one["field"] == "owner"]
    assert (column["commit"], owner["commit"]) == (listed[0]["id"], listed[1]["id"])
    one, other = (f"sales.orders/{name}" for name in ("ds=2026-01-01/hr=00", "ds=2026-01-02/hr=a%3Db"))
    assert [len(kit.json("log", name)["commits"]) for name in (one, other, "sales.ice")] == [1, 2, 1]
    assert kit.json("show", "HEAD~1", "sales.mask_it()")["document"]["class"] == "org.example.Mask"
    assert kit.run("fsck")[0] == 0


def test_the_page_tells_what_happens(kit: Kit, database: Database) -> None:
    """The commands of docs/catalog-history.md that a history is enough for, with changes in between.

    Those about files and engines are executed on a cluster: test_catalog_page.py, test_catalog_pin.py.
    """
    page = (ROOT / "docs" / "catalog-history.md").read_text(encoding="utf-8")
    first, *sections = page.split("\n## ")
    [desired] = [one for one in sections if one.startswith("Take a change back")]
    lines = [line for line in (first + desired).splitlines() if line.startswith(".venv/bin/")]
    told = [shlex.split(line, comments=True)[2:] for line in lines]
    codes = {}
    for words in told:
        if words == ["diff"]:
            database.run('UPDATE "TBLS" SET "OWNER" = \'zoe\' WHERE "TBL_NAME" = \'orders\'')
        codes[" ".join(words)] = kit.run(*words)[0]
    assert len(told) == 16
    assert {command: code for command, code in codes.items() if code} == {"diff --expect before-migration": 1}
    [change] = kit.json("diff", "HEAD", f"revert-{kit.json('show')['commit']['id'][:12]}")["changes"]
    assert (change["field"], change["before"]) == ("owner", "zoe")


def test_statistics_are_no_change(kit: Kit, database: Database) -> None:
    kit.run("commit")
    database.run(
        'UPDATE "TABLE_PARAMS" SET "PARAM_VALUE" = \'8\' WHERE "PARAM_KEY" = \'numFiles\';'
        'UPDATE "PARTITION_PARAMS" SET "PARAM_VALUE" = \'2\' WHERE "PARAM_KEY" = \'numRows\';'
        'UPDATE "TBLS" SET "LAST_ACCESS_TIME" = 17; UPDATE "TAB_COL_STATS" SET "NUM_NULLS" = 9'
    )
    assert kit.run("diff", "--expect", "HEAD")[:2] == (0, "")
    assert "unchanged since" in kit.run("commit")[2]
    told = {one["field"] for one in kit.json("diff", "--statistics")["changes"]}
    assert {
        "statistics: parameter numFiles",
        "statistics: parameter numRows",
        "statistics: last_access",
    } <= told
    assert "statistics: column city" in told
    database.run('UPDATE "TBLS" SET "OWNER" = \'zoe\' WHERE "TBL_NAME" = \'ice\'')
    kit.run("commit")
    assert kit.json("diff", "--statistics")["changes"] == []


def test_a_zero_among_statistics_is_known_and_nothing_is_unknown(kit: Kit, database: Database) -> None:
    database.run('UPDATE "TAB_COL_STATS" SET "LONG_LOW_VALUE" = 0, "LONG_HIGH_VALUE" = NULL')
    kit.run("commit")
    with closing(Store(kit.store)) as store:
        said = (
            SnapshotReader(store, store.resolve("HEAD").tree).volatile(Name("hive", "sales", "orders")) or {}
        )
    [column] = said["columns"]
    assert column["LONG_LOW_VALUE"] == 0
    assert "LONG_HIGH_VALUE" not in column


def test_new_rows_are_one_change_of_data_and_may_be_none(kit: Kit, database: Database) -> None:
    kit.run("commit")
    database.run(
        'UPDATE "TABLE_PARAMS" SET "PARAM_VALUE" = \'4343\' WHERE "PARAM_KEY" = \'current-snapshot-id\';'
        'UPDATE "TABLE_PARAMS" SET "PARAM_VALUE" = \'hdfs://b\' WHERE "PARAM_KEY" = \'metadata_location\''
    )
    [change] = kit.json("diff")["changes"]
    assert (change["kind"], change["table"], change["field"]) == ("table", "ice", "data")
    assert (change["before"]["snapshot"], change["after"]["snapshot"]) == ("4242", "4343")
    assert kit.run("diff", "--expect", "HEAD")[0] == 1
    assert kit.run("diff", "--expect", "HEAD", "--no-data")[0] == 0


def test_a_dropped_table_and_a_parameter_that_nobody_wants(kit: Kit, database: Database) -> None:
    database.run('DELETE FROM "KEY_CONSTRAINTS"; DELETE FROM "MV_TABLES_USED"')
    kit.run("commit")
    database.run(
        'SET session_replication_role = replica; DELETE FROM "TBLS" WHERE "TBL_NAME" = \'orders\';'
        'DELETE FROM "PARTITIONS";'
        "INSERT INTO \"DATABASE_PARAMS\" VALUES (10, 'etl.run', '5'); DELETE FROM \"FUNCS\""
    )
    assert kit.run("diff")[1].splitlines() == [
        "~ database hive.sales: parameter etl.run: none -> 5",
        "- function hive.sales.mask_it()",
        "- table hive.sales.orders: hive, 3 columns, 2 partitions",
    ]
    assert len(kit.json("diff", "--ignore", "etl.*")["changes"]) == 2
    code, out, _ = kit.run("diff", "--sql")
    assert (code, [line[:14] for line in out.splitlines()]) == (
        0,
        ["ALTER DATABASE", *["-- no statemen"] * 2],
    )


def test_a_stranger_degrades_a_commit_that_is_made(kit: Kit, database: Database) -> None:
    database.run('CREATE TABLE "NEWS" (x int)')
    code, _, last = kit.run("commit")
    assert (code, "DEGRADED" in last, "committed" in last) == (1, True, True)
    [finding] = kit.json("commit")["findings"]
    assert (finding["code"], finding["where"]) == ("catalog.left_out", "NEWS")


def test_names_of_commits(kit: Kit) -> None:
    kit.run("commit")
    assert kit.run("tag", "before-migration")[0] == 0
    assert kit.run("branch", "what-if")[0] == 0
    assert kit.run("tag", "before-migration")[0] == commands.USAGE
    assert list(kit.json("tag")["names"]) == ["before-migration"]
    assert list(kit.json("branch")["names"]) == ["main", "what-if"]
    assert kit.run("show", "before-migration")[0] == 0
    assert kit.run("branch", "--delete", "what-if")[0] == 0
    assert kit.run("branch", "--delete", "main")[0] == commands.USAGE
    assert list(kit.json("branch")["names"]) == ["main"]


@pytest.mark.parametrize(
    ("words", "code", "refusal"),
    [
        (["show", "nothing"], 64, "nothing: no commit, branch or tag of"),
        (["show", "HEAD~7"], 64, "HEAD~7: no more than 0 commits before HEAD"),
        (["show", "HEAD", "sales.lost"], 64, "hive.sales.lost is not in "),
        (["log", "sales.lost"], 64, "hive.sales.lost is in no commit of"),
        (["log", "a.b.c.d"], 64, "a.b.c.d: no name"),
        (["blame", "sales.lost"], 64, "hive.sales.lost is not in "),
        (["diff", "HEAD", "--expect", "HEAD"], 64, "--expect compares a commit with the metastore"),
        (["tag", "../x"], 64, "../x: letters, digits"),
        (["commit", "--author", "a\nb"], 64, "--author a"),
    ],
)
def test_what_is_not_there_is_one_line(
    kit: Kit, capsys: pytest.CaptureFixture[str], words: list[str], code: int, refusal: str
) -> None:
    kit.run("commit")
    assert cli.main(["catalog", *words, "--store", str(kit.store)]) == code
    assert capsys.readouterr().err.startswith(f"error: {refusal}")


def test_without_a_history_the_next_command_makes_one(kit: Kit, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["catalog", "log", "--store", str(kit.store)]) == 2
    assert (
        "there is no history of the catalog yet; next: .venv/bin/lakehouse catalog commit --store"
        in capsys.readouterr().err
    )


def test_a_reading_that_fails_commits_nothing(
    kit: Kit, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit.run("commit")
    before = Store(kit.store).head()

    @contextmanager
    def half(script: str) -> Iterator[Iterator[bytes]]:
        yield iter(list(database.lines(script))[:-20])

    database.run('UPDATE "TBLS" SET "OWNER" = \'zoe\'')
    monkeypatch.setattr(live, "database", lambda _: half)
    assert kit.run("commit")[0] == 2
    assert kit.run("diff")[0] == 2
    assert Store(kit.store).head() == before


def test_a_lost_file_of_marks_costs_time_alone(kit: Kit, database: Database) -> None:
    kit.run("commit")
    (kit.store / "lakehouse-marks.json").write_text("{", encoding="utf-8")
    database.run('UPDATE "TBLS" SET "OWNER" = \'zoe\' WHERE "TBL_NAME" = \'ice\'')
    assert kit.json("commit")["counts"]["read"] == 5
    assert kit.json("commit")["counts"]["read"] == 1


def test_the_verbs_of_a_store_need_no_cluster(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    kit.run("commit")
    monkeypatch.setattr("lakehouse.model.inventory.load", None)
    assert [kit.run(word)[0] for word in ("log", "show", "fsck", "tag")] == [0, 0, 0, 0]
    assert diff.Look().ignored == ()
