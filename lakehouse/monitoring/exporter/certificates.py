"""The end of a server's certificate, read without a check of who has signed it."""

from __future__ import annotations

import socket
import ssl
from datetime import UTC, datetime

from plugins.module_utils.lakehouse import postgresql_login

TIMEOUT_SECONDS = 5.0
_UTC_TIME, _GENERALIZED_TIME = 0x17, 0x18
_LONG_FORM = 0x80
# In the body of a certificate, validity follows the version, the number, the algorithm and the issuer.
_VERSION, _BEFORE_VALIDITY = 0xA0, 3


def expires(protocol: str, host: str, port: int) -> float:
    """Return when the certificate of a listener ends, in seconds since 1970; OSError without an answer.

    PostgreSQL begins TLS after a request in the clear; all others at once.
    """
    with socket.create_connection((host, port), timeout=TIMEOUT_SECONDS) as connection:
        start = (
            postgresql_login.encrypted
            if protocol == "postgresql"
            else postgresql_login.unverified().wrap_socket
        )
        with start(connection) as secured:
            if not isinstance(secured, ssl.SSLSocket):
                raise OSError(f"{host}:{port}: no TLS")
            certificate = secured.getpeercert(binary_form=True)
    try:
        return not_after(certificate or b"")
    except (ValueError, IndexError) as error:
        raise OSError(f"{host}:{port}: a certificate that cannot be read: {error}") from error


def not_after(certificate: bytes) -> float:
    """Return the end of a certificate in DER (RFC 5280, section 4.1), in seconds since 1970.

    Raises ValueError or IndexError for other bytes.
    """
    body = _elements(_elements(certificate)[0][1])[0][1]
    fields = [field for field in _elements(body) if field[0] != _VERSION]
    _, (kind, value) = _elements(fields[_BEFORE_VALIDITY][1])
    text = value.decode("ascii")
    if kind == _UTC_TIME:
        # RFC 5280: 50 to 99 are of the century before.
        text = ("19" if int(text[:2]) >= 50 else "20") + text  # noqa: PLR2004
    elif kind != _GENERALIZED_TIME:
        raise ValueError(f"a time of type {kind}")
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


def _elements(data: bytes) -> list[tuple[int, bytes]]:
    """Return type and content of the elements of DER, one after the other."""
    elements = []
    while data:
        kind, length, start = data[0], data[1], 2
        if length & _LONG_FORM:
            start += length & ~_LONG_FORM
            length = int.from_bytes(data[2:start], "big")
        if len(data) < start + length:
            raise ValueError("bytes are missing")
        elements.append((kind, data[start : start + length]))
        data = data[start + length :]
    return elements
