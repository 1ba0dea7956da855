"""Questions that only a working service answers.

Each probe returns None when the answer is right and otherwise one line that says what came back.
Standard library only: these run on the nodes. What only one kind needs is imported where it is asked, for
this is also a health check that runs every few seconds.
"""

from __future__ import annotations

import json
import operator
import socket
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from http.client import HTTPConnection

TIMEOUT_SECONDS = 5.0
# The variable with the certificates, in PEM, that sign those of listeners with TLS.
AUTHORITY = "lakehouse_tls_authority"
# Of an answer: what a service says of itself is shorter.
MOST_BYTES = 64 << 20
HTTP_SUCCESS = 2
# Thrift's strict binary protocol: version word with the message type in the low byte.
THRIFT_VERSION_1 = 0x80010000
THRIFT_CALL, THRIFT_REPLY = 1, 2
THRIFT_STRING = 11
# What every HTTP/2 client sends first (RFC 9113, section 3.4), the SETTINGS frame without a setting included.
HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
HTTP2_DATA, HTTP2_HEADERS, HTTP2_SETTINGS = 0, 1, 4
HTTP2_END_STREAM, HTTP2_END_HEADERS = 1, 4
GRPC_PREFIX = 5
# AnalyzePlanRequest of spark/connect/base.proto: 1 session_id, 2 user_context (1 user_id), 10 spark_version.
# The session is always the same, so that the server keeps one.
SPARK_CONNECT_CALL = "/spark.connect.SparkConnectService/AnalyzePlan"
SPARK_CONNECT_VERSION = b"\n$00000000-0000-4000-8000-000000000000\x12\x0b\n\treadiness" + b"R\x00"
ACTIVE_NODES = "select count(*) from system.runtime.nodes where state = 'active'"
# Of a value in an answer: whether it holds, and how what is expected is said.
CONDITIONS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "equals": (operator.eq, ""),
    "among": (lambda value, allowed: value in allowed, "one of "),
    "at_least": (operator.ge, "at least "),
}
TPCH_SCAN = "select 1 from tpch.tiny.region"


def lookup(document: Any, path: str) -> Any:
    """Follow a dotted path (``beans.0.Safemode``) through parsed JSON; ``#`` counts a list or an object.

    Some of Hadoop's values are JSON in a text.
    """
    for step in path.split("."):
        if isinstance(document, str):
            document = json.loads(document)
        if step == "#":
            document = len(document)
        elif isinstance(document, list):
            document = document[int(step)]
        else:
            document = document[step]
    return document


def fetch(  # noqa: PLR0913, PLR0917 -- what a request has
    url: str,
    data: bytes | None = None,
    headers: dict[str, str] | None = None,
    timeout: float = TIMEOUT_SECONDS,
    most: int = MOST_BYTES,
    authority: str = "",
) -> bytes:
    """Return the body of the answer to GET, or to POST with data; raise OSError for all but 2xx.

    No silence may be longer than the timeout, in seconds, and no body than ``most`` bytes. Under https the
    certificate has to be one of ``authority``, in PEM, or of the system's where that is empty.
    """
    from http.client import HTTPConnection, HTTPException
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    place = (parts.hostname or "", parts.port)
    connection = (
        _https(place, timeout, authority)
        if parts.scheme == "https"
        else HTTPConnection(*place, timeout=timeout)
    )
    try:
        connection.request("GET" if data is None else "POST", target, data, headers or {})
        answer = connection.getresponse()
        body = answer.read(most + 1)
    except HTTPException as error:
        raise OSError(f"not HTTP: {error!r}") from error
    finally:
        connection.close()
    if answer.status // 100 != HTTP_SUCCESS:
        raise OSError(f"HTTP Error {answer.status}: {answer.reason}")
    if len(body) > most:
        raise OSError(f"an answer of more than {most >> 20} MiB")
    return body


def _https(place: tuple[str, int | None], timeout: float, authority: str) -> HTTPConnection:
    import ssl
    from http.client import HTTPSConnection

    try:
        context = ssl.create_default_context(cadata=authority or None)
    except ssl.SSLError as error:
        raise OSError(f"{AUTHORITY} is no certificate in PEM: {error.reason}") from error
    return HTTPSConnection(*place, timeout=timeout, context=context)


