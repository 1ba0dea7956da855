"""Routes of the console: a request in, a response out. Pure, except for the watches."""

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

from lakehouse.console import render
from lakehouse.console.view import Count, Plots, View
from lakehouse.console.watch import Snapshot, Watch
from lakehouse.report import page as report

METHODS = ("GET", "HEAD")
_HTML, _JSON, _TEXT = "text/html; charset=utf-8", "application/json", "text/plain; charset=utf-8"
_SCRIPT = "text/javascript; charset=utf-8"
# What the page of plots reads again and again: it needs neither the status nor the files.
_VALUES = "/metrics.json"
# No external resources, no inline scripts, no frames, no cross-origin reads.
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
    """Status, type, body and headers of a response; `lines` adds the headers of every response."""

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
    """Return an error response with its reason as a line of text."""
    return Response(status, _TEXT, f"{why}\n".encode(), headers)


def is_allowed_host(host: str, names: frozenset[str]) -> bool:
    """Return whether a Host header is an IP address, or one of this machine's names.

    That prevents DNS rebinding: such a page would send the name of its own server. The port may be that of a
    tunnel.
    """
    name = host.removeprefix("[").partition("]")[0] if host[:1] == "[" else host.partition(":")[0]
    if name.lower() in names:
        return True
    try:
        return bool(ip_address(name))
    except ValueError:
        return False


class Pages:
    """The routes, with the watches that they show."""

    def __init__(self, views: Watch[View], counts: Watch[Count], plots: Watch[Plots]) -> None:
        self._views = views
        self._counts = counts
        self._plots = plots
        self._names = frozenset({"localhost", socket.gethostname().lower()})
        # Tags differ after a restart, when numbers start again.
        self._start = secrets.token_hex(4)
        self._static = {
            "/style.css": ("text/css; charset=utf-8", _style()),
            "/console.js": (_SCRIPT, _file("console.js")),
            "/metrics.js": (_SCRIPT, _file("metrics.js")),
            "/uplot.js": (_SCRIPT, _file("vendor/uplot-1.6.32.js")),
            "/uplot.css": ("text/css; charset=utf-8", _file("vendor/uplot-1.6.32.css")),
        }
        self._routes: dict[str, Callable[[_Content, str], Response]] = {
            "/": _index,
            "/table": _table,
            "/status.json": _status,
            "/metrics": _metrics,
        }

    def respond(self, method: str, target: str, headers: Mapping[str, str]) -> Response:
        """Return the response to a request; `headers` has Host and If-None-Match, if they were sent."""
        if method not in METHODS:
            return refusal(HTTPStatus.METHOD_NOT_ALLOWED, "read-only", Allow=", ".join(METHODS))
        if not is_allowed_host(headers.get("Host", ""), self._names):
            return refusal(
                HTTPStatus.MISDIRECTED_REQUEST, "this is not the name of the console; open it by its address"
            )
        path, _, query = target.partition("?")
        if path in self._static:
            kind, body = self._static[path]
            tag = hashlib.sha256(body).hexdigest()[:16]
            return _unless(headers, tag, lambda: Response(HTTPStatus.OK, kind, body), {})
        if path == _VALUES:
            plots = self._plots.show()
            return _unless(headers, f"{self._start}-{plots.number}", lambda: _values(plots), {})
        if path not in self._routes:
            pages = ", ".join([*self._routes, _VALUES])
            return refusal(HTTPStatus.NOT_FOUND, f"there is no such page; next: /, {pages}")
        content = _Content(self._views.show(), self._counts.show(), time.monotonic())
        age = {"Age": f"{max(0.0, content.time - content.views.at):.0f}"}
        return _unless(
            headers, f"{self._start}-{content.tag}", lambda: self._routes[path](content, query), age
        )


@dataclass(frozen=True)
class _Content:
    """The snapshots to show, at a time of the monotonic clock."""

    views: Snapshot[View]
    counts: Snapshot[Count]
    time: float

    @property
    def tag(self) -> str:
        """An entity tag that changes with the content."""
        return "-".join(
            f"{snapshot.number}{'s' * snapshot.stale(self.time)}" for snapshot in (self.views, self.counts)
        )


def _unless(
    headers: Mapping[str, str], tag: str, make: Callable[[], Response], headers_to_add: Mapping[str, str]
) -> Response:
    """Return the response of `make`, or 304 Not Modified where the browser has it."""
    lines = {"ETag": f'"{tag}"', **headers_to_add}
    if headers.get("If-None-Match") == lines["ETag"]:
        return Response(HTTPStatus.NOT_MODIFIED, _TEXT, b"", lines)
    response = make()
    return Response(response.status, response.type, response.body, {**lines, **response.headers})


def _index(content: _Content, _: str) -> Response:
    page = render.index(content.views, content.counts, content.time)
    return Response(HTTPStatus.OK, _HTML, page.encode())


def _table(content: _Content, query: str) -> Response:
    name = parse_qs(query).get("name", [""])[0]
    page = render.table(content.views, content.counts, name, content.time)
    return Response(HTTPStatus.OK if page.exists else HTTPStatus.NOT_FOUND, _HTML, page.text.encode())


def _status(content: _Content, _: str) -> Response:
    document = content.views.value.ending.json()
    return Response(HTTPStatus.OK, _JSON, f"{json.dumps(document)}\n".encode())


def _metrics(content: _Content, _: str) -> Response:
    page = render.metrics(content.views, content.counts, content.time)
    return Response(HTTPStatus.OK, _HTML, page.encode())


def _values(plots: Snapshot[Plots]) -> Response:
    document = [
        {
            "why": plot.why or plots.trouble,
            "times": plot.value.times if plot.value else [],
            "series": [
                {"name": name, "values": values}
                for name, values in (plot.value.series if plot.value else {}).items()
            ],
        }
        for plot in plots.value
    ]
    return Response(HTTPStatus.OK, _JSON, f"{json.dumps(document)}\n".encode())


def _file(name: str) -> bytes:
    return resources.files("lakehouse.console").joinpath("templates", name).read_bytes()


def _style() -> bytes:
    """The style sheet of the report, with that of the console."""
    shared = resources.files(report.__package__).joinpath("templates", "style.css").read_bytes()
    return shared + _file("console.css")
