"""One table of a backup: which files are its own, what is in its way, and its entry under another name."""

from __future__ import annotations

import io
import json
import threading
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import pytest

from backup import __main__ as program
from backup import copying, reconcile, run, selection, verify
from backup.config import BackupError, Settings
from backup.manifest import Backup
from backup.tree import Entry
from lakehouse.backup import catalog, table_restore
from lakehouse.backup.catalog import Place
from lakehouse.backup.table_restore import RestoredTable
from lakehouse.errors import LakehouseError, UsageError
from plugins.module_utils.lakehouse import backup_manifest, checked_document
from plugins.module_utils.lakehouse.webhdfs import WebHdfs
from tests.unit import patience
from tests.unit.backup_manifests import manifest

NAME = "20260102T030405Z"
ROOT = "hdfs://lake/lakehouse"


def entry(name: str, location: str = "", partitions: tuple[str, ...] = (), **other: Any) -> dict[str, Any]:
    def storage(place: str) -> dict[str, Any]:
        return {
            "location": place, "input": "I", "output": "O", "compressed": False, "subfolders": False,
            "buckets": -1, "columns": [{"name": "id", "type": "int", "comment": None}],
            "bucketed": ["id"], "sorted": [["id", 1]], "parameters": {"p": "q"},
            "serde": {"name": None, "library": "L", "parameters": {"path": place, "k": "v"}},
        }  # fmt: skip

    database, _, table = name.partition(".")
    known = {
        "database": database, "name": table, "type": "EXTERNAL_TABLE", "owner": "eve", "owner_type": "USER",
        "retention": 0, "view": None, "view_expanded": None, "rewrite": False, "parameters": {"a": "b"},
        "keys": [{"name": "day", "type": "string", "comment": None}] if partitions else [],
        "storage": storage(location),
        "partitions": [
            {"values": [place[-1]], "parameters": {}, "storage": storage(place)} for place in partitions
        ],
    }  # fmt: skip
    return known | other


def row(name: str, kind: str, location: str, metadata: str = "") -> dict[str, Any]:
    database, _, table = name.partition(".")
    return {
        "database": database, "name": table, "format": kind, "location": location,
        "metadata": metadata or location, "version": 42, "state": "", "rows": 2, "checksum": 7,
        "columns": [["id", "whole"]], "unknown": "",
    }  # fmt: skip


ICE, DELTA, HIVE = (f"{ROOT}/d/{name}" for name in ("ice", "delta", "hive"))
POINTER = f"{ICE}/metadata/2.metadata.json"
TABLES = [row("d.delta", "delta", DELTA), row("d.hive", "hive", HIVE), row("d.ice", "iceberg", ICE, POINTER)]
ENTRIES = [
    entry("d.delta", DELTA),
    entry("d.hive", HIVE, (f"{HIVE}/day=1", f"{ROOT}/elsewhere/day=2")),
    entry("d.ice", ICE, parameters={"metadata_location": POINTER, "write.data.path": f"{ROOT}/data/ice"}),
]
DATABASES = [{"name": "d", "description": None, "location": f"{ROOT}/d", "owner": "eve", "owner_type": "USER",
              "parameters": {}},
             {"name": "empty", "location": f"{ROOT}/empty", "parameters": {}}]  # fmt: skip


ROWS: list[dict[str, Any]] = [
    *({"database": one} for one in DATABASES),
    *({"table": {key: value for key, value in one.items() if key != "partitions"}} for one in ENTRIES),
    *(
        {"partition": {"database": one["database"], "table": one["name"], **partition}}
        for one in ENTRIES
        for partition in one["partitions"]
    ),
]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        cluster="kit", folder=str(tmp_path), keep=1, namenode="", superuser="hdfs", root="/lakehouse",
        left_out=(), database="", database_user="", database_port=0, database_ssh=(), checkpoint=(),
        checkpoint_folder="", spark_submit=(), spark_user="",
    )  # fmt: skip


