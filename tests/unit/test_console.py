"""`lakehouse console`: what is answered to whom, what the page shows, and when it looks at the cluster."""

from __future__ import annotations

import http.client
import json
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from html.parser import HTMLParser
from http import HTTPStatus
from threading import Event, Thread
from typing import Any
from urllib.parse import quote

import pytest

from lakehouse import cli, commands
from lakehouse.commands import console as command
from lakehouse.console import look, render, view
from lakehouse.console.pages import Pages, Response
from lakehouse.console.server import Server
from lakehouse.console.view import Count, DataNode, TableEntry, View, Warehouse
from lakehouse.console.watch import Snapshot, Watch
from lakehouse.errors import LakehouseError
from lakehouse.maybe import Answer, unknown
from lakehouse.monitoring.plots import Plot
from lakehouse.status import screen
from lakehouse.status.model import Status
from plugins.module_utils.lakehouse.fsck import Block, File, NameNodeError
from tests.unit import patience
from tests.unit.test_status import SILENT, healthy, silent, stopped

HOST = "127.0.0.1:8765"
NOW = 1000.0
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "{{ 7 * 7 }}",
    "a&amp;b%3Cb%3E?x=1#y",
    "\u202egnp.evil",
)

PLOTS = (Answer(Plot((60, 120), {"n1": (1.5, None)})), *look.unread_plots()[1:])


def file(path: str, *blocks: tuple[str, ...], replication: int = 2) -> File:
    found = tuple(Block(f"blk_{number}", 10, nodes) for number, nodes in enumerate(blocks))
    return File(path, 10 * len(found), replication, found)


FILES = (
    file("/lake/t/data/a.parquet", ("n1", "n2"), ("n2", "n1")),
    file("/lake/t/data/b.parquet", ("n1",)),
    file("/stage/left", ("n1", "n2")),
)


TABLES = (TableEntry("db.t", "iceberg", "/lake/t"),)
COUNT: Count = Answer(view.files_by_table(TABLES, FILES))


def seen_view(status: Status, *tables: TableEntry) -> View:
    nodes = (
        DataNode("n1", view.LIVE, 100, 10, 80, 7, 1, 0),
        DataNode("n2", view.DEAD, 0, 0, 0, 0, 700, 0),
    )
    return View(
        status,
        screen.result(status, 1.0),
        Answer(nodes),
        Answer(12),
        Answer(tables or TABLES),
        Warehouse("http://127.0.0.1:1/fsck", "hdfs", {}),
    )


def index(
    status: Status, *tables: TableEntry, age: float = 0.0, count: Count = COUNT, trouble: str = ""
) -> str:
    views = Snapshot(seen_view(status, *tables), NOW - age, NOW - age + 15, trouble)
    return render.index(views, Snapshot(count, NOW, NOW + 30), NOW)


