"""Questions that only a working service answers.

Each probe returns None when the answer is right and otherwise one line that says what came back.
Standard library only: these run on the nodes. What only one kind needs is imported where it is asked, for
this is also a health check that runs every few seconds.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Callable
from typing import Any

TIMEOUT_SECONDS = 5.0
HTTP_SUCCESS = 2
# Thrift's strict binary protocol: version word with the message type in the low byte.
THRIFT_VERSION_1 = 0x80010000
THRIFT_CALL, THRIFT_REPLY = 1, 2
# What every HTTP/2 client sends first (RFC 9113, section 3.4), the SETTINGS frame without a setting included.
HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
HTTP2_DATA, HTTP2_HEADERS, HTTP2_SETTINGS = 0, 1, 4
HTTP2_END_STREAM, HTTP2_END_HEADERS = 1, 4
GRPC_PREFIX = 5
# AnalyzePlanRequest of spark/connect/base.proto: 1 session_id, 2 user_context (1 user_id), 10 spark_version.
# The session is always the same, so that the server keeps one.
SPARK_CONNECT_CALL = "/spark.connect.SparkConnectService/AnalyzePlan"
SPARK_CONNECT_VERSION = b"\n$00000000-0000-4000-8000-000000000000\x12\x0b\n\treadiness" + b"R\x00"


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


def fetch(
    url: str,
    data: bytes | None = None,
    headers: dict[str, str] | None = None,
    timeout: float = TIMEOUT_SECONDS,
    most: int | None = None,
) -> bytes:
    """Return the body of the answer to GET, or to POST with data; raise OSError for all but 2xx.

    No silence may be longer than the timeout, in seconds; of a longer body the first ``most`` bytes are read.
    """
    from http.client import HTTPConnection, HTTPException
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=timeout)
    try:
        connection.request("GET" if data is None else "POST", target, data, headers or {})
        answer = connection.getresponse()
        body = answer.read(most)
    except HTTPException as error:
        raise OSError(f"not HTTP: {error!r}") from error
    finally:
        connection.close()
    if answer.status // 100 != HTTP_SUCCESS:
        raise OSError(f"HTTP Error {answer.status}: {answer.reason}")
    return body


def http(probe: dict[str, Any]) -> str | None:
    """``url`` answers 200; with ``path``, the value there ``equals`` the given one or is ``at_least`` it."""
    try:
        body = fetch(probe["url"])
    except OSError as error:
        return f"{probe['url']}: {error}"
    if "path" not in probe:
        return None
    try:
        value = lookup(json.loads(body), probe["path"])
    except (ValueError, LookupError, TypeError):
        return f"{probe['url']}: no {probe['path']} in the answer {body[:200]!r}"
    if "equals" in probe and value != probe["equals"]:
        return f"{probe['url']}: {probe['path']} is {value!r} (expected {probe['equals']!r})"
    if "at_least" in probe and value < probe["at_least"]:
        return f"{probe['url']}: {probe['path']} is {value!r} (expected at least {probe['at_least']!r})"
    return None


def read_exactly(stream: socket.socket, count: int) -> bytes:
    """Read ``count`` bytes or raise ConnectionError."""
    data = b""
    while len(data) < count:
        chunk = stream.recv(count - len(data))
        if not chunk:
            raise ConnectionError("the service closed the connection")
        data += chunk
    return data


def thrift(probe: dict[str, Any]) -> str | None:
    """A call without arguments (``call``) to ``host``:``port`` returns a reply and no exception."""
    name = probe["call"].encode()
    message = struct.pack(f">Ii{len(name)}sib", THRIFT_VERSION_1 | THRIFT_CALL, len(name), name, 1, 0)
    where = f"thrift://{probe['host']}:{probe['port']}"
    try:
        with socket.create_connection((probe["host"], probe["port"]), timeout=TIMEOUT_SECONDS) as stream:
            stream.sendall(message)
            header, length = struct.unpack(">Ii", read_exactly(stream, 8))
            read_exactly(stream, length + 4)
            field_type, field_id = struct.unpack(">bh", read_exactly(stream, 3))
    except (OSError, struct.error) as error:
        return f"{where}: {error}"
    if header & 0xFF != THRIFT_REPLY or field_type == 0 or field_id != 0:
        return f"{where}: {probe['call']} returned an exception"
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
        done = subprocess.run(
            probe["argv"], capture_output=True, text=True, check=False,
            timeout=probe.get("timeout", 30), stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{probe['argv'][0]}: {error}"
    answer = (done.stdout + done.stderr).strip()
    if done.returncode or probe.get("prints", "") not in done.stdout:
        return f"{' '.join(probe['argv'])}: exit {done.returncode}: {answer[-300:]}"
    return None


def trino(probe: dict[str, Any]) -> str | None:
    """``query``, sent to ``url`` as ``user``, has one row of one column that ``equals`` the given value."""
    headers = {"X-Trino-User": probe["user"], "X-Trino-Source": "readiness"}
    address, body = f"{probe['url']}/v1/statement", probe["query"].encode()
    rows: list[list[Any]] = []
    while address:
        try:
            answer = json.loads(fetch(address, body, headers))
        except (OSError, ValueError) as error:
            return f"{address}: {error}"
        if "error" in answer:
            return f"{probe['url']}: {answer['error'].get('message')}"
        rows += answer.get("data") or []
        # The next address is asked without a body.
        address, body = answer.get("nextUri"), None
    if rows != [[probe["equals"]]]:
        return f"{probe['url']}: {probe['query']}: {rows} (expected {probe['equals']!r})"
    return None


PROBES: dict[str, Callable[[dict[str, Any]], str | None]] = {
    "http": http,
    "thrift": thrift,
    "spark_connect": spark_connect,
    "command": command,
    "trino": trino,
}


def ask(probe: dict[str, Any]) -> str | None:
    """Run the probe that ``kind`` names."""
    return PROBES[probe["kind"]](probe)