@pytest.fixture
def backup(settings: Settings) -> Backup:
    made = Backup(settings.backups / NAME)
    paths = [
        "d/delta/part", "d/delta_other/part", "d/hive/day=1/part", "d/ice/metadata/2.metadata.json",
        "data/ice/part", "elsewhere/day=2/part",
    ]  # fmt: skip
    for path in paths:
        (made.files / path).parent.mkdir(parents=True)
        (made.files / path).write_text(path)
    entries = [
        Entry(
            path, False, "eve", "lakehouse", "660", len(path), 7, 3, sha256=copying.sha256(made.files / path)
        )
        for path in paths
    ]
    made.write_tree({one.path: one for one in entries})
    with made.catalog_file() as rows:
        rows.writelines(f"{json.dumps(one)}\n" for one in ROWS)
    made.finish(manifest(tables=TABLES))
    return Backup(made.folder)


# -- In the backup --


@pytest.mark.parametrize(
    ("table", "paths"),
    [
        ("d.delta", ["d/delta/part"]),
        ("d.hive", ["d/hive/day=1/part", "elsewhere/day=2/part"]),
        ("d.ice", ["d/ice/metadata/2.metadata.json", "data/ice/part"]),
    ],
)
def test_the_files_of_a_table_are_its_own_alone(
    settings: Settings, backup: Backup, table: str, paths: list[str]
) -> None:
    one = selection.choose(backup, table, "")
    assert sorted(found.path for found in selection.files(settings, backup, one)) == paths


def test_a_database_has_all_of_its_tables(backup: Backup) -> None:
    one = selection.choose(backup, "", "d")
    assert list(map(str, one.tables)) == ["d.delta", "d.hive", "d.ice"]
    assert [database["name"] for database in one.databases] == ["d"]
    assert selection.choose(backup, "", "empty").tables == ()


@pytest.mark.parametrize(
    ("table", "database", "said"),
    [
        ("d.hiv", "", f"{NAME} has no table d.hiv (did you mean d.hive?)"),
        ("", "x", f"{NAME} has no database x"),
    ],
)
def test_what_is_not_there_is_said_with_the_nearest_name(
    backup: Backup, table: str, database: str, said: str
) -> None:
    with pytest.raises(BackupError) as refused:
        selection.choose(backup, table, database)
    assert str(refused.value) == said


def test_damage_counts_for_the_table_whose_file_it_is(settings: Settings, backup: Backup) -> None:
    (backup.files / "d/delta/part").write_text("another text")
    assert verify.part(settings, backup, selection.choose(backup, "d.delta", "")) == [
        "files/d/delta/part is not as it was written"
    ]
    assert verify.part(settings, backup, selection.choose(backup, "d.hive", "")) == []


def test_a_changed_byte_of_the_catalog_is_found(backup: Backup) -> None:
    path = backup.folder / "catalog.jsonl"
    path.write_text(path.read_text().replace("eve", "eva", 1))
    with pytest.raises(BackupError, match=r"catalog\.jsonl is not as it was written"):
        selection.choose(backup, "d.ice", "")


def test_a_backup_of_before_has_no_entries(tmp_path: Path) -> None:
    old = Backup(tmp_path / NAME)
    old.files.mkdir(parents=True)
    old.finish(manifest(tables=TABLES))
    with pytest.raises(BackupError, match="was made before a table could be restored alone"):
        selection.choose(Backup(old.folder), "d.ice", "")


def test_a_backup_whose_catalog_is_one_document_is_read(backup: Backup, tmp_path: Path) -> None:
    old = Backup(tmp_path / "20250102T030405Z")
    old.files.mkdir(parents=True)
    (old.folder / "catalog.json").write_text(json.dumps({"databases": DATABASES, "tables": ENTRIES}))
    old.finish(manifest(name=old.name, tables=TABLES))
    assert selection.choose(Backup(old.folder), "", "d") == selection.choose(backup, "", "d")


