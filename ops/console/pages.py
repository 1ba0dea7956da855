"""What is answered to which request. Pure but for the watches: a request in, a response out."""

from __future__ import annotations

import hashlib
import json
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib import resources
from ipaddress import ip_address
from urllib.parse import parse_qs

from lakehouse.report import page as report
from ops.console import render
from ops.console.view import Count, View
from ops.console.watch import Seen, Watch

METHODS = ("GET", "HEAD")
_HTML, _JSON, _TEXT = "text/html; charset=utf-8", "application/json", "text/plain; charset=utf-8"
# Nothing is loaded from elsewhere, nothing inline runs, no page frames it, and no other site reads it.
_SAFE = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@dataclass(frozen=True)
class Response:
    """A status, what is in the body and the body; more headers than `headers` are on every response."""

    status: HTTPStatus
    type: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def lines(self) -> dict[str, str]:
        """All headers."""
        length = {} if self.status is HTTPStatus.NOT_MODIFIED else {"Content-Length": str(len(self.body))}
        return {
            "Content-Type": self.type,
            **length,
            "Cache-Control": "no-cache",
            **_SAFE,
            **self.headers,
        }


def refusal(status: HTTPStatus, why: str, **headers: str) -> Response:
    """Return a line of text that says why there is no answer."""
    return Response(status, _TEXT, f"{why}\n".encode(), headers)


def known(host: str, names: frozenset[str]) -> bool:
    """Tell whether a Host header is an address, or one of the names that this machine has.

    A page of another server whose name was made to lead here asks for its own name (DNS rebinding); a page
    cannot have an address that leads somewhere else. The port may be another: that of a tunnel.
    """
    name = host.removeprefix("[").partition("]")[0] if host[:1] == "[" else host.partition(":")[0]
    if name.lower() in names:
        return True
    try:
        return bool(ip_address(name))
    except ValueError:
        return False


class Pages:
    """The routes, and what there is to show on them."""

    def __init__(self, views: Watch[View], counts: Watch[Count]) -> None:
        self._views = views
        self._counts = counts
        self._names = frozenset({"localhost", socket.gethostname().lower()})
        # Numbers begin again with each start.
        self._start = secrets.token_hex(4)
        self._fixed = {
            "/style.css": ("text/css; charset=utf-8", _style()),
            "/console.js": ("text/javascript; charset=utf-8", _file("console.js")),
        }
        self._made: dict[str, Callable[[_Shown, str], Response]] = {
            "/": _index,
            "/table": _table,
            "/status.json": _status,
        }

    def respond(self, method: str, target: str, headers: Mapping[str, str]) -> Response:
        """Return the answer to a request; `headers` has Host and If-None-Match where they were sent."""
        if method not in METHODS:
            return refusal(HTTPStatus.METHOD_NOT_ALLOWED, "read-only", Allow=", ".join(METHODS))
        if not known(headers.get("Host", ""), self._names):
            return refusal(
                HTTPStatus.MISDIRECTED_REQUEST, "this is not the name of the console; open it by its address"
            )
        path, _, query = target.partition("?")
        if path in self._fixed:
            kind, body = self._fixed[path]
            tag = hashlib.sha256(body).hexdigest()[:16]
            return _unless(headers, tag, lambda: Response(HTTPStatus.OK, kind, body), {})
        if path not in self._made:
            return refusal(HTTPStatus.NOT_FOUND, f"there is no such page; next: /, {', '.join(self._made)}")
        shown = _Shown(self._views.show(), self._counts.show(), time.monotonic())
        age = {"Age": f"{max(0.0, shown.now - shown.views.at):.0f}"}
        return _unless(headers, f"{self._start}-{shown.tag}", lambda: self._made[path](shown, query), age)


@dataclass(frozen=True)
class _Shown:
    """What there is to show now."""

    views: Seen[View]
    counts: Seen[Count]
    now: float

    @property
    def tag(self) -> str:
        """Another one whenever something looks otherwise."""
        return "-".join(f"{seen.number}{'s' * seen.stale(self.now)}" for seen in (self.views, self.counts))


def _unless(
    headers: Mapping[str, str], tag: str, make: Callable[[], Response], more: Mapping[str, str]
) -> Response:
    """Return what is made, or that the browser has it already."""
    lines = {"ETag": f'"{tag}"', **more}
    if headers.get("If-None-Match") == lines["ETag"]:
        return Response(HTTPStatus.NOT_MODIFIED, _TEXT, b"", lines)
    made = make()
    return Response(made.status, made.type, made.body, {**lines, **made.headers})


def _index(shown: _Shown, _: str) -> Response:
    page = render.index(shown.views, shown.counts, shown.now)
    return Response(HTTPStatus.OK, _HTML, page.encode())


def _table(shown: _Shown, query: str) -> Response:
    name = parse_qs(query).get("name", [""])[0]
    page = render.table(shown.views, shown.counts, name, shown.now)
    return Response(HTTPStatus.OK if page.found else HTTPStatus.NOT_FOUND, _HTML, page.text.encode())


def _status(shown: _Shown, _: str) -> Response:
    document = shown.views.value.ending.json()
    return Response(HTTPStatus.OK, _JSON, f"{json.dumps(document)}\n".encode())


def _file(name: str) -> bytes:
    return resources.files("ops.console").joinpath("templates", name).read_bytes()


def _style() -> bytes:
    """The report's look, and what a live page has more."""
    shared = resources.files(report.__package__).joinpath("templates", "style.css").read_bytes()
    return shared + _file("console.css")