class Page(HTMLParser):
    """What a browser would make of a page: elements with their attributes, and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.inside = tag

    def handle_endtag(self, _: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        assert self.inside not in {"script", "style"}, data
        self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())

    @property
    def links(self) -> list[str]:
        names = ("href", "src", "action", "data", "poster", "srcset")
        return [str(own[name]) for _, own in self.elements for name in names if name in own]


def fixed(first: Any) -> Watch[Any]:
    """A watch that has seen something and never looks again."""
    return Watch(lambda: first, first, every=10, limit=5)


@pytest.fixture
def console() -> Pages:
    return Pages(fixed(seen_view(healthy())), fixed(COUNT), fixed(PLOTS))


def get(console: Pages, target: str, **headers: str) -> Response:
    return console.respond("GET", target, {"Host": HOST} | headers)


def of_name(name: str) -> Pages:
    """The console of a cluster in which everything has one name."""
    tables = (TableEntry(f"db.{name}", name, "/lake/t"),)
    count = Answer(view.files_by_table(tables, [file(f"/lake/t/{name}", (name,))]))
    status = replace(stopped(healthy(), "datanode", "n2"), cluster=name, inventory=name)
    return Pages(fixed(seen_view(status, *tables)), fixed(count), fixed(PLOTS))


class TestRoutes:
    """Which request has which answer."""

    @pytest.mark.parametrize(
        ("target", "kind"),
        [
            ("/", "text/html"),
            ("/?x=1", "text/html"),
            ("/table?name=db.t", "text/html"),
            ("/table?name=%2Fstage", "text/html"),
            ("/status.json", "application/json"),
            ("/style.css", "text/css"),
            ("/console.js", "text/javascript"),
            ("/metrics", "text/html"),
            ("/metrics.json", "application/json"),
            ("/metrics.js", "text/javascript"),
            ("/uplot.js", "text/javascript"),
            ("/uplot.css", "text/css"),
        ],
    )
    def test_a_page_is_there(self, console: Pages, target: str, kind: str) -> None:
        response = get(console, target)
        assert response.status == 200
        assert response.lines["Content-Type"].startswith(kind)
        assert response.lines["Content-Length"] == str(len(response.body))

    @pytest.mark.parametrize(
        "target",
        [
            "/x",
            "/../etc/passwd",
            "//evil.example/",
            "http://evil.example/",
            "",
            "/table",
            "/table?name=no",
            "*",
        ],
    )
    def test_another_is_not(self, console: Pages, target: str) -> None:
        assert get(console, target).status == 404

    @pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "get", "X"])
    @pytest.mark.parametrize("target", ["/", "/status.json", "/x"])
    def test_everything_but_reading_is_refused(self, console: Pages, method: str, target: str) -> None:
        response = console.respond(method, target, {"Host": HOST})
        assert (response.status, response.headers["Allow"]) == (405, "GET, HEAD")

    @pytest.mark.parametrize(
        "host",
        [HOST, "127.0.0.1", "localhost:1", "LOCALHOST", "[::1]:8765", "[::1]", "10.0.0.7:80",
         socket.gethostname()],
    )  # fmt: skip
    def test_an_address_and_a_name_of_this_machine_are_answered(self, console: Pages, host: str) -> None:
        assert get(console, "/status.json", Host=host).status == 200

    @pytest.mark.parametrize(
        "host",
        ["", "evil.example", "evil.example:8765", "localhost.evil.example", "127.0.0.1.evil.example",
         "127.0.0.1@evil.example", "[evil.example]", "localhost.", "0x7f.1"],
    )  # fmt: skip
    @pytest.mark.parametrize("target", ["/", "/status.json", "/style.css", "/x"])
    def test_a_name_that_somebody_made_lead_here_is_refused(
        self, console: Pages, host: str, target: str
    ) -> None:
        assert get(console, target, Host=host).status == 421

    def test_every_answer_is_safe_and_for_nobody_elses_page(self, console: Pages) -> None:
        answers = [
            get(console, target) for target in ("/", "/table?name=db.t", "/status.json", "/console.js", "/x")
        ]
        answers += [get(console, "/", Host="evil.example"), console.respond("POST", "/", {"Host": HOST})]
        answers.append(get(console, "/", **{"If-None-Match": answers[0].lines["ETag"]}))
        assert answers[-1].status == 304
        for response in answers:
            lines = response.lines
            policy = dict(one.strip().split(" ", 1) for one in lines["Content-Security-Policy"].split(";"))
            assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
            assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
            assert lines["X-Content-Type-Options"] == "nosniff"
            assert not [name for name in lines if name.startswith("Access-Control-")]

    def test_programs_get_what_the_status_says(self, console: Pages) -> None:
        expected = screen.result(healthy(), 1.0).json()
        assert json.loads(get(console, "/status.json").body) == json.loads(json.dumps(expected))

    def test_each_panel_has_its_values_or_why_it_has_none(self, console: Pages) -> None:
        page = Page(get(console, "/metrics").body.decode())
        titles = [attributes["data-title"] for name, attributes in page.elements if name == "figure"]
        values = json.loads(get(console, "/metrics.json").body)
        assert len(titles) == len(values) == len(PLOTS)
        assert values[0] == {"why": "", "times": [60, 120], "series": [{"name": "n1", "values": [1.5, None]}]}
        assert values[1] == {"why": "the console has not read them yet", "times": [], "series": []}

    def test_values_are_sent_again_when_they_are_newer_and_make_nothing_else_look(self) -> None:
        views, counts, plots = fixed(seen_view(healthy())), fixed(COUNT), fixed(PLOTS)
        console = Pages(views, counts, plots)
        tag = get(console, "/metrics.json").lines["ETag"]
        assert get(console, "/metrics.json", **{"If-None-Match": tag}).status == 304
        plots.once()
        assert get(console, "/metrics.json", **{"If-None-Match": tag}).status == 200
        assert (views._requested, counts._requested) == (False, False)

    def test_what_a_browser_has_is_not_sent_again_until_it_looks_otherwise(self) -> None:
        views = fixed(seen_view(healthy()))
        console = Pages(views, fixed(COUNT), fixed(PLOTS))
        tag = get(console, "/").lines["ETag"]
        assert get(console, "/", **{"If-None-Match": tag}).status == 304
        views.once()
        assert get(console, "/", **{"If-None-Match": tag}).status == 200
        tag = get(console, "/").lines["ETag"]
        views.snapshot = replace(views.snapshot, due=time.monotonic() - 1)
        assert get(console, "/", **{"If-None-Match": tag}).status == 200

    def test_a_console_that_began_again_has_other_tags(self, console: Pages) -> None:
        again = Pages(fixed(seen_view(healthy())), fixed(COUNT), fixed(PLOTS))
        assert get(console, "/").lines["ETag"] != get(again, "/").lines["ETag"]


@contextmanager
def served(console: Pages) -> Iterator[Server]:
    with Server("127.0.0.1", 0) as server:
        server.pages = console
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def ask(server: Server, request: str) -> bytes:
    """Return everything that is answered to some bytes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=patience.SECONDS) as stream:
        stream.sendall(request.encode())
        stream.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: stream.recv(65536), b""))