@pytest.mark.parametrize(
    "rows",
    [
        [{"partition": ROWS[-1]["partition"]}],
        [{"table": {}}],
        [{"other": {}}],
        [[]],
        [{"database": DATABASES[0], "table": {}}],
    ],
)
def test_rows_that_are_no_catalog_are_a_line(tmp_path: Path, rows: list[Any]) -> None:
    made = Backup(tmp_path / NAME)
    made.files.mkdir(parents=True)
    with made.catalog_file() as lines:
        lines.writelines(f"{json.dumps(one)}\n" for one in rows)
    made.finish(manifest(tables=TABLES))
    with pytest.raises(BackupError, match=r"^[^\n]+$"):
        selection.choose(Backup(made.folder), "", "d")


ANSWER = '{"value": {"label": "l"}}'


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("printf 'one\\ntwo\\n%s\\n' '{answer}'", ""),
        ('printf \'one\\n{{"why": "no room"}}\\n\'', "no room"),
        ("echo one; echo broken >&2; exit 3", "does not answer: broken"),
        ("echo '{{\"value\": 1}}'; echo cut >&2; exit 255", "does not answer: cut"),
        ('echo \'{{"table": "t"}}\'; echo cut >&2; exit 255', "does not answer: cut"),
        ("exec yes", "more than a backup holds"),
        ("head -c 1000000 /dev/zero", "more than a backup holds"),
        ("exec sleep 60", "does not answer: exit -9"),
    ],
)
def test_rows_of_another_host_are_taken_within_bounds(
    settings: Settings, program: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checked_document, "MOST_BYTES", 10_000)
    monkeypatch.setattr(backup_manifest, "LINE_BYTES", 1_000)
    monkeypatch.setattr(run, "_DATABASE_SECONDS", 1 if "sleep" in program else 60)
    asked = replace(settings, database_ssh=("sh", "-c", program.format(answer=ANSWER)))
    rows = io.StringIO()
    if not said:
        assert run.ask(asked, "backup", rows=rows) == {"label": "l"}
        assert rows.getvalue() == "one\ntwo\n"
        return
    with pytest.raises(BackupError, match=said):
        run.ask(asked, "backup", rows=rows)


def test_two_never_write_at_once(settings: Settings) -> None:
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with run.alone(settings):
            inside.set()
            assert leave.wait(patience.SECONDS)

    other = threading.Thread(target=hold)
    other.start()
    assert inside.wait(patience.SECONDS)
    with pytest.raises(BackupError, match="another backup or restore is at work"), run.alone(settings):
        pass
    leave.set()
    with run.alone(settings, 20.0):
        other.join(patience.SECONDS)


# -- What is kept --


class NoSnapshots:
    """As `WebHdfs`: every call is done."""

    def call(self, *_: str, **__: str) -> dict[str, Any]:
        return {}


@pytest.mark.parametrize(
    ("labels", "count"),
    [
        (["0F", "1F", "2F", "3F"], "3"),
        (["1F", "2F", "9F", "3F"], "4"),
        # A repository that was made anew after the first two.
        (["3F"], "1"),
        (["9F"], "1"),
    ],
)
def test_what_is_older_than_all_that_are_kept_expires(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, labels: list[str], count: str
) -> None:
    for number in range(4):
        one = Backup(settings.backups / f"2026010{number + 1}T030405Z")
        one.files.mkdir(parents=True)
        one.finish(manifest(one.name, f"2026010{number}-000000F"))
    asked: list[tuple[str, ...]] = []

    def ask(_: Settings, *words: str) -> list[dict[str, str]]:
        asked.append(words)
        return [{"label": f"2026010{label[0]}-000000F"} for label in labels]

    monkeypatch.setattr(run, "ask", ask)
    run._retain(replace(settings, keep=3), cast("WebHdfs", NoSnapshots()))
    assert asked[-1] == ("expire", count)
    assert len(list(settings.backups.iterdir())) == 3


