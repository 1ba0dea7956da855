"""`lakehouse metastore check`: how far each address is reached, what follows from it, and the exit code."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from hive_metastore import ttypes

from lakehouse import cli
from lakehouse.commands.metastore import check as metastore
from lakehouse.maybe import Answer, unknown
from lakehouse.metastore import Endpoint
from lakehouse.metastore.health import Health, Step, check
from lakehouse.metastore.options import endpoints
from lakehouse.model.inventory import Host, Inventory
from lakehouse.model.placement import Cluster
from lakehouse.model.services import load
from lakehouse.outcome import Outcome
from lakehouse.remote import output
from lakehouse.remote.probing import Http
from lakehouse.run import ROOT
from tests.unit import command_line
from tests.unit.metastore_fake import Catalog, Fake, dead
from tests.unit.metastore_garbage import GARBAGE

WELL = Health(
    Endpoint("10.0.0.1"), dict.fromkeys(Step, 1.0), databases=2, version="3.0", warehouse="hdfs://lake/w"
)
LOST = Health(Endpoint("10.0.0.2"), {}, why="Connection refused")
CUT_OFF = Health(Endpoint("10.0.0.1"), {Step.TCP: 1.0, Step.THRIFT: 2.0}, why="MetaException: no database")
SEEN = metastore.Seen(
    cluster="lake",
    inventory="inventory/mine",
    healths=(WELL, WELL),
    database="n3",
    schema=Answer("3.1.0"),
    expected="3.1.0",
    warehouse="hdfs://lake/w",
    writable=Answer(""),
)
NO_POSTGRESQL: Answer[str] = unknown('psql: error: connection to server on socket "/run/x" failed')


class NoDatabase(Catalog):
    """A metastore without its database."""

    def get_all_databases(self) -> list[str]:
        raise ttypes.MetaException(message="Unable to connect to the database")


class TestHealth:
    def test_each_address_is_asked_as_far_as_it_answers(self) -> None:
        gone = dead()
        with Fake() as alive, Fake(NoDatabase()) as cut_off, Fake(silent=True) as silent:
            asked = endpoints(f"{gone},{silent.uri},{cut_off.uri},{alive.uri}")
            found = check(asked, seconds=1.0)
        assert [health.failed for health in found] == [Step.TCP, Step.THRIFT, Step.DATABASE, None]
        assert [str(health.endpoint) for health in found] == [gone, silent.uri, cut_off.uri, alive.uri]
        assert "refused" in found[0].why
        assert "no answer within" in found[1].why
        assert "Unable to connect" in found[2].why
        assert (found[3].databases, found[3].version, found[3].warehouse) == (2, "4.1", "hdfs://lake/w")
        assert all(spent >= 0 for spent in found[3].steps.values())


class TestFindings:
    @pytest.mark.parametrize(
        ("seen", "outcome", "codes"),
        [
            (SEEN, Outcome.OK, []),
            (replace(SEEN, healths=(WELL, LOST)), Outcome.DEGRADED, ["metastore.tcp"]),
            (replace(SEEN, healths=(LOST, LOST)), Outcome.DOWN, ["metastore.tcp", "metastore.tcp"]),
            (
                replace(SEEN, healths=(CUT_OFF,), schema=NO_POSTGRESQL, warehouse=""),
                Outcome.DOWN,
                ["metastore.database", "metastore.database"],
            ),
            (replace(SEEN, schema=NO_POSTGRESQL), Outcome.DEGRADED, ["metastore.database"]),
            (replace(SEEN, schema=Answer("2.3.0")), Outcome.DEGRADED, ["metastore.schema"]),
            (replace(SEEN, writable=unknown("HTTP Error 404")), Outcome.DEGRADED, ["metastore.warehouse"]),
        ],
    )
    def test_each_fault_has_its_line_and_the_gravest_is_the_exit_code(
        self, seen: metastore.Seen, outcome: Outcome, codes: list[str]
    ) -> None:
        ending = metastore.result(seen, 1.0)
        assert (ending.outcome, [finding.code for finding in ending.worst]) == (outcome, codes)

    def test_without_postgresql_it_is_postgresql_that_is_named(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        seen = replace(SEEN, healths=(CUT_OFF,), schema=NO_POSTGRESQL, warehouse="")
        assert output.end(metastore.result(seen, 1.0), as_json=False) == 2
        first, *_, last = capsys.readouterr().err.splitlines()
        assert first.startswith("DOWN metastore.database n3: PostgreSQL does not answer: psql: error")
        assert last == (
            "metastore check lake: DOWN; 0 of 1 address answers, schema unknown, 1.0 s;"
            " next: .venv/bin/lakehouse logs postgresql -i inventory/mine"
        )

    def test_programs_get_every_step(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert output.end(metastore.result(replace(SEEN, healths=(WELL, LOST)), 1.0), as_json=True) == 1
        said = json.loads(capsys.readouterr().out)
        assert (said["verb"], said["outcome"], said["exit"]) == ("metastore check", "DEGRADED", 1)
        assert [one["failed"] for one in said["endpoints"]] == [None, "tcp"]
        assert said["endpoints"][0]["milliseconds"] == {"tcp": 1.0, "thrift": 1.0, "database": 1.0}
        assert (said["schema"], said["warehouse"]) == (
            "3.1.0", {"location": "hdfs://lake/w", "writable": True},
        )  # fmt: skip

    def test_a_line_for_each_address(self) -> None:
        assert metastore.table((WELL, LOST)) == [
            "ADDRESS                 TCP     THRIFT  DATABASE  DATABASES  VERSION",
            "thrift://10.0.0.1:9083  1.0 ms  1.0 ms  1.0 ms    2          3.0",
            "thrift://10.0.0.2:9083  -       -       -         -          -",
        ]


def test_hdfs_is_asked_where_new_tables_go_as_the_metastores_user() -> None:
    services = load().services
    variables = {"lakehouse_ports": {"namenode_http": 9870}, "lakehouse_users": {"hive": "catalog"}}
    host = Host("n1", "10.0.0.1", frozenset({"namenode"}), variables)
    cluster = Cluster(Inventory(ROOT / "inventory", (host,)), {"n1": (services["namenode"],)})
    [asked] = metastore._of_warehouse(cluster, "hdfs://lake/a b/warehouse")
    assert isinstance(asked, Http)
    assert asked.url == (
        "http://10.0.0.1:9870/webhdfs/v1/a%20b/warehouse?op=CHECKACCESS&fsaction=-wx&user.name=catalog"
    )
    assert not list(metastore._of_warehouse(cluster, "s3a://lake/warehouse"))


def test_the_verb_is_there() -> None:
    context = command_line.parsed(["metastore", "check", "-i", "other", "--json"])
    assert context.params == {"inventory": "other", "as_json": True}
    assert context.command is metastore.command


class WebHdfs(BaseHTTPRequestHandler):
    """A NameNode that lets every user make everything."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait longer than the verb does: a computer that is busy with other tests answers late."""
    for limit in ("_SECONDS", "_MORE_SECONDS"):
        monkeypatch.setattr(metastore, limit, 60.0)


