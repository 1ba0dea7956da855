"""The census reads HDFS over HTTP, and findings of its report are made of rows."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from lakehouse.census import files, report
from lakehouse.census.files import DamagedError, Entry, HdfsFiles, UnavailableError
from lakehouse.census.report import KINDS, Limits

CONTENT = b"0123456789"
TREE = {"/t": ["a", "_hidden", "sub"], "/t/sub": ["b"], "/loop": ["loop"]}


class NameNode(BaseHTTPRequestHandler):
    """A folder /t with files, /loop that is in itself, /odd without an answer, and /forbidden."""

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        path = unquote(parts.path).removeprefix("/webhdfs/v1")
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if path == "/data/cut":
            self.answer(200, CONTENT, cut=4)
        elif path == "/data/chunks":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"8\r\n0123")
            self.close_connection = True
        elif path.startswith("/data"):
            self.answer(200, CONTENT)
        elif path == "/forbidden":
            self.answer(403, {"RemoteException": {"message": "Permission denied\n\tat java"}})
        elif path == "/odd":
            self.answer(200, {"FileStatuses": {"FileStatus": [{}]}})
        elif query["op"] == "OPEN" and path in {"/t/cut", "/t/chunks"}:
            self.answer(200, {"Location": f"http://{self.headers['Host']}{path.replace('/t', '/data')}"})
        elif query["op"] == "OPEN" and path == "/t/a":
            self.answer(200, {"Location": f"http://{self.headers['Host']}/data"})
        elif query["op"] == "LISTSTATUS" and (
            names := TREE.get(path, TREE["/loop"] * path.startswith("/loop"))
        ):
            self.answer(200, {"FileStatuses": {"FileStatus": [row(name) for name in names]}})
        else:
            self.answer(404, {"RemoteException": {"message": "File does not exist"}})

    protocol_version = "HTTP/1.1"

    def answer(self, status: int, body: object, cut: int = 0) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) - cut])
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def listed(path: str) -> list[str]:
    return TREE["/loop"] if path.startswith("/loop") else TREE.get(path, [])


def row(name: str) -> dict[str, Any]:
    folder = name in {"sub", "loop"}
    kind = "DIRECTORY" if folder else "FILE"
    return {
        "pathSuffix": name,
        "length": 0 if folder else 10,
        "modificationTime": 5,
        "type": kind,
        "fileId": 7,
    }


@pytest.fixture(scope="module")
def hdfs() -> Iterator[HdfsFiles]:
    with ThreadingHTTPServer(("127.0.0.1", 0), NameNode) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield HdfsFiles(f"http://127.0.0.1:{server.server_port}", "spark")
        server.shutdown()


def test_a_folder_is_listed_below_without_hidden_names(hdfs: HdfsFiles) -> None:
    entries = {entry.path: entry for entry in files.below(hdfs, "hdfs://lake/t")}
    assert entries == {
        "/t/a": Entry("/t/a", 10, 5, id=7), "/t/sub": Entry("/t/sub", 0, 5, folder=True, id=7),
        "/t/sub/b": Entry("/t/sub/b", 10, 5, id=7),
    }  # fmt: skip


def test_a_file_is_read_whole_or_in_part_up_to_a_limit(hdfs: HdfsFiles) -> None:
    assert hdfs.read("hdfs://lake/t/a") == CONTENT
    assert hdfs.part("/t/a", 0, 4) == CONTENT[:4]
    with pytest.raises(DamagedError, match="more than 9 bytes"):
        hdfs.read("/t/a", 9)


@pytest.mark.parametrize("name", ["cut", "chunks"])
def test_a_body_that_ends_early_is_damage(hdfs: HdfsFiles, name: str) -> None:
    with pytest.raises(DamagedError, match="cannot be read"):
        hdfs.read(f"/t/{name}")
    with pytest.raises(DamagedError, match="cannot be read"):
        hdfs.part(f"/t/{name}", 0, 10)


@pytest.mark.parametrize("path", ["/none", "hdfs://lake/t/./odd", "/a:b"])
def test_a_path_that_is_not_there_has_no_entries_and_no_content(hdfs: HdfsFiles, path: str) -> None:
    assert hdfs.entries(path) is None
    with pytest.raises(DamagedError, match="is not there"):
        hdfs.read(path)


@pytest.mark.parametrize(
    ("path", "reason"),
    [("/forbidden", "Permission denied$"), ("/odd", "no answer of WebHDFS"), ("s3://b/a", "is not in HDFS")],
)
def test_a_refused_path_is_damage_of_one_line(hdfs: HdfsFiles, path: str, reason: str) -> None:
    with pytest.raises(DamagedError, match=reason):
        hdfs.entries(path)


def test_folders_inside_of_themselves_end(hdfs: HdfsFiles) -> None:
    with pytest.raises(DamagedError, match="folders deeper than"):
        list(files.below(hdfs, "/loop"))


def test_a_namenode_that_does_not_answer_is_no_damage() -> None:
    assert files.free_bytes("http://127.0.0.1:1") is None
    with pytest.raises(UnavailableError):
        HdfsFiles("http://127.0.0.1:1", "spark").entries("/t")
    with pytest.raises(UnavailableError):
        HdfsFiles("http://127.0.0.1:1", "spark").read("/t")


def test_every_kind_of_finding_is_a_row_with_its_statement() -> None:
    queries: list[str] = []

    def query(statement: str) -> list[Mapping[str, Any]]:
        queries.append(statement)
        about = {"fact": "why", "files": 1, "size_bytes": 2}
        return [
            {"storage_plugin": catalog, "workspace": "x", "table_name": "a`'b", **about}
            for catalog in ("iceberg", "delta", "hive")
        ]

    rows = list(report.findings(query, "units", Limits(), 10**13))
    assert len(queries) == len(KINDS)
    assert len(rows) == 3 * len(KINDS)
    assert {row.code for row in rows} == {kind.code for kind in KINDS}
    assert all("{" not in row.spark_sql for row in rows)
    assert all("{" not in statement for statement in queries)
    # A unit of an earlier release, or of a user, ends no query.
    assert not [
        statement for statement in queries if re.search(r"(?<!try_)(CAST\(get_json|sum\()", statement)
    ]
    optimize = [row for row in rows if (row.code, row.storage_plugin) == ("small_files", "delta")]
    assert optimize[0].spark_sql == "OPTIMIZE x.`a``'b`"
    expire = [row for row in rows if (row.code, row.storage_plugin) == ("many_snapshots", "iceberg")]
    assert expire[0].spark_sql == r"CALL iceberg.system.expire_snapshots(table => 'x.`a``\'b`')"
    assert {row.spark_sql for row in rows if row.code == "idle"} == {"DESCRIBE TABLE EXTENDED x.`a``'b`"}
