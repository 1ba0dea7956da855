"""The metastore's own login to PostgreSQL, as `lakehouse doctor` tries it on the metastore's host."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plugins.module_utils.lakehouse import postgresql_login

# Of RFC 7677.
NONCE = "rOprNGfwEbeRWgbNEkqO"
FIRST = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
WORD = "not-for-anybodys-eyes"


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def error(state: str, words: str) -> bytes:
    return message(b"E", f"SFATAL\0C{state}\0M{words}\0\0".encode())


def asks(method: int, body: bytes = b"") -> bytes:
    return message(b"R", struct.pack("!I", method) + body)


Server = Callable[[list[bytes]], str]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Return a function that starts a PostgreSQL with these answers, and returns the metastore's file."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve(answers: list[bytes]) -> None:
            connection, _ = listener.accept()
            with connection:
                for answer in answers:
                    connection.recv(4096)
                    connection.sendall(answer)
                connection.recv(4096)

        def start(answers: list[bytes]) -> str:
            threading.Thread(target=serve, args=(answers,), daemon=True).start()
            secrets, site = tmp_path / "credentials.json", tmp_path / "hive-site.xml"
            secrets.write_text(f'{{"javax.jdo.option.ConnectionPassword": "{WORD}"}}', encoding="utf-8")
            port = listener.getsockname()[1]
            rows = {
                "javax.jdo.option.ConnectionURL": f"jdbc:postgresql://127.0.0.1:{port}/metastore?x=1",
                "javax.jdo.option.ConnectionUserName": "hive",
                "hadoop.security.credential.provider.path": f"json:{secrets}",
            }
            properties = "".join(
                f"<property><name>{name}</name><value>{value}</value></property>"
                for name, value in rows.items()
            )
            site.write_text(f"<configuration>{properties}</configuration>", encoding="utf-8")
            return str(site)

        yield start


OFFER = asks(10, b"SCRAM-SHA-256\0\0")
CHALLENGE = asks(11, FIRST.encode())


@pytest.mark.parametrize(
    ("answers", "code", "words"),
    [
        ([b"N", OFFER, CHALLENGE, asks(12, b"v=x") + asks(0) + message(b"S", b"a\0b\0")], 0, "ok"),
        ([b"N", OFFER, CHALLENGE, error("28P01", "password authentication failed")], 0, "28P01 password"),
        ([b"N", error("28000", "no pg_hba.conf entry")], 0, "28000 no pg_hba.conf entry"),
        (
            [b"N", OFFER, CHALLENGE, asks(12, b"v=x") + asks(0) + error("3D000", "database does not exist")],
            0,
            "3D000 database does not exist",
        ),
        ([b"N", error("53300", "sorry, too many clients already")], 0, "53300 sorry"),
        ([b"N", asks(5, b"salt")], 1, "PostgreSQL: PostgreSQL wants authentication 5"),
        ([b"N"], 1, "PostgreSQL: PostgreSQL has closed the connection"),
    ],
)
def test_what_postgresql_says_of_a_login(
    server: Server, answers: list[bytes], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert postgresql_login.main(server(answers)) == code
    said = capsys.readouterr().out
    assert said.startswith(words)
    assert said.count("\n") == 1
    assert WORD not in said


def test_the_proof_is_that_of_the_standard() -> None:
    said = postgresql_login.proof("pencil", NONCE, FIRST, user="user")
    assert said.endswith(",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")


def test_a_file_without_its_properties_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = tmp_path / "hive-site.xml"
    assert postgresql_login.main(str(site)) == 1
    site.write_text("<configuration/>", encoding="utf-8")
    assert postgresql_login.main(str(site)) == 1
    site.write_text("<configuration>", encoding="utf-8")
    assert postgresql_login.main(str(site)) == 1
    assert capsys.readouterr().out.count("\n") == 3
