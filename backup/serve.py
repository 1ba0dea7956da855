"""Gives the files of a folder to one address, for a while, to clients that know a word."""

from __future__ import annotations

import shutil
import socket
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def serve(folder: Path, to: tuple[str, int], word: str, seconds: float) -> dict[str, int]:
    """Serve the address `to` on a port of the address that leads there; return after so many seconds."""
    files = {f"/{word}/{path.name}": path for path in folder.iterdir()}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = files.get(self.path) if self.client_address[0] == to[0] else None
            self.send_response(HTTPStatus.OK if path else HTTPStatus.NOT_FOUND)
            self.end_headers()
            if path:
                with path.open("rb") as stream:
                    shutil.copyfileobj(stream, self.wfile)

        def log_message(self, *_: object) -> None:
            """Say nothing: the word is in the path."""

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((to[0], 1))
        address = probe.getsockname()[0]
    server = ThreadingHTTPServer((address, to[1]), Handler)
    server.timeout, until = 1.0, time.monotonic() + seconds
    while time.monotonic() < until:
        server.handle_request()
    return {"port": server.server_port}