@contextmanager
def namenode() -> Iterator[int]:
    """Give the port of one."""
    with ThreadingHTTPServer(("127.0.0.1", 0), WebHdfs) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def of_one(folder: Path, fake: Fake, http: int = 1) -> Path:
    """Return an inventory of one host, whose metastore is a fake and to which no SSH leads."""
    [endpoint] = endpoints(fake.uri)
    groups = ("namenode", "datanodes", "postgresql", "metastore", "spark_master", "spark_workers")
    variables = {
        "ansible_host": "127.0.0.1",
        "ansible_port": endpoints(dead())[0].port,
        "lakehouse_cluster": "lake",
        "lakehouse_ports": {"metastore": endpoint.port, "namenode_http": http},
    }
    own = {group: {"hosts": {"n1": None}} for group in groups}
    inventory = folder / "hosts.yml"
    inventory.write_text(yaml.safe_dump({"all": {"hosts": {"n1": variables}}, **own}), encoding="utf-8")
    return inventory


def test_the_verb_asks_whom_the_inventory_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All of it but PostgreSQL, to whose host no key leads from here."""
    with Fake() as fake, namenode() as http:
        inventory = of_one(tmp_path, fake, http)
        assert cli.main(["metastore", "check", "-i", str(inventory), "--json"]) == Outcome.DEGRADED
    said = json.loads(capsys.readouterr().out)
    assert [(one["endpoint"], one["failed"]) for one in said["endpoints"]] == [(fake.uri, None)]
    assert said["warehouse"] == {"location": "hdfs://lake/w", "writable": True}
    [finding] = said["findings"]
    assert (finding["code"], finding["where"]) == ("metastore.database", "n1")


@pytest.mark.parametrize("kind", GARBAGE)
def test_what_replies_with_garbage_is_one_line_of_the_verb(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    with Fake(garble={"getVersion": GARBAGE[kind]}) as fake:
        assert cli.main(["metastore", "check", "-i", str(of_one(tmp_path, fake))]) == Outcome.DOWN
    shown = capsys.readouterr().err
    [line] = [line for line in shown.splitlines() if "metastore.thrift" in line]
    assert line.startswith(f"DOWN metastore.thrift {fake.uri}: it does not answer by Thrift: getVersion: ")
    assert line.isprintable()
    assert "Traceback" not in shown
    assert shown.splitlines()[-1].startswith("metastore check lake: DOWN; 0 of 1 address answers")
