"""Encrypted connections: only to a metastore that can prove its name, and within the same deadlines."""

from __future__ import annotations

import ssl
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from lakehouse.metastore import DeadlineError, Metastore, Options, UnavailableError
from lakehouse.metastore.health import Step, check
from lakehouse.metastore.options import endpoints
from tests.unit import patience
from tests.unit.metastore_fake import Fake


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate of 127.0.0.1, which signs itself, with its key in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "metastore")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "metastore.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


@pytest.fixture
def served(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def encrypted(context: ssl.SSLContext) -> Fake:
    fake = Fake()
    fake.tls = context
    return fake


def trusting(certificate: Path | None = None) -> Options:
    return Options(rounds=1, tls=ssl.create_default_context(cafile=certificate))


def test_calls_are_encrypted_and_share_a_connection(certificate: Path, served: ssl.SSLContext) -> None:
    with encrypted(served) as fake, Metastore(fake.uri, trusting(certificate)) as metastore:
        for _ in range(5):
            assert metastore.table("d", "t").tableName == "t"
        assert fake.connections == 1


def test_a_metastore_that_nobody_vouches_for_is_refused(served: ssl.SSLContext) -> None:
    with encrypted(served) as fake, Metastore(fake.uri, trusting()) as metastore:
        with pytest.raises(UnavailableError, match="CERTIFICATE_VERIFY_FAILED"):
            metastore.table("d", "t")
        assert not fake.seen


def test_so_is_one_by_another_name(certificate: Path, served: ssl.SSLContext) -> None:
    refused = pytest.raises(UnavailableError, match="Hostname mismatch")
    with encrypted(served) as fake:
        other = fake.uri.replace("127.0.0.1", "localhost")
        with Metastore(other, trusting(certificate)) as metastore, refused:
            metastore.table("d", "t")
        assert not fake.seen


def test_one_that_does_not_encrypt_is_no_reason_to_wait(certificate: Path) -> None:
    # By itself it ends nothing: the deadline of the call has to.
    limit = patience.LONGER
    options = replace(trusting(certificate), total=limit, connect=limit, read=limit)
    with (
        patience.kept(),
        Fake(silent=True) as fake,
        Metastore(fake.uri, options) as client,
        pytest.raises(DeadlineError),
    ):
        client.call("get_table", "d", "t", seconds=0.5)


def test_health_is_asked_for_in_the_same_way(certificate: Path, served: ssl.SSLContext) -> None:
    with encrypted(served) as fake:
        asked = endpoints(fake.uri)
        assert [one.failed for one in check(asked, trusting(certificate))] == [None]
        assert [one.failed for one in check(asked, trusting())] == [Step.THRIFT]
