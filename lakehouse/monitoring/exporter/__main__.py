"""Serve the answers of services as metrics: `python3 -m lakehouse.monitoring.exporter SETTINGS`.

``SETTINGS`` is a file with ``address``, ``port``, ``seconds`` between two questions, and ``targets`` of the
filter `probe_targets`. Standard library only.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from lakehouse.monitoring.exporter.answers import Target, exposition


class _Server(ThreadingHTTPServer):
    """A server whose targets are asked until it is closed."""

    def __init__(self, *arguments: Any) -> None:
        self.closed = threading.Event()
        super().__init__(*arguments)

    def server_close(self) -> None:
        """End the questions, and the server."""
        self.closed.set()
        super().server_close()


def serve(settings: dict[str, Any]) -> ThreadingHTTPServer:
    """Start to ask the targets, and return the server of their metrics."""
    targets = [Target.of(row) for row in settings["targets"]]

    class Handler(BaseHTTPRequestHandler):
        # A client that sends nothing holds its thread no longer.
        timeout = 10.0

        def do_GET(self) -> None:
            body = (
                exposition(targets, time.monotonic()).encode() if self.path == "/metrics" else b"/metrics\n"
            )
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log no request: there is one every few seconds."""

    server = _Server((settings["address"], settings["port"]), Handler)
    threading.Thread(target=_ask, args=(targets, settings["seconds"], server.closed), daemon=True).start()
    return server


def _ask(targets: list[Target], seconds: float, closed: threading.Event) -> None:
    """Ask every target that has answered its last question, again and again."""
    with ThreadPoolExecutor(max_workers=min(len(targets), 32) or 1) as pool:
        while not closed.is_set():
            for target in targets:
                if target.begin(time.monotonic()):
                    pool.submit(target.ask)
            closed.wait(seconds)


if __name__ == "__main__":
    serve(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))).serve_forever()