def test_a_run_that_fails_for_any_reason_does_not_seem_to_be_at_work(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Settings) -> dict[str, Any]:
        raise ValueError("'20260102-030405F' is not in list")

    monkeypatch.setattr(run, "run", fails)
    with pytest.raises(ValueError, match="is not in list"):
        program._run(settings, Namespace())
    assert (
        json.loads((tmp_path / "state" / "last.json").read_text())["why"]
        == "'20260102-030405F' is not in list"
    )


# -- What HDFS has lost --


@pytest.fixture
def namenode() -> Iterator[tuple[str, list[str]]]:
    """A NameNode that lists two corrupt blocks at a time, as fsck does a hundred; it reads what is put in."""
    listed: list[str] = []

    class Fsck(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            after = int(parse_qs(urlsplit(self.path).query).get("startblockafter", ["0"])[0])
            page = listed[after : after + 2]
            count = str(len(page)) if page else "no more" if after else "no"
            rows = "".join(f"blk_{number}\t{path}\n" for number, path in enumerate(page, after))
            head = f"FSCK started by hdfs\nCookie:\t{after + len(page)}\n"
            text = f"{head}{rows}\n\nThe filesystem under path '/lakehouse' has {count} CORRUPT files\n\n"
            if listed[:1] == [NOT_READY]:
                text = f"FSCK started by hdfs\n{NOT_READY}\n\n\nFsck on path '/lakehouse' FAILED"
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Fsck) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", listed
        server.shutdown()


NOT_READY = "Cannot run listCorruptFileBlocks because replication queues have not been initialized."


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_all_that_hdfs_has_lost_is_known_however_much(
    settings: Settings, namenode: tuple[str, list[str]], count: int
) -> None:
    url, listed = namenode
    listed += [f"/lakehouse/d/{number}" for number in range(count)]
    listed += ["/elsewhere/d/0"] if count else []
    assert reconcile._corrupt_files(replace(settings, namenode=url)) == {
        f"d/{number}" for number in range(count)
    }


def test_a_namenode_that_does_not_list_what_is_lost_has_not_lost_nothing(
    settings: Settings, namenode: tuple[str, list[str]]
) -> None:
    url, listed = namenode
    listed.append(NOT_READY)
    with pytest.raises(BackupError, match="replication queues have not been initialized"):
        reconcile._corrupt_files(replace(settings, namenode=url))


# -- What is in the way --


def wanted(*names: str) -> list[RestoredTable]:
    pairs = zip(TABLES, ENTRIES, strict=True)
    return [RestoredTable(table, one) for table, one in pairs if f"d.{one['name']}" in names]


def live(*places: Place) -> Mapping[str, Place]:
    return {str(place): place for place in places}


def test_what_was_dropped_has_nothing_in_its_way() -> None:
    assert table_restore.overwritten(wanted("d.ice", "d.hive"), live(Place("d", "delta", DELTA, ""))) == []


@pytest.mark.parametrize(
    ("place", "way"),
    [
        (Place("d", "ice", ICE, f"{ICE}/metadata/3.metadata.json"), ["d.ice"]),
        (Place("d", "ice", ICE, POINTER), []),
        (Place("d", "hive", HIVE, ""), ["d.hive"]),
    ],
)
def test_a_table_of_the_name_is_in_the_way_unless_it_is_the_same(place: Place, way: list[str]) -> None:
    assert table_restore.overwritten(wanted("d.ice", "d.hive"), live(place)) == way


@pytest.mark.parametrize(
    "place",
    [
        Place("d", "renamed", ICE, f"{ICE}/metadata/3.metadata.json"),
        Place("d", "inner", f"{ICE}/inner", ""),
        Place("d", "outer", f"{ROOT}/d", ""),
        Place("x", "twin", f"{ROOT}/x", POINTER),
        Place("d", "bare", "/lakehouse/d/ice/", ""),
    ],
)
def test_no_two_tables_get_the_same_files(place: Place) -> None:
    assert table_restore.shared(wanted("d.ice"), live(place)).startswith(f"{place} has its files in ")


