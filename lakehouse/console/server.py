"""The HTTP server: passes each request to the pages, one thread per request."""

from __future__ import annotations

import socket
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any

from lakehouse import bind_address
from lakehouse.console.pages import METHODS, Pages, Response, refusal

_COMMAND, _PORT = ".venv/bin/lakehouse console", 8765
# Timeout of an incomplete request.
_PATIENCE_SECONDS = 10


class Server(ThreadingHTTPServer):
    """Listens once created; answers once `pages` is set and it serves."""

    daemon_threads = True
    pages: Pages

    def __init__(self, address: str, port: int) -> None:
        self.address_family, place = bind_address.place(address, port, _COMMAND)
        try:
            super().__init__(place, _Handler)
        except OSError as error:
            raise bind_address.refused(address, port, _PORT, error, _COMMAND) from error

    def server_bind(self) -> None:
        """Bind without the reverse DNS lookup of the base class, which may not end."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()

    @property
    def url(self) -> str:
        """The URL for a browser on this machine."""
        host = self.host
        if ip_address(host).is_unspecified:
            host = "::1" if self.address_family == socket.AF_INET6 else bind_address.LOOPBACK
        return f"http://[{host}]:{self.port}/" if ":" in host else f"http://{host}:{self.port}/"

    @property
    def host(self) -> str:
        """The address on which it listens."""
        return str(self.server_address[0])

    @property
    def port(self) -> int:
        """The port on which it listens, also if 0 was requested."""
        return int(self.server_address[1])

    @property
    def local(self) -> bool:
        """Whether only this machine can reach it."""
        return ip_address(self.host).is_loopback

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log no error of a browser that closed its connection."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = _PATIENCE_SECONDS

    def parse_request(self) -> bool:
        """Parse the request, and refuse all methods but the reading ones."""
        if not super().parse_request():
            return False
        if self.command in METHODS:
            return True
        self._write(self._respond())
        return False

    def do_GET(self) -> None:
        """Answer with a body."""
        self._write(self._respond())

    def do_HEAD(self) -> None:
        """Answer without one."""
        self._write(self._respond())

    def _respond(self) -> Response:
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1:
            return refusal(HTTPStatus.BAD_REQUEST, "a request has one Host header")
        headers = {name: self.headers[name] for name in ("Host", "If-None-Match") if name in self.headers}
        return self.server.pages.respond(self.command, self.path, headers)

    def _write(self, response: Response) -> None:
        self.send_response(response.status)
        for name, value in response.lines.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)

    def version_string(self) -> str:
        """Return the Server header, without versions."""
        return "lakehouse"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the base class calls it so
        """Log no request: a page sends one every other second."""
