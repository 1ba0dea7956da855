"""What services answer, and when their certificates end, as metrics."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from lakehouse.monitoring.exporter import certificates
from lakehouse.monitoring.exporter.__main__ import serve
from lakehouse.monitoring.exporter.answers import LIMIT_SECONDS, Target, exposition
from plugins.module_utils.lakehouse.probes import fetch

LOCAL = "127.0.0.1"
SUCCESS, SECONDS, END = (
    "lakehouse_probe_success",
    "lakehouse_probe_seconds",
    "lakehouse_certificate_end_seconds",
)


def certificate(end: datetime) -> tuple[bytes, bytes]:
    """Return a certificate that ends then, and its key, in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "database")])
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(end - timedelta(days=1))
        .not_valid_after(end)
        .sign(key, hashes.SHA256())
    )
    return signed.public_bytes(serialization.Encoding.PEM), key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


@contextmanager
def tls_server(folder: Path, end: datetime, *, postgresql: bool) -> Iterator[int]:
    """Serve one connection with a certificate; yield the port."""
    public, key = certificate(end)
    (folder / "server.pem").write_bytes(public + key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    with socket.create_server((LOCAL, 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                if postgresql:
                    assert connection.recv(8)[4:] == b"\x04\xd2\x16\x2f"
                    connection.sendall(b"S")
                with context.wrap_socket(connection, server_side=True) as encrypted:
                    encrypted.recv(1)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            thread.join()


@pytest.mark.parametrize("year", [2027, 2049, 2050, 2120])
@pytest.mark.parametrize("protocol", ["postgresql", "http"])
def test_the_end_of_a_certificate_is_read(tmp_path: Path, year: int, protocol: str) -> None:
    end = datetime(year, 2, 3, 4, 5, 6, tzinfo=UTC)
    with tls_server(tmp_path, end, postgresql=protocol == "postgresql") as port:
        assert certificates.expires(protocol, LOCAL, port) == end.timestamp()


@given(st.binary(max_size=64))
def test_other_bytes_are_no_certificate(data: bytes) -> None:
    with pytest.raises((ValueError, IndexError)):
        certificates.not_after(data)


@given(st.data())
def test_a_damaged_certificate_is_an_error_and_no_crash(data: st.DataObject) -> None:
    # Its length differs by some bytes with each key.
    der = ssl.PEM_cert_to_DER_cert(certificate(datetime(2030, 1, 1, tzinfo=UTC))[0].decode())
    place = data.draw(st.integers(0, 255))
    damaged = der[:place] + bytes([data.draw(st.integers(0, 255))]) + der[place + 1 :]
    with suppress(ValueError, IndexError):
        certificates.not_after(damaged)


def test_a_server_without_tls_is_named() -> None:
    with socket.create_server((LOCAL, 0)) as listener:
        port = listener.getsockname()[1]
        thread = threading.Thread(target=lambda: listener.accept()[0].sendall(b"N"))
        thread.start()
        with pytest.raises(OSError, match=f"{LOCAL}:{port}: no TLS"):
            certificates.expires("postgresql", LOCAL, port)
        thread.join()


@contextmanager
def web_server(body: bytes) -> Iterator[str]:
    """Answer every request with these bytes; yield the URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer((LOCAL, 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://{LOCAL}:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def row(url: str, **fields: Any) -> dict[str, Any]:
    """Return a target of the settings: a service that has to answer with `{"state": "well"}`."""
    probe = {"kind": "http", "url": url, "path": "state", "equals": "well"}
    return {"job": "engine", "host": "a", "probes": [probe], **fields}


def samples(text: str) -> dict[str, float]:
    """Return the values by name, of targets with the labels of `row`."""
    all_samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    assert all(sample.labels == {"job": "engine", "host": "a"} for sample in all_samples)
    return {sample.name: sample.value for sample in all_samples}


@pytest.mark.parametrize(
    ("body", "success"), [(b'{"state": "well"}', 1.0), (b'{"state": "ill"}', 0.0), (b"[" * 100_000, 0.0)]
)
def test_a_service_is_ready_when_its_answer_is_right(body: bytes, success: float) -> None:
    with web_server(body) as url:
        target = Target.of(row(url))
        target.ask()
    values = samples(exposition([target], 0.0))
    assert values[SUCCESS] == success
    assert set(values) == {SUCCESS, SECONDS}


def test_a_question_that_cannot_be_asked_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    target = Target.of(row("") | {"probes": [{"kind": "unknown"}]})
    target.ask()
    assert samples(exposition([target], 0.0))[SUCCESS] == 0.0
    assert "engine on a: {'kind': 'unknown'}" in capsys.readouterr().err


def test_what_changes_is_logged_once(capsys: pytest.CaptureFixture[str]) -> None:
    with web_server(b'{"state": "well"}') as url:
        target = Target.of(row(url))
        target.ask()
    target.ask()
    target.ask()
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"engine on a: {url}")


def test_a_service_that_gives_no_answer_for_long_is_not_ready() -> None:
    with web_server(b'{"state": "well"}') as url:
        target = Target.of(row(url))
        target.ask()
    assert target.begin(100.0)
    assert not target.begin(101.0)
    assert target.gauges(100.0 + LIMIT_SECONDS)[SUCCESS] == 1.0
    late = target.gauges(101.0 + LIMIT_SECONDS)
    assert (late[SUCCESS], late[SECONDS]) == (0.0, 1.0 + LIMIT_SECONDS)


def test_a_database_without_questions_has_the_end_of_its_certificate(tmp_path: Path) -> None:
    end = datetime(2030, 1, 1, tzinfo=UTC)
    with tls_server(tmp_path, end, postgresql=True) as port:
        place = {"protocol": "postgresql", "host": LOCAL, "port": port}
        target = Target.of({"job": "engine", "host": "a", "probes": [], "certificate": place})
        target.ask()
    assert samples(exposition([target], 0.0)) == {END: end.timestamp()}
    target.ask()
    assert samples(exposition([target], 0.0)) == {}


def test_the_exporter_serves_the_answers() -> None:
    with web_server(b'{"state": "well"}') as url:
        settings = {"address": LOCAL, "port": 0, "seconds": 0.01, "targets": [row(url)]}
        with serve(settings) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                page = f"http://{LOCAL}:{server.server_port}/metrics"
                while SUCCESS not in (values := samples(fetch(page).decode())):
                    pass
                assert values[SUCCESS] == 1.0
            finally:
                server.shutdown()
                thread.join()
