"""The few calls of WebHDFS, against a NameNode that is one Python thread."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from ansible.module_utils.lakehouse import hdfs_upload
from ansible.module_utils.lakehouse.hdfs_path import ensure
from ansible.module_utils.lakehouse.webhdfs import WebHdfs, WebHdfsError, path_of

ROOT = "/webhdfs/v1"


class NameNode(BaseHTTPRequestHandler):
    """Keeps paths in memory; a path below /forbidden is refused, /odd answers without JSON."""

    paths: ClassVar[dict[str, dict[str, Any]]] = {}
    written: ClassVar[dict[str, bytes]] = {}
    users: ClassVar[set[str]] = set()
    acl: ClassVar[set[str]] = set()
    attributes: ClassVar[dict[str, dict[str, str]]] = {}

    def answer(self, status: int, document: object = None) -> None:
        body = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status: int, message: str) -> None:
        self.answer(status, {"RemoteException": {"exception": "E", "message": message}})

    def question(self) -> tuple[str, str, dict[str, str]]:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.users.add(query.pop("user.name", ""))
        return unquote(parts.path).removeprefix(ROOT), query.pop("op", ""), query

    def do_GET(self) -> None:
        path, operation, _ = self.question()
        if operation == "GETACLSTATUS":
            self.answer(200, {"AclStatus": {"entries": ["group::rwx", *self.acl]}})
            return
        if operation == "GETXATTRS":
            entries = [{"name": name, "value": value} for name, value in self.attributes[path].items()]
            self.answer(200, {"XAttrs": entries})
            return
        assert operation == "GETFILESTATUS"
        if path == "/odd":
            self.answer(500, "<html>")
        elif path.startswith("/forbidden"):
            self.refuse(403, f"Permission denied: {path}\n\tat java.lang.Thread.run")
        elif path in self.paths:
            self.answer(200, {"FileStatus": self.paths[path]})
        else:
            self.refuse(404, f"File does not exist: {path}")

    def do_PUT(self) -> None:
        path, operation, query = self.question()
        if operation == "MKDIRS":
            self.paths[path] = {"type": "DIRECTORY", "owner": "x", "group": "x", "permission": "755"}
            self.answer(200, {"boolean": True})
        elif operation == "SETOWNER":
            self.paths[path] |= {"owner": query["owner"], "group": query["group"]}
            self.answer(200)
        elif operation == "SETPERMISSION":
            self.paths[path] |= {"permission": query["permission"]}
            self.answer(200)
        elif operation == "MODIFYACLENTRIES":
            self.acl.update(query["aclspec"].split(","))
            self.answer(200)
        elif operation == "REMOVEACLENTRIES":
            self.acl.difference_update(f"{entry}:r-x" for entry in query["aclspec"].split(","))
            self.answer(200)
        elif operation == "SETXATTR":
            self.attributes[path][query["xattr.name"]] = query["xattr.value"]
            self.answer(200)
        elif operation == "CREATE":
            assert query == {"overwrite": "true", "noredirect": "true"}
            self.answer(200, {"Location": f"http://{self.headers['Host']}/data{path}"})
        elif path.startswith("/data/forbidden"):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.refuse(403, "Permission denied")
        else:
            path, content = path.removeprefix("/data"), self.rfile.read(int(self.headers["Content-Length"]))
            self.written[path] = content
            self.paths[path] = {"type": "FILE", "length": len(content)}
            self.attributes[path] = {}
            self.answer(201)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where the NameNode listens."""
    with ThreadingHTTPServer(("127.0.0.1", 0), NameNode) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def hdfs(address: str) -> WebHdfs:
    """A client of a NameNode that has no paths yet."""
    for state in (NameNode.paths, NameNode.written, NameNode.users, NameNode.acl, NameNode.attributes):
        state.clear()
    return WebHdfs(address, "superuser")


def test_a_path_that_is_not_there_has_no_status(hdfs: WebHdfs) -> None:
    assert hdfs.status("/none") is None
    assert NameNode.users == {"superuser"}


@pytest.mark.parametrize("path", ["/with blank", "/a&op=DELETE", "/a?b", "/größe", "/100%"])
def test_any_name_is_one_path(hdfs: WebHdfs, path: str) -> None:
    hdfs.call("PUT", "MKDIRS", path)
    assert set(NameNode.paths) == {path}
    status = hdfs.status(path)
    assert status
    assert status["type"] == "DIRECTORY"


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("/lakehouse/d/a%3Ab", "/lakehouse/d/a%3Ab"),
        ("hdfs://lake/lakehouse/d/a%3Ab/", "/lakehouse/d/a%3Ab"),
        ("hdfs://lake/lakehouse/d/a?b#c", "/lakehouse/d/a?b#c"),
        ("hdfs:/lakehouse/d", "/lakehouse/d"),
        ("//lake/lakehouse/d", "/lakehouse/d"),
        ("hdfs://lake//lakehouse///d//", "/lakehouse/d"),
        ("/lakehouse/ts=2026-01-01 10:00", "/lakehouse/ts=2026-01-01 10:00"),
        ("/lakehouse/a\nb", "/lakehouse/a\nb"),
        ("hdfs://lake", "/"),
        ("s3a://bucket/lakehouse/d", None),
        ("file:/lakehouse/d", None),
    ],
)
def test_a_uri_is_a_path_in_one_spelling(uri: str, path: str | None) -> None:
    assert path_of(uri) == path