@pytest.mark.parametrize(
    "place",
    [
        Place("d", "ice", ICE, f"{ICE}/metadata/3.metadata.json"),
        Place("d", "near", f"{ICE}2", ""),
        Place("d", "view", "", ""),
    ],
)
def test_a_neighbour_and_the_table_itself_share_nothing(place: Place) -> None:
    assert table_restore.shared(wanted("d.ice"), live(place)) == ""


# -- Under another name --


def found(name: str) -> dict[str, Any]:
    [one] = wanted(name)
    return {"name": NAME, "tables": [one.row], "entries": [one.entry]}


def test_files_that_do_not_fit_are_refused_with_both_sizes() -> None:
    assert table_restore.crowded(10 << 20, 10 << 20) is None
    refused = table_restore.crowded(10 << 20, (10 << 20) + (1 << 20))
    assert refused
    assert refused.fact == "HDFS has room for 10 MiB, and the files need 11 MiB"


def test_a_copy_of_delta_has_a_folder_of_its_own() -> None:
    copy, into = table_restore.copied(found("d.delta"), "d.then")
    assert (str(copy), into, copy.folder, copy.row["location"]) == ("d.then", *[f"{ROOT}/d/then"] * 3)
    assert copy.entry["storage"]["location"] == into


def test_an_iceberg_table_keeps_its_place() -> None:
    copy, into = table_restore.copied(found("d.ice"), "x.then")
    assert (str(copy), into, copy.folder, copy.metadata) == ("x.then", "", ICE, POINTER)


def test_partitions_go_with_a_copy_or_it_is_refused() -> None:
    inner = entry("d.hive", HIVE, (f"{HIVE}/day=1",))
    copy, into = table_restore.copied({**found("d.hive"), "entries": [inner]}, "d.then")
    assert copy.entry["partitions"][0]["storage"]["location"] == f"{into}/day=1"
    with pytest.raises(LakehouseError, match="partitions outside of"):
        table_restore.copied(found("d.hive"), "d.then")


@pytest.mark.parametrize(
    ("table", "other"),
    [("orders", ""), ("d.orders", "orders"), ("d.orders", "a.b.c"), ("d.orders", "x y"), ("d.orders", "a/b")],
)
def test_a_name_is_a_name_and_another_one(table: str, other: str) -> None:
    with pytest.raises(UsageError):
        table_restore._copy_name({"table": table, "as": other})


def test_another_name_is_in_the_same_database_unless_it_says_so() -> None:
    assert table_restore._copy_name({"table": "d.orders", "as": "then"}) == "d.then"
    assert table_restore._copy_name({"table": "d.orders", "as": "x.then"}) == "x.then"
    assert table_restore._copy_name({"table": "d.a/b", "as": "then"}) == "d.then"


# -- As Thrift has it --


def test_an_entry_is_a_table_of_the_bindings() -> None:
    made = catalog.table(entry("d.hive", HIVE, (f"{HIVE}/day=1",)))
    assert (made.dbName, made.tableName, made.tableType, made.owner) == ("d", "hive", "EXTERNAL_TABLE", "eve")
    assert made.parameters == {"a": "b"}
    assert [(column.name, column.type) for column in made.sd.cols] == [("id", "int")]
    assert made.sd.serdeInfo.parameters == {"path": HIVE, "k": "v"}
    assert [(one.col, one.order) for one in made.sd.sortCols] == [("id", 1)]
    [one] = catalog.partitions(entry("d.hive", HIVE, (f"{HIVE}/day=1",)))
    assert (one.values, one.sd.location) == (["1"], f"{HIVE}/day=1")


def test_a_view_has_no_folder() -> None:
    view = entry("d.v", storage=None, type="VIRTUAL_VIEW", view="select 1", view_expanded="select 1")
    assert catalog.table(view).viewOriginalText == "select 1"
    assert catalog.location(view) == ""