def http(probe: dict[str, Any]) -> str | None:
    """``url`` answers 200; with ``path``, the value there meets the CONDITIONS that are named."""
    try:
        body = fetch(probe["url"], authority=probe.get("authority", ""))
    except OSError as error:
        return f"{probe['url']}: {error}"
    if "path" not in probe:
        return None
    try:
        value = lookup(json.loads(body), probe["path"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return f"{probe['url']}: no {probe['path']} in the answer {body[:200]!r}"
    for condition, (holds, words) in CONDITIONS.items():
        if condition in probe and not holds(value, probe[condition]):
            return f"{probe['url']}: {probe['path']} is {value!r} (expected {words}{probe[condition]!r})"
    return None


def read_exactly(stream: socket.socket, count: int) -> bytes:
    """Read ``count`` bytes or raise ConnectionError, at once for more than an answer may have."""
    if count > MOST_BYTES:
        raise ConnectionError(f"the service announces {count >> 20} MiB")
    data = bytearray()
    while len(data) < count:
        chunk = stream.recv(count - len(data))
        if not chunk:
            raise ConnectionError("the service closed the connection")
        data += chunk
    return bytes(data)


def thrift_call(host: str, port: int, call: str, argument: str | None = None) -> str:
    """Return the result of a call if it is a string, else an empty one; its one ``argument`` is a string.

    Raises OSError without a reply, or for an exception.
    """
    name, field = call.encode(), b""
    if argument is not None:
        text = argument.encode()
        field = struct.pack(f">bhi{len(text)}s", THRIFT_STRING, 1, len(text), text)
    head = struct.pack(f">Ii{len(name)}si", THRIFT_VERSION_1 | THRIFT_CALL, len(name), name, 1)
    where = f"thrift://{host}:{port}"
    try:
        with socket.create_connection((host, port), timeout=TIMEOUT_SECONDS) as stream:
            stream.sendall(head + field + b"\0")
            header, length = struct.unpack(">Ii", read_exactly(stream, 8))
            read_exactly(stream, length + 4)
            field_type, field_id = struct.unpack(">bh", read_exactly(stream, 3))
            if header & 0xFF != THRIFT_REPLY or field_type == 0 or field_id != 0:
                raise ConnectionError(f"{call} returned an exception")
            if field_type != THRIFT_STRING:
                return ""
            (size,) = struct.unpack(">i", read_exactly(stream, 4))
            return read_exactly(stream, size).decode()
    except (OSError, ValueError, struct.error) as error:
        raise ConnectionError(f"{where}: {error}") from error


def thrift(probe: dict[str, Any]) -> str | None:
    """A call without arguments (``call``) to ``host``:``port`` returns a reply and no exception."""
    try:
        thrift_call(probe["host"], probe["port"], probe["call"])
    except OSError as error:
        return str(error)
    return None


def http2_frame(kind: int, flags: int, payload: bytes) -> bytes:
    """Return a frame of stream 1."""
    return struct.pack(">BHBBI", 0, len(payload), kind, flags, 1) + payload


def grpc_request(authority: str, call: str, message: bytes) -> bytes:
    """Return the frames of one call, its header fields as literals without coding (RFC 7541, 6.2.2)."""
    fields = {
        ":method": "POST", ":scheme": "http", ":path": call, ":authority": authority,
        "te": "trailers", "content-type": "application/grpc",
    }  # fmt: skip
    block = b"".join(
        b"\x00" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
        for name, value in fields.items()
    )
    body = struct.pack(">BI", 0, len(message)) + message
    return http2_frame(HTTP2_HEADERS, HTTP2_END_HEADERS, block) + http2_frame(
        HTTP2_DATA, HTTP2_END_STREAM, body
    )


def spark_connect(probe: dict[str, Any]) -> str | None:
    """A Spark Connect server at ``host``:``port`` says which version it has."""
    where = f"{probe['host']}:{probe['port']}"
    request = HTTP2_PREFACE + grpc_request(where, SPARK_CONNECT_CALL, SPARK_CONNECT_VERSION)
    try:
        with socket.create_connection((probe["host"], probe["port"]), timeout=TIMEOUT_SECONDS) as stream:
            stream.sendall(request)
            first = read_exactly(stream, 9)
            if first[3] != HTTP2_SETTINGS:
                return f"{where}: not HTTP/2: {first!r}"
            read_exactly(stream, int.from_bytes(first[:3], "big"))
            while True:
                head = read_exactly(stream, 9)
                length, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
                read_exactly(stream, length)
                if head[5:] != b"\x00\x00\x00\x01":
                    continue
                if kind == HTTP2_DATA and length > GRPC_PREFIX:
                    return None
                if flags & HTTP2_END_STREAM or kind not in (HTTP2_DATA, HTTP2_HEADERS):
                    return f"{where}: no answer from Spark Connect"
    except OSError as error:
        return f"{where}: {error}"


def command(probe: dict[str, Any]) -> str | None:
    """``argv`` exits with 0 and, with ``prints``, its output contains that text."""
    import subprocess

    try:
        process = subprocess.run(
            probe["argv"], capture_output=True, text=True, check=False,
            timeout=probe.get("timeout", 30), stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{probe['argv'][0]}: {error}"
    output = (process.stdout + process.stderr).strip()
    if process.returncode or probe.get("prints", "") not in process.stdout:
        return f"{' '.join(probe['argv'])}: exit {process.returncode}: {output[-300:]}"
    return None


def trino_rows(url: str, user: str, query: str) -> list[list[Any]]:
    """Return the rows of a query; raise OSError where the coordinator does not answer, or refuses it.

    All pages of them together have at most MOST_BYTES.
    """
    headers = {"X-Trino-User": user, "X-Trino-Source": "readiness"}
    address = f"{url}/v1/statement"
    body: bytes | None = query.encode()
    rows: list[list[Any]] = []
    remaining = MOST_BYTES
    while address:
        try:
            page = fetch(address, body, headers, most=remaining)
            answer = dict(json.loads(page))
            error = answer.get("error")
            if error:
                raise ConnectionError(str(dict(error).get("message")))
            rows += answer.get("data") or []
        except (OSError, ValueError, TypeError, RecursionError) as refusal:
            raise ConnectionError(f"{url}: {refusal}") from refusal
        remaining -= len(page)
        # The next address is asked without a body.
        address, body = str(answer.get("nextUri") or ""), None
    return rows


def trino(probe: dict[str, Any]) -> str | None:
    """The coordinator at ``url`` counts ``nodes`` active ones and, if ``tpch``, can place a scan on them.

    Up to ``most`` of them are as well, where that is said: one in maintenance may run.
    A coordinator counts itself as soon as it has started, and looks up to 5 s later which node has which
    catalogs (Trino 476, DiscoveryNodeManager): until then a scan ends with NO_NODES_AVAILABLE. The
    data of the catalog `tpch` are generated, so that nothing but Trino is asked.
    """
    query = ACTIVE_NODES + (f" and exists ({TPCH_SCAN})" if probe["tpch"] else "")
    try:
        rows = trino_rows(probe["url"], probe["user"], query)
    except OSError as error:
        return str(error)
    counted = rows[0][0] if rows and rows[0] else 0
    if not probe["nodes"] <= counted <= probe.get("most", probe["nodes"]):
        return f"{probe['url']}: {query}: {rows} (expected {probe['nodes']!r})"
    return None


def hdfs_gate(probe: dict[str, Any]) -> str | None:
    """Nothing of HDFS speaks against a restart of this host's DataNode: see hdfs_gate.py."""
    from .hdfs_gate import ask as judge

    return judge(probe)


PROBES: dict[str, Callable[[dict[str, Any]], str | None]] = {
    "http": http,
    "thrift": thrift,
    "spark_connect": spark_connect,
    "command": command,
    "trino": trino,
    "hdfs_gate": hdfs_gate,
}


def ask(probe: dict[str, Any]) -> str | None:
    """Run the probe that ``kind`` names."""
    return PROBES[probe["kind"]](probe)