def test_an_answer_without_a_body_is_empty(hdfs: WebHdfs) -> None:
    hdfs.call("PUT", "MKDIRS", "/a")
    assert hdfs.call("PUT", "SETOWNER", "/a", owner="o", group="g") == {}


def test_a_refusal_is_the_first_line_of_the_server_s_words(hdfs: WebHdfs) -> None:
    with pytest.raises(WebHdfsError, match=r"^GETFILESTATUS /forbidden: Permission denied: /forbidden$"):
        hdfs.status("/forbidden")


def test_an_answer_that_nobody_expects_is_quoted(hdfs: WebHdfs) -> None:
    with pytest.raises(WebHdfsError, match=r"^GETFILESTATUS /odd: HTTP 500: \"<html>\"$"):
        hdfs.status("/odd")


def test_a_namenode_that_does_not_answer_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(WebHdfsError, match=rf"^GETFILESTATUS /a: http://127.0.0.1:{port}: .*refused"):
        WebHdfs(f"http://127.0.0.1:{port}", "u").status("/a")


@pytest.mark.parametrize("content", [b"", b"\x00\xff" * 70000])
def test_a_file_arrives_whole(hdfs: WebHdfs, tmp_path: Path, content: bytes) -> None:
    source = tmp_path / "flights.csv"
    source.write_bytes(content)
    hdfs.upload(str(source), "/landing/flights.csv")
    assert NameNode.written == {"/landing/flights.csv": content}


def test_a_datanode_that_refuses_is_an_error(hdfs: WebHdfs, tmp_path: Path) -> None:
    source = tmp_path / "a"
    source.write_bytes(b"a")
    with pytest.raises(WebHdfsError, match=r"^CREATE /forbidden/a: Permission denied$"):
        hdfs.upload(str(source), "/forbidden/a")


@pytest.mark.usefixtures("hdfs")
def test_a_folder_is_uploaded_once_and_again_what_has_other_bytes(address: str, tmp_path: Path) -> None:
    def upload() -> Any:
        return hdfs_upload.apply(
            {"url": address, "user": "u", "source": str(tmp_path), "destination": "/landing"}
        )

    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_bytes(b"old")
    assert [upload(), upload()] == [["/landing/a.csv", "/landing/b.csv"], []]
    (tmp_path / "b.csv").write_bytes(b"new")
    assert [upload(), upload()] == [["/landing/b.csv"], []]
    assert NameNode.written == {"/landing/a.csv": b"old", "/landing/b.csv": b"new"}


def test_an_upload_that_was_interrupted_before_its_digest_is_repeated(
    hdfs: WebHdfs, address: str, tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(b"a")
    hdfs.upload(str(tmp_path / "a"), "/landing/a")
    parameters = {"url": address, "user": "u", "source": str(tmp_path), "destination": "/landing"}
    assert hdfs_upload.apply(parameters, check=True) == ["/landing/a"]
    assert hdfs_upload.apply(parameters) == ["/landing/a"]


class TestEnsure:
    """A directory with owner, group and mode."""

    SPEC: ClassVar[dict[str, Any]] = {
        "path": "/lake",
        "owner": "hive",
        "group": "lakehouse",
        "mode": "0770",
    }

    def test_it_is_made_once(self, hdfs: WebHdfs) -> None:
        assert [ensure(hdfs, self.SPEC, check=False), ensure(hdfs, self.SPEC, check=False)] == [
            True,
            False,
        ]
        made = {"type": "DIRECTORY", "owner": "hive", "group": "lakehouse", "permission": "770"}
        assert NameNode.paths == {"/lake": made}

    @pytest.mark.parametrize("wrong", [{"owner": "x"}, {"group": "x"}, {"permission": "1777"}])
    def test_what_differs_is_mended(self, hdfs: WebHdfs, wrong: dict[str, str]) -> None:
        ensure(hdfs, self.SPEC, check=False)
        NameNode.paths["/lake"] |= wrong
        assert ensure(hdfs, self.SPEC, check=False)
        assert not ensure(hdfs, self.SPEC, check=False)

    def test_check_mode_only_looks(self, hdfs: WebHdfs) -> None:
        assert ensure(hdfs, self.SPEC, check=True)
        assert not NameNode.paths

    def test_readers_come_and_go(self, hdfs: WebHdfs) -> None:
        for readers in (["ada", "eve"], ["eve"], []):
            desired = self.SPEC | {"readers": readers}
            assert [ensure(hdfs, desired, check=False), ensure(hdfs, desired, check=False)] == [True, False]
            assert NameNode.acl == {f"user:{name}:r-x" for name in readers}

    def test_a_file_in_the_way_is_left_alone(self, hdfs: WebHdfs) -> None:
        NameNode.paths["/lake"] = {"type": "FILE", "owner": "x", "group": "x", "permission": "644"}
        with pytest.raises(WebHdfsError, match="is a file where a directory is needed"):
            ensure(hdfs, self.SPEC, check=False)
