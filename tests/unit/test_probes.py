"""Only a working service's answer is right; everything else is one line that says what came back."""

from __future__ import annotations

import json
import socket
import ssl
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from ansible.module_utils.lakehouse import probes
from pyspark.sql.connect import proto

from tests.unit import patience

PAGES = {
    "/jmx": (200, json.dumps({"beans": [{"State": "active", "Live": 3, "Nodes": [1, 2]}]}).encode()),
    "/text": (200, b"it works"),
    "/broken": (500, b"{}"),
}


class Pages(BaseHTTPRequestHandler):
    """Answers from PAGES."""

    def do_GET(self) -> None:
        status, body = PAGES.get(self.path, (404, b"{}"))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    """Address of a server with PAGES."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


# -- TLS --


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of 127.0.0.1 that signs itself, with its key beside it."""
    folder = tmp_path_factory.mktemp("tls")
    argv = [
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
        "-days", "2", "-subj", "/CN=web", "-addext", "subjectAltName=IP:127.0.0.1",
        "-keyout", str(folder / "key.pem"), "-out", str(folder / "certificate.pem"),
    ]  # fmt: skip
    subprocess.run(argv, check=True, capture_output=True)
    return folder / "certificate.pem"


@pytest.fixture(scope="module")
def secure_web(certificate: Path) -> Iterator[str]:
    """Address of a server with PAGES under TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"https://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_certificate_of_the_authority_is_trusted(secure_web: str, certificate: Path) -> None:
    probe = {"url": f"{secure_web}/jmx", "path": "beans.0.State", "equals": "active"}
    assert probes.http({**probe, "authority": certificate.read_text(encoding="utf-8")}) is None


def test_a_certificate_of_another_authority_is_not(secure_web: str) -> None:
    for authority in ({}, {"authority": ""}):
        said = probes.http({"url": f"{secure_web}/jmx", **authority})
        assert said is not None
        assert "certificate verify failed" in said


def test_a_certificate_of_another_host_is_not(secure_web: str, certificate: Path) -> None:
    url = secure_web.replace("127.0.0.1", "localhost")
    said = probes.http({"url": f"{url}/jmx", "authority": certificate.read_text(encoding="utf-8")})
    assert said is not None
    assert "localhost" in said


def test_what_is_no_certificate_is_named(secure_web: str) -> None:
    said = probes.http({"url": f"{secure_web}/jmx", "authority": "secret"})
    assert said is not None
    assert "lakehouse_tls_authority is no certificate in PEM" in said


@contextmanager
def service(talk: Callable[[socket.socket], None]) -> Iterator[dict[str, object]]:
    """A service that talks with one client; what a probe needs to reach it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                talk(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield {"host": "127.0.0.1", "port": listener.getsockname()[1]}
        thread.join(timeout=patience.SECONDS)


@pytest.fixture
def closed_port() -> int:
    """A port without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


class TestLookup:
    """A dotted path through JSON."""

    def test_names_indices_and_lengths(self) -> None:
        document = {"beans": [{"a": 1}, {"a": {"b": [1, 2, 3]}}]}
        assert probes.lookup(document, "beans.1.a.b.2") == 3
        assert probes.lookup(document, "beans.1.a.b.#") == 3
        assert probes.lookup(document, "beans.#") == 2

    def test_json_in_a_text_is_followed_too(self) -> None:
        document = {"beans": [{"info": '[{"state": "RUNNING"}]'}]}
        assert probes.lookup(document, "beans.0.info.0.state") == "RUNNING"

    @pytest.mark.parametrize("path", ["none", "beans.5", "beans.x"])
    def test_a_path_that_leads_nowhere_is_an_error(self, path: str) -> None:
        with pytest.raises((LookupError, ValueError)):
            probes.lookup({"beans": []}, path)


class TestHttp:
    """A page, and a value in it."""

    @pytest.mark.parametrize(
        "desired",
        [
            {},
            {"path": "beans.0.State", "equals": "active"},
            {"path": "beans.0.Live", "at_least": 3},
            {"path": "beans.0.Nodes.#", "equals": 2},
        ],
    )
    def test_the_right_answer(self, web: str, desired: dict[str, object]) -> None:
        assert probes.ask({"kind": "http", "url": f"{web}/jmx", **desired}) is None

    @pytest.mark.parametrize(
        ("page", "desired", "answer"),
        [
            (
                "jmx",
                {"path": "beans.0.State", "equals": "standby"},
                "beans.0.State is 'active' (expected 'standby')",
            ),
            ("jmx", {"path": "beans.0.Live", "at_least": 4}, "beans.0.Live is 3 (expected at least 4)"),
            ("jmx", {"path": "beans.1.State"}, 'no beans.1.State in the answer b\'{"beans"'),
            ("text", {"path": "beans"}, "no beans in the answer b'it works'"),
            ("broken", {}, "HTTP Error 500"),
            ("none", {}, "HTTP Error 404"),
        ],
    )
    def test_a_wrong_answer_is_quoted(
        self, web: str, page: str, desired: dict[str, object], answer: str
    ) -> None:
        said = probes.http({"url": f"{web}/{page}", **desired})
        assert said
        assert said.startswith(f"{web}/{page}: {answer}")

    def test_nobody_answers(self, closed_port: int) -> None:
        assert "refused" in str(probes.http({"url": f"http://127.0.0.1:{closed_port}/"}))


class TestThrift:
    """A call of the metastore without arguments."""

    @staticmethod
    def reply(kind: int, field_type: int, field_id: int) -> Callable[[socket.socket], None]:
        """A service that reads one call and gives this answer."""

        def talk(connection: socket.socket) -> None:
            version, length = struct.unpack(">Ii", connection.recv(8))
            name = connection.recv(length)
            sequence, stop = struct.unpack(">ib", connection.recv(5))
            assert (version, name, stop) == (0x80010001, b"get_all_databases", 0)
            header = struct.pack(f">Ii{length}si", 0x80010000 | kind, length, name, sequence)
            connection.sendall(header + struct.pack(">bh", field_type, field_id))

        return talk

    def ask(self, where: dict[str, object]) -> object:
        return probes.ask({"kind": "thrift", "call": "get_all_databases", **where})

    def test_a_reply_with_a_result(self) -> None:
        with service(self.reply(2, 15, 0)) as where:
            assert self.ask(where) is None

    @pytest.mark.parametrize(("kind", "field_type", "field_id"), [(3, 11, 1), (2, 12, 1), (2, 0, 0)])
    def test_an_exception_is_not_an_answer(self, kind: int, field_type: int, field_id: int) -> None:
        with service(self.reply(kind, field_type, field_id)) as where:
            said = self.ask(where)
        assert said == f"thrift://127.0.0.1:{where['port']}: get_all_databases returned an exception"

    def test_a_connection_that_is_closed(self) -> None:
        with service(socket.socket.close) as where:
            assert str(self.ask(where)).startswith(f"thrift://127.0.0.1:{where['port']}: ")

    def test_nobody_listens(self, closed_port: int) -> None:
        assert "refused" in str(self.ask({"host": "127.0.0.1", "port": closed_port}))


class TestSparkConnect:
    """A call of gRPC and its answer, frame by frame."""

    SETTINGS = b"\x00\x00\x06\x04\x00\x00\x00\x00\x00" + bytes(6)
    PING = b"\x00\x00\x08\x06\x00\x00\x00\x00\x00" + bytes(8)
    HEADERS = probes.http2_frame(probes.HTTP2_HEADERS, probes.HTTP2_END_HEADERS, b"\x88")
    TRAILERS = probes.http2_frame(
        probes.HTTP2_HEADERS, probes.HTTP2_END_HEADERS | probes.HTTP2_END_STREAM, b"\x88"
    )
    DATA = probes.http2_frame(probes.HTTP2_DATA, 0, b"\x00\x00\x00\x00\x05" + b"4.1.4")

    @staticmethod
    def answer(frames: bytes) -> Callable[[socket.socket], None]:
        """A service that reads the request and answers."""

        def talk(connection: socket.socket) -> None:
            asked = connection.recv(4096)
            assert asked.startswith(b"PRI * HTTP/2.0\r\n")
            assert b"AnalyzePlan" in asked
            connection.sendall(frames)

        return talk

    def test_its_version(self) -> None:
        with service(self.answer(self.SETTINGS + self.PING + self.HEADERS + self.DATA)) as where:
            assert probes.ask({"kind": "spark_connect", **where}) is None

    @pytest.mark.parametrize("frames", [TRAILERS, HEADERS + TRAILERS, probes.http2_frame(3, 0, bytes(4))])
    def test_an_error_is_no_answer(self, frames: bytes) -> None:
        with service(self.answer(self.SETTINGS + frames)) as where:
            said = probes.spark_connect(where)
        assert said == f"127.0.0.1:{where['port']}: no answer from Spark Connect"

    def test_another_protocol_is_quoted(self) -> None:
        with service(self.answer(b"HTTP/1.1 400 Bad Request\r\n")) as where:
            assert probes.spark_connect(where) == f"127.0.0.1:{where['port']}: not HTTP/2: b'HTTP/1.1 '"

    def test_nobody_listens(self, closed_port: int) -> None:
        assert "refused" in str(probes.spark_connect({"host": "127.0.0.1", "port": closed_port}))

    def test_the_question_is_spark_s_own(self) -> None:
        request = proto.AnalyzePlanRequest.FromString(probes.SPARK_CONNECT_VERSION)
        assert request.WhichOneof("analyze") == "spark_version"
        assert (len(request.session_id), request.user_context.user_id) == (36, "readiness")


class TestCommand:
    """A program's exit code and output."""

    def test_what_it_prints(self) -> None:
        argv = [sys.executable, "-c", "print('alive')"]
        assert probes.ask({"kind": "command", "argv": argv, "prints": "alive"}) is None
        assert "exit 0: alive" in str(probes.command({"argv": argv, "prints": "dead"}))

    def test_a_failure_shows_the_end_of_its_output(self) -> None:
        argv = [sys.executable, "-c", "import sys; sys.exit('x' * 500 + 'the reason')"]
        said = probes.command({"argv": argv})
        assert said
        assert "exit 1: x" in said
        assert said.endswith("the reason")

    def test_a_program_that_is_not_there(self) -> None:
        assert str(probes.command({"argv": ["/no/such/program"]})).startswith("/no/such/program: ")

    def test_a_program_that_hangs(self) -> None:
        argv = [sys.executable, "-c", "input(); import time; time.sleep(60)"]
        # Its input is empty: what asks a question fails instead of waiting.
        assert "EOFError" in str(probes.command({"argv": argv}))
        argv = ["/bin/sh", "-c", "exec sleep 60"]
        assert "timed out" in str(probes.command({"argv": argv, "timeout": 0.1}))
