"""Log in to the metastore's database as the metastore does: by its hive-site.xml and its file of credentials.

It prints ``ok``, or PostgreSQL's SQLSTATE and message. The password is in no argument, and is not printed.
Standard library only, and Python 3.9: `lakehouse doctor` runs the text of this file on the metastore's host.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import re
import socket
import ssl
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

SECONDS = 3
_URL = re.compile(r"jdbc:postgresql://([^:/]+):(\d+)/([^?]+)")
_PROTOCOL, _TLS = 196608, 80877103
_OK, _SASL, _CONTINUE, _FINAL = 0, 10, 11, 12
_MECHANISM = b"SCRAM-SHA-256"


class RefusedError(Exception):
    """PostgreSQL has refused the session: its SQLSTATE, and its message."""


def properties(path: str) -> dict[str, str]:
    """Return the properties of a file of Hadoop's by name."""
    root = ET.parse(path).getroot()  # noqa: S314 -- the kit's own file
    return {
        row.findtext("name", "").strip(): row.findtext("value", "").strip() for row in root.iter("property")
    }


def password(settings: Mapping[str, str]) -> str:
    """Return the database's password from the file of credentials that these properties name."""
    path = settings["hadoop.security.credential.provider.path"].partition(":")[2]
    return str(json.loads(Path(path).read_text(encoding="utf-8"))["javax.jdo.option.ConnectionPassword"])


def address(url: str) -> tuple[str, int, str]:
    """Return host, port and database of a JDBC URL of PostgreSQL; ValueError for any other."""
    match = _URL.match(url)
    if not match:
        raise ValueError(f"no address of PostgreSQL: {url}")
    return match[1], int(match[2]), match[3]


def _receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        if not chunk:
            raise OSError("PostgreSQL has closed the connection")
        data += chunk
    return data


def _message(connection: socket.socket) -> bytes:
    """Return the body of the next message of authentication; RefusedError where it is an error."""
    kind = _receive(connection, 1)
    body = _receive(connection, struct.unpack("!I", _receive(connection, 4))[0] - 4)
    if kind == b"E":
        fields = {field[:1]: field[1:].decode(errors="replace") for field in body.split(b"\0") if field}
        raise RefusedError(f"{fields.get(b'C', '')} {fields.get(b'M', '')}")
    return body


def _send(connection: socket.socket, kind: bytes, body: bytes) -> None:
    connection.sendall(kind + struct.pack("!I", len(body) + 4) + body)


def _authentication(connection: socket.socket, expected: int) -> bytes:
    body = _message(connection)
    method = struct.unpack("!I", body[:4])[0]
    if method != expected:
        raise OSError(f"PostgreSQL wants authentication {method} in place of {expected}")
    return body[4:]


def proof(secret: str, nonce: str, first: str, user: str = "") -> str:
    """Return the last message of SCRAM-SHA-256 (RFC 7677) for what the server has answered to ``nonce``.

    PostgreSQL takes the user of the session: none is named here.
    """
    server = dict(part.split("=", 1) for part in first.split(","))
    salted = hashlib.pbkdf2_hmac("sha256", secret.encode(), base64.b64decode(server["s"]), int(server["i"]))
    key = hmac.digest(salted, b"Client Key", "sha256")
    last = f"c=biws,r={server['r']}"
    text = f"n={user},r={nonce},{first},{last}"
    signature = hmac.digest(hashlib.sha256(key).digest(), text.encode(), "sha256")
    signed = int.from_bytes(key, "big") ^ int.from_bytes(signature, "big")
    return f"{last},p={base64.b64encode(signed.to_bytes(len(key), 'big')).decode()}"


def unverified() -> ssl.SSLContext:
    """Return the TLS settings of a client that verifies no certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def encrypted(connection: socket.socket) -> socket.socket:
    """Return the connection with TLS where PostgreSQL has it. As in Java's driver, names are not verified."""
    _send(connection, b"", struct.pack("!I", _TLS))
    if _receive(connection, 1) != b"S":
        return connection
    return unverified().wrap_socket(connection)


def log_in(host: str, port: int, database: str, user: str, secret: str) -> None:
    """Open a session and end it.

    Raises RefusedError where PostgreSQL refuses it, and OSError where it does not answer.
    """
    with encrypted(socket.create_connection((host, port), timeout=SECONDS)) as connection:
        words = b"".join(word.encode() + b"\0" for word in ("user", user, "database", database))
        _send(connection, b"", struct.pack("!I", _PROTOCOL) + words + b"\0")
        offered = _authentication(connection, _SASL).split(b"\0")
        if _MECHANISM not in offered:
            raise OSError("PostgreSQL does not offer SCRAM-SHA-256")
        nonce = base64.b64encode(os.urandom(18)).decode()
        initial = f"n,,n=,r={nonce}".encode()
        _send(connection, b"p", _MECHANISM + b"\0" + struct.pack("!I", len(initial)) + initial)
        first = _authentication(connection, _CONTINUE).decode()
        _send(connection, b"p", proof(secret, nonce, first).encode())
        _authentication(connection, _FINAL)
        _authentication(connection, _OK)
        # A session is refused after its password too: for its database, or for want of a connection.
        _message(connection)
        _send(connection, b"X", b"")


def main(path: str) -> int:
    """Print how the login went; return 1 where PostgreSQL does not answer."""
    try:
        settings = properties(path)
        user = settings["javax.jdo.option.ConnectionUserName"]
        log_in(*address(settings["javax.jdo.option.ConnectionURL"]), user, password(settings))
    except RefusedError as error:
        sys.stdout.write(f"{error}\n")
    except KeyError as error:
        sys.stdout.write(f"{path}: no value of {error}\n")
        return 1
    except (OSError, ValueError, ET.ParseError) as error:
        sys.stdout.write(f"PostgreSQL: {error}\n")
        return 1
    else:
        sys.stdout.write("ok\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