class TestServer:
    """The port."""

    @pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE", "BREW"])
    def test_a_method_is_answered_over_http(self, console: Pages, method: str) -> None:
        with served(console) as server:
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=patience.SECONDS)
            connection.request(method, "/status.json")
            response = connection.getresponse()
            body = response.read()
            connection.close()
        read = method in {"GET", "HEAD"}
        assert response.status == (200 if read else 405)
        assert bool(body) == (method != "HEAD")
        assert int(response.headers["Content-Length"]) > 0
        assert response.headers["Server"] == "lakehouse"
        assert response.headers["X-Frame-Options"] == "DENY"

    @pytest.mark.parametrize("lines", ["", "Host: localhost\r\nHost: evil.example\r\n"])
    def test_a_request_names_one_host(self, console: Pages, lines: str) -> None:
        with served(console) as server:
            assert ask(server, f"GET / HTTP/1.1\r\n{lines}\r\n").startswith(b"HTTP/1.0 400 ")

    def test_what_is_no_http_ends_there(self, console: Pages, capfd: pytest.CaptureFixture[str]) -> None:
        with served(console) as server:
            assert b"400" in ask(server, "\x16\x03\x01 what is this\r\n\r\n")
            assert ask(server, "") == b""
            assert ask(server, f"GET /status.json HTTP/1.1\r\nHost: {HOST}\r\n\r\n").startswith(
                b"HTTP/1.0 200"
            )
        assert capfd.readouterr() == ("", "")

    def test_a_port_in_use_is_one_line_with_the_next_command(self) -> None:
        with (
            Server("127.0.0.1", 0) as first,
            pytest.raises(LakehouseError, match=rf"^port {first.port} of 127.0.0.1: .* next: .* --port 0$"),
        ):
            Server("127.0.0.1", first.port)

    @pytest.mark.parametrize("address", ["192.0.2.1", "2001:db8::1", "example.org", "999.1.1.1", "a b", ""])
    def test_an_address_that_is_nobodys_here_is_one_line(self, address: str) -> None:
        with pytest.raises(LakehouseError, match=r"next: .* --address 127\.0\.0\.1"):
            Server(address, 0)

    @pytest.mark.parametrize(
        ("address", "local", "host"),
        [("127.0.0.1", True, "127.0.0.1"), ("localhost", True, None), ("0.0.0.0", False, "127.0.0.1")],  # noqa: S104 -- the question
    )
    def test_it_says_where_it_is_and_warns_of_others(
        self, capsys: pytest.CaptureFixture[str], *, address: str, local: bool, host: str | None
    ) -> None:
        with Server(address, 0) as server:
            command.say(server, "lake", 10.0)
            port = server.port
        said = capsys.readouterr()
        [line] = said.out.splitlines()
        assert re.match(rf"console lake: http://\S+:{port}/; every 10 s ", line)
        assert host is None or f"http://{host}:{port}/" in line
        warnings = said.err.splitlines()
        assert len(warnings) == (not local)
        if not local:
            sees = f"a client that reaches port {port} sees "
            assert warnings[0].startswith(f"WARN console.address 0.0.0.0: {sees}")

    @pytest.mark.parametrize(
        "options",
        [["--port", "65536"], ["--port", "-1"], ["--port", "http"], ["--every", "0"], ["--every", "nan"],
         ["--every", "-5"], ["--every", "soon"], ["--adress", "::1"]],
    )  # fmt: skip
    def test_a_wrong_option_is_said_before_anything_listens(
        self, capsys: pytest.CaptureFixture[str], options: list[str]
    ) -> None:
        assert cli.main(["console", *options]) == commands.USAGE
        assert options[0].strip("-") in capsys.readouterr().err

    def test_an_inventory_that_is_not_there_is_one_line(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.main(["console", "--port", "0", "-i", "inventory/nowhere"]) == commands.USAGE
        assert capsys.readouterr().err.splitlines() == [
            "error: inventory inventory/nowhere does not exist; next: ls -d inventory/*"
        ]


class TestPage:
    """What is shown."""

    def test_a_healthy_cluster(self) -> None:
        words = Page(index(healthy())).words
        assert "lake: OK" in words
        assert "2 of 2 nodes answered" in words
        assert "6 of 6 services run" in words
        assert "PostgreSQL 17.6 answers" in words
        assert "Backup none" in words
        for word in ("What is wrong", "stale", "failed: "):
            assert word not in words

    def test_a_finding_has_its_next_command(self) -> None:
        status = stopped(healthy(), "datanode", "n2")
        page = Page(index(status))
        [finding] = screen.result(status, 1.0).findings
        assert "lake: DEGRADED" in page.words
        assert f"datanode on n2 : {finding.fact} {finding.code} {finding.next}" in page.words
        assert ("span", {"class": "chip stopped"}) in page.elements

    def test_what_is_not_known_is_unknown_for_its_reason(self) -> None:
        status = replace(silent(healthy(), "n2"), hdfs=unknown(SILENT), engines={"spark": unknown(SILENT)})
        page = Page(index(status))
        assert f"n2 10.0.0.2 unknown {SILENT}" in page.words
        assert f"Spark unknown {SILENT}" in page.words
        assert f"HDFS unknown {SILENT}" in page.words
        assert ("span", {"class": "chip unknown"}) in page.elements

    def test_tables_and_files_that_nobody_could_ask_for_are_unknown(self) -> None:
        lost = replace(seen_view(healthy()), tables=unknown("psql: gone"), datanodes=unknown(SILENT))
        seen = Snapshot(COUNT, NOW, NOW + 9)
        words = Page(render.index(Snapshot(lost, NOW, NOW + 9), seen, NOW)).words
        assert "Tables: unknown psql: gone" in words
        assert f"DataNodes: unknown {SILENT}" in words
        assert "Files: unknown not yet" in Page(index(healthy(), count=unknown("not yet"))).words

    def test_a_datanode_that_is_dead_has_no_numbers(self) -> None:
        words = Page(index(healthy())).words
        assert "n1 live 7 10 B 80 B of 100 B 0 1 s before" in words
        assert "n2 dead unknown 11 min before" in words

    def test_a_table_shows_its_worst_block_and_where_its_replicas_are(self) -> None:
        words = Page(index(healthy())).words
        assert "db.t iceberg 2 3 30 B ✗ 1 of 2 3 2" in words
        assert "/stage no table 1 1 10 B ✓ 2 of 2 1 1" in words

    def test_a_table_that_came_after_the_count_is_not_called_empty(self) -> None:
        status, new = healthy(), TableEntry("db.new", "delta", "/lake/new")
        words = Page(index(status, *TABLES, new)).words
        assert "Not counted yet: db.new" in words
        assert "db.new delta" not in words
        console = Pages(fixed(seen_view(status, *TABLES, new)), fixed(COUNT), fixed(PLOTS))
        response = get(console, "/table?name=db.new")
        assert response.status == 200
        assert "unknown not counted yet" in Page(response.body.decode()).words

    def test_a_tables_files_are_a_click_away(self, console: Pages) -> None:
        assert "/table?name=db.t" in Page(get(console, "/").body.decode()).links
        words = Page(get(console, "/table?name=db.t").body.decode()).words
        assert "data/a.parquet 20 B 2 2 of 2 n1 n2" in words
        assert "data/b.parquet 10 B 1 1 of 2 n1" in words
        assert "/stage/left" not in words

    @pytest.mark.parametrize(
        ("age", "trouble", "stale"), [(0, "", False), (14.9, "", False), (15.1, "", True), (0, "no", True)]
    )
    def test_what_should_be_newer_is_stale(self, *, age: float, trouble: str, stale: bool) -> None:
        page = Page(index(healthy(), age=age, trouble=trouble))
        badges = [own for _, own in page.elements if own.get("class") == "badge stale"]
        assert bool(badges) is stale
        assert f"seen {screen.age(age)} ago" in page.words
        assert ("The last attempt failed: no" in page.words) is bool(trouble)

    def test_files_that_are_old_are_stale_beside_a_status_that_is_not(self) -> None:
        views = Snapshot(seen_view(healthy()), NOW, NOW + 15)
        seen = Snapshot(COUNT, NOW - 90, NOW - 1, "the NameNode is away")
        page = Page(render.index(views, seen, NOW))
        assert len([own for _, own in page.elements if own.get("class") == "badge stale"]) == 1
        assert "Tables in HDFS stale The last attempt failed: the NameNode is away" in page.words
        assert "counted 1 min ago" in page.words

    @pytest.mark.parametrize("name", HOSTILE)
    def test_a_hostile_name_is_text_and_its_link_leads_to_it(self, name: str) -> None:
        console, plain = of_name(name), of_name("plain")
        front = Page(get(console, "/").body.decode())
        [link] = [link for link in front.links if link.startswith("/table?")]
        assert link == f"/table?name={quote(f'db.{name}', safe='/')}"
        assert " ".join(name.split()) in front.words
        response = get(console, link)
        assert response.status == 200
        page = Page(response.body.decode())
        assert f"{name} 10 B 1 1 of 2 {name}" in page.words
        for found, expected in ((front, get(plain, "/")), (page, get(plain, "/table?name=db.plain"))):
            wanted = Page(expected.body.decode()).elements
            assert [(tag, own.keys()) for tag, own in found.elements] == [
                (tag, own.keys()) for tag, own in wanted
            ]

    def test_nothing_comes_from_elsewhere_and_nothing_is_inline(self, console: Pages) -> None:
        for target in ("/", "/table?name=db.t", "/metrics"):
            page = Page(get(console, target).body.decode())
            assert [link for link in page.links if not re.match(r"/(?!/)|data:,$", link)] == []
            assert not [own for _, own in page.elements if "style" in own]
        for target in ("/style.css", "/console.js", "/metrics.js", "/uplot.css"):
            assert not re.search(rb"https?://|@import|url\(", get(console, target).body)

    def test_many_tables_are_shown_by_their_size(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(render, "MOST_TABLES", 1)
        words = Page(index(healthy())).words
        assert "db.t iceberg" in words
        assert "/stage no table" not in words
        assert "1 smaller ones are not shown" in words


class TestView:
    """From what the NameNode and the database say."""

    def test_a_file_is_its_innermost_tables_and_the_rest_its_folders(self) -> None:
        tables = [
            TableEntry("a.outer", "hive", "/lake"),
            TableEntry("a.inner", "delta", "/lake/t"),
            TableEntry("a.same", "delta", "/lake/t"),
            TableEntry("a.elsewhere", "hive", ""),
            TableEntry("a.empty", "iceberg", "/lake/tt"),
        ]
        files = [file("/lake/x"), file("/lake/t/y", ("n1", "n2")), file("/lake2/z"), file("/root-file")]
        found = {
            one.table.name: [each.path for each in one.files] for one in view.files_by_table(tables, files)
        }
        assert found == {
            "a.empty": [],
            "a.inner": ["/lake/t/y"],
            "a.outer": ["/lake/x"],
            "a.same": ["/lake/t/y"],
            "/lake2": ["/lake2/z"],
            "/root-file": ["/root-file"],
        }

    def test_the_block_that_lacks_most_decides(self) -> None:
        files = [
            file("/t/two", ("n1", "n2"), replication=2),
            file("/t/three", ("n1", "n2", "n3"), ("n1", "n1"), replication=3),
        ]
        [one] = view.files_by_table([TableEntry("a.t", "hive", "/t")], files)
        assert (one.table.replicas_min, one.table.replicas_expected) == (1, 3)
        assert one.table.nodes == {"n1": 3, "n2": 2, "n3": 1}
        assert one.table.shortage == "a block has 1 of 3 replicas"

    def test_a_row_of_the_database_is_a_table(self) -> None:
        rows = [
            {"database": "a", "name": "b\nc", "format": "delta", "location": "hdfs://lake/a.db/b/"},
            {"database": "a", "name": "d", "format": "hive", "location": "file:/srv/d"},
            {"database": "a", "name": "e", "format": "hive", "location": None},
        ]
        text = "\n".join(map(json.dumps, rows)) + "\n"
        assert view.parse_tables(text) == (
            TableEntry("a.b\nc", "delta", "/a.db/b"),
            TableEntry("a.d", "hive", ""),
            TableEntry("a.e", "hive", ""),
        )
        assert view.parse_tables("\n") == ()

    def test_datanodes_are_live_dead_or_what_an_administrator_made_of_them(self) -> None:
        node = {
            "xferaddr": "10.0.0.1:9866", "lastContact": 2, "adminState": "In Service", "capacity": 9,
            "used": 1, "remaining": 5, "numBlocks": 3, "volfails": 0,
        }  # fmt: skip
        leaving = node | {"adminState": "Decommission In Progress", "xferaddr": "10.0.0.2:9866"}
        info = {
            "LiveNodes": json.dumps({"n2:9866": leaving, "n1:9866": node}),
            "DeadNodes": json.dumps({"n3:9866": {"lastContact": 700, "adminState": "In Service"}}),
        }
        assert view.datanodes(info) == (
            DataNode("n1", "live", 9, 1, 5, 3, 2, 0),
            DataNode("n2", "decommission in progress", 9, 1, 5, 3, 2, 0),
            DataNode("n3", "dead", 0, 0, 0, 0, 700, 0),
        )
        assert view.names(info) == {"10.0.0.1:9866": "n1", "10.0.0.2:9866": "n2"}


class Enough(BaseException):
    """Ends a watch, which never does by itself."""


class TestWatch:
    """When the cluster is looked at."""

    def test_what_was_seen_is_kept_through_trouble_and_is_stale(self) -> None:
        gone = failing(LakehouseError("gone", "run this"))
        answers: list[Callable[[], str]] = [lambda: "third", gone, lambda: "second"]

        def look() -> str:
            return answers.pop()()

        watch: Watch[str] = Watch(look, "first", every=10, limit=5)
        numbers = [watch.snapshot.number]
        for value, trouble in (("second", ""), ("second", "gone; next: run this"), ("third", "")):
            watch.once()
            assert (watch.snapshot.value, watch.snapshot.trouble) == (value, trouble)
            assert watch.snapshot.stale(time.monotonic()) is bool(trouble)
            numbers.append(watch.snapshot.number)
        assert len(set(numbers)) == len(numbers)

    def test_it_rests_until_the_next_is_due_and_longer_after_a_long_look(self) -> None:
        assert 9 < Watch(lambda: 0, 0, every=10, limit=5).once() <= 10
        slow = Watch(time.monotonic, 0.0, every=0, limit=5, rest=9)
        began = time.monotonic()
        rest = slow.once()
        looked = time.monotonic() - began
        assert 0 <= rest <= 9 * looked
        assert slow.snapshot.due >= slow.snapshot.at + rest + 5

    def test_nobody_looks_for_nobody_and_one_look_serves_all(self) -> None:
        looked, go_on, count = Event(), Event(), [0]

        def look() -> int:
            count[0] += 1
            looked.set()
            assert go_on.wait(patience.SECONDS)
            go_on.clear()
            if count[0] == 3:
                raise Enough
            return count[0]

        def run() -> None:
            with pytest.raises(Enough):
                watch.run()

        watch: Watch[int] = Watch(look, 0, every=0, limit=5)
        thread = Thread(target=run, daemon=True)
        thread.start()
        assert not looked.wait(0.2)
        watch.show()
        assert looked.wait(patience.SECONDS)
        # Many ask while a look is under way: one more follows it, and none is beside it.
        assert {watch.show().value for _ in range(20)} == {0}
        assert count == [1]
        looked.clear()
        go_on.set()
        assert looked.wait(patience.SECONDS)
        assert count == [2]
        looked.clear()
        go_on.set()
        # No request since: it waits.
        assert not looked.wait(0.2)
        assert watch.show().value == 2
        assert looked.wait(patience.SECONDS)
        go_on.set()
        thread.join(patience.SECONDS)
        assert not thread.is_alive()


def failing(error: Exception) -> Callable[[], str]:
    def fail() -> str:
        raise error

    return fail


class TestFiles:
    """What the NameNode says of its files, or why it says nothing."""

    TAIL = "\nThe filesystem under path '/' is HEALTHY\n"

    def test_files_are_not_counted_by_tables_that_nobody_knows(self) -> None:
        with pytest.raises(LakehouseError, match="the tables are not known: psql: gone"):
            look.count(replace(seen_view(healthy()), tables=unknown("psql: gone")))

    def test_a_namenode_that_is_away_is_one_line(self) -> None:
        with Server("127.0.0.1", 0) as free:
            url = f"{free.url}fsck"
        with pytest.raises(NameNodeError, match=f"^{re.escape(url)}: .*refused"):
            look.files(Warehouse(url, "hdfs", {}))

    @pytest.mark.parametrize("limit", [10, 10_000])
    def test_an_answer_that_is_too_long_is_no_answer(
        self, monkeypatch: pytest.MonkeyPatch, limit: int
    ) -> None:
        line = "/t/f 5 bytes, replicated: replication=1, 1 block(s):  OK\n"
        block = "0. BP-1:blk_1_1 len=5 Live_repl=1  [DatanodeInfoWithStorage[10.0.0.1:9866,DS-1,DISK]]\n"
        asked: list[str] = []

        def respond(_: str, target: str, __: Mapping[str, str]) -> Response:
            asked.append(target)
            return Response(HTTPStatus.OK, "text/plain", (line + block + self.TAIL).encode())

        monkeypatch.setattr(look, "MOST_BYTES", limit)
        console = Pages(fixed(None), fixed(None), fixed(None))
        monkeypatch.setattr(console, "respond", respond)
        with served(console) as server:
            warehouse = Warehouse(f"{server.url}fsck", "hdfs", {"10.0.0.1:9866": "n1"})
            if limit < len(line):
                with pytest.raises(NameNodeError, match="an answer of more than"):
                    look.files(warehouse)
            else:
                expected = File("/t/f", 5, 1, (Block("blk_1_1", 5, ("n1",)),))
                assert look.files(warehouse) == (expected,)
        assert asked == ["/fsck?ugi=hdfs&path=%2F&files=1&blocks=1&locations=1"]
