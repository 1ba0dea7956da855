"""One look at all tables of a metastore in a real PostgreSQL, and what is sent to subscribers."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakehouse.errors import LakehouseError, UsageError
from lakehouse.timeline import __main__ as program
from lakehouse.timeline import question, source, webhooks
from lakehouse.timeline.collect import Look
from lakehouse.timeline.store import Store
from tests.unit import metastore_database
from tests.unit.metastore_database import Database
from tests.unit.timeline_tables import NOW, FolderTree, ask

KINDS = (Path(__file__).parent / "metastore_kinds.sql").read_text(encoding="utf-8")
ROWS = pa.table({"id": [1]})


@dataclass
class Lake:
    """A metastore with one of each kind of table, and an empty timeline beside it."""

    metastore: Database
    store: Store
    tree: FolderTree = field(default_factory=FolderTree)
    now_ms: int = NOW

    def look(self) -> int:
        self.now_ms += 60_000
        return Look(ask(self.metastore), self.store, self.tree, self.now_ms).run()

    def commits(self, **request: Any) -> list[tuple[str, str]]:
        rows = question.answer(self.store, request)["commits"]
        return [(f"{row['database']}.{row['table']}", row["action"]) for row in rows]

    def add_delta(self, number: int, name: str, place: Path) -> None:
        write_deltalake(place, ROWS)
        self.metastore.run(f"""
            INSERT INTO "SERDES" ("SERDE_ID") VALUES ({number});
            INSERT INTO "SERDE_PARAMS" VALUES ({number}, 'path', '{place}');
            INSERT INTO "SDS" ("SD_ID", "SERDE_ID", "LOCATION", "IS_COMPRESSED", "IS_STOREDASSUBDIRECTORIES",
              "NUM_BUCKETS") VALUES ({number}, {number}, '/placeholder', false, false, 0);
            INSERT INTO "TBLS" ("TBL_ID", "CREATE_TIME", "DB_ID", "LAST_ACCESS_TIME", "OWNER", "RETENTION",
              "SD_ID", "TBL_NAME", "TBL_TYPE", "IS_REWRITE_ENABLED")
              VALUES ({number}, 5, 1, 0, 'ann', 0, {number}, '{name}', 'MANAGED_TABLE', false);
            INSERT INTO "TABLE_PARAMS" VALUES ({number}, 'spark.sql.sources.provider', 'delta');
        """)


@pytest.fixture(scope="module")
def server() -> Iterator[Database]:
    with metastore_database.server() as database:
        database.run(KINDS)
        Database(database.sockets, "postgres").run("CREATE DATABASE timeline_empty")
        Store(ask(Database(database.sockets, "timeline_empty"))).create()
        yield database


@pytest.fixture
def lake(server: Database) -> Lake:
    timeline = Database(server.sockets, "timeline_empty").copy("timeline")
    return Lake(server.copy("mine"), Store(ask(timeline)))


def test_a_damaged_table_is_a_fault_and_the_others_are_looked_at(lake: Lake, tmp_path: Path) -> None:
    lake.add_delta(900, "good", tmp_path / "good")
    assert lake.look() > 0
    tables = source.tables(ask(lake.metastore))
    answer = question.answer(lake.store, {})
    faults = {f"{row['database']}.{row['table']}": row["fault"] for row in answer["troubled"]}
    [ice] = [table for table in tables if table.format == "iceberg"]
    assert "is not there" in faults[f"{ice.database}.{ice.name}"]
    assert ("default.good", "write") in lake.commits()
    assert answer["looked"] > 0
    assert not any("VIEW" in table.format.upper() for table in tables)


def test_a_quiet_lake_makes_no_commit(lake: Lake, tmp_path: Path) -> None:
    lake.add_delta(900, "d", tmp_path)
    lake.look()
    lake.tree.reads.clear()
    assert lake.look() == 0
    assert [uri for uri in lake.tree.reads if uri.endswith(f"{0:020}.json")] == []


def test_a_table_is_renamed_dropped_and_made_again(lake: Lake, tmp_path: Path) -> None:
    lake.add_delta(900, "d", tmp_path / "d")
    lake.look()
    lake.metastore.run("""UPDATE "TBLS" SET "TBL_NAME" = 'other' WHERE "TBL_ID" = 900""")
    lake.look()
    lake.metastore.run("""
        DELETE FROM "TABLE_PARAMS" WHERE "TBL_ID" = 900; DELETE FROM "TBLS" WHERE "TBL_ID" = 900""")
    lake.look()
    lake.add_delta(901, "other", tmp_path / "again")
    lake.look()
    assert lake.commits(pattern="default.o*") == [
        ("default.other", "drop"),
        ("default.other", "rename"),
        ("default.other", "write"),
        ("default.other", "write"),
    ]
    assert lake.look() == 0


def test_each_table_at_a_moment(lake: Lake, tmp_path: Path) -> None:
    lake.add_delta(900, "d", tmp_path / "d")
    lake.look()
    [first] = question.answer(lake.store, {"pattern": "default.d"})["commits"]
    before = lake.store.rows(
        "SELECT jsonb_build_object('ms', (extract(epoch FROM clock_timestamp()) * 1000)::bigint)"
    )
    write_deltalake(tmp_path / "d", ROWS, mode="append")
    lake.look()
    at = {"pattern": "default.*", "at_ms": before[0]["ms"]}
    assert [row["commit"] for row in question.answer(lake.store, at)["commits"]] == [first["commit"]]
    later = question.answer(lake.store, {**at, "at_ms": lake.now_ms})["commits"]
    assert [row["commit"] for row in later] == ["1"]
    assert question.answer(lake.store, {**at, "at_ms": 0})["commits"] == []


@pytest.mark.parametrize("pattern", ["it's", "a_b", "%", "\\", "x;--"])
def test_a_pattern_is_text(lake: Lake, tmp_path: Path, pattern: str) -> None:
    lake.add_delta(900, "d", tmp_path)
    lake.look()
    assert question.answer(lake.store, {"pattern": pattern})["commits"] == []


def test_a_request_is_bounded(lake: Lake) -> None:
    with pytest.raises(UsageError, match="1 to 10000"):
        question.answer(lake.store, {"most": 10_001})


def test_a_silent_hdfs_changes_nothing(lake: Lake, tmp_path: Path) -> None:
    lake.add_delta(900, "d", tmp_path)
    lake.tree.down = True
    with pytest.raises(LakehouseError, match="HDFS does not answer"):
        lake.look()
    lake.tree.down = False
    assert lake.look() > 0


def test_a_silent_database_is_one_line(lake: Lake) -> None:
    @contextmanager
    def silent(_: str) -> Iterator[Iterator[bytes]]:
        yield iter([b'{"half": "of a l'])

    with pytest.raises(LakehouseError, match="has not answered to the end"):
        Look(silent, lake.store, lake.tree, NOW).run()
    with pytest.raises(LakehouseError, match="has not answered to the end"):
        Store(silent).tables()


@dataclass
class Receiver:
    """A subscriber, which answers with a status."""

    status: int = 200
    received: list[int] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if receiver.status < 300:
                receiver.bodies.append(body)
                receiver.received += [commit["number"] for commit in body["commits"]]
            self.send_response(receiver.status)
            self.send_header("Location", receiver.url)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    served = HTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{served.server_port}/secret"
    thread = threading.Thread(target=served.serve_forever)
    thread.start()
    yield receiver
    served.shutdown()
    thread.join()
    served.server_close()


def test_a_subscriber_receives_each_commit_once_and_in_order(
    lake: Lake, tmp_path: Path, receiver: Receiver
) -> None:
    lake.add_delta(900, "d", tmp_path)
    lake.look()
    lake.store.subscribe({"mine": receiver.url})
    webhooks.deliver(lake.store, "lake")
    assert receiver.received == []
    for _ in range(3):
        write_deltalake(tmp_path, ROWS, mode="append")
        lake.look()
        webhooks.deliver(lake.store, "lake")
    webhooks.deliver(lake.store, "lake")
    assert len(receiver.received) == 3
    assert receiver.received == sorted(set(receiver.received))
    assert receiver.bodies[0]["cluster"] == "lake"
    assert receiver.bodies[0]["commits"][0]["table"] == "d"
    lake.store.subscribe({})
    assert lake.store.rows("SELECT to_jsonb(s) FROM timeline.subscribers s") == []


@pytest.mark.parametrize("status", [500, 302, 404])
def test_a_subscriber_that_refuses_gets_them_later(
    lake: Lake, tmp_path: Path, receiver: Receiver, status: int
) -> None:
    lake.store.subscribe({"mine": receiver.url, "silent": "http://127.0.0.1:9/"})
    lake.add_delta(900, "d", tmp_path)
    lake.look()
    receiver.status = status
    webhooks.deliver(lake.store, "lake")
    faults = {row["name"]: row["fault"] for row in question.answer(lake.store, {})["subscribers"]}
    assert faults["mine"] == f"it answers with {status}"
    assert "Connection refused" in faults["silent"]
    receiver.status = 200
    webhooks.deliver(lake.store, "lake")
    assert receiver.received
    failing = [row["name"] for row in question.answer(lake.store, {})["subscribers"]]
    assert failing == ["silent"]


def test_the_programs_print_one_object(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lake.add_delta(900, "d", tmp_path)
    sockets = lake.metastore.sockets
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({
        "cluster": "lake", "metastore_psql": lake.metastore.argv,
        "psql": Database(sockets, "timeline").argv, "namenode": "", "superuser": "", "keep_days": 30,
        "alert_seconds": 300, "subscribers": {}, "metrics": str(tmp_path / "timeline.prom"),
    }))  # fmt: skip
    monkeypatch.setattr(program, "HdfsTree", lambda *_: FolderTree())
    assert program.main(["--settings", str(settings), "collect"]) == 0
    assert json.loads(capsys.readouterr().out)["commits"] > 0
    assert "lakehouse_timeline_faults " in (tmp_path / "timeline.prom").read_text()
    monkeypatch.setattr("sys.stdin", io.StringIO('{"most": -1}\n'))
    assert program.main(["--settings", str(settings), "show"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "why": "the number of commits is -1: 1 to 10000",
        "next": None,
        "usage": True,
    }
    assert program.main(["--settings", str(tmp_path / "absent.json"), "collect"]) == 1
    assert "absent.json" in json.loads(capsys.readouterr().out)["why"]
