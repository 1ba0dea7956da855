"""HDFS counts as started once it takes writes: a DataNode is not ready before safe mode has ended."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from lakehouse.run import ROOT
from plugins.modules import lakehouse_daemon as daemon

UNIT = "hdfs-datanode"
# What the role asks, as it is rendered for a DataNode.
RENDERED = ROOT / "tests/render/golden/compose/datanode1/etc/lakehouse/service.json"
ON = "Safe mode is ON. The reported blocks 390 needs additional 17 blocks."
LIMIT_SECONDS = 30


@contextmanager
def hdfs(safe_mode: list[str]) -> Iterator[list[dict[str, Any]]]:
    """Serve the beans of a DataNode that runs, and of its NameNode, whose last answer it goes on giving.

    Gives the probes of the role, for this address.
    """
    asked = json.loads(RENDERED.read_text(encoding="utf-8"))["ready"][UNIT]
    datanode = {"BPServiceActorInfo": json.dumps([{"ActorState": "RUNNING"}])}

    class Beans(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.endswith("name=NameNodeInfo"):
                bean = {"Safemode": safe_mode.pop(0) if safe_mode[1:] else safe_mode[0]}
            else:
                bean = datanode
            body = json.dumps({"beans": [bean]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Beans) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        here = f"http://127.0.0.1:{server.server_port}/jmx"
        yield [probe | {"url": f"{here}?{probe['url'].partition('?')[2]}"} for probe in asked]
        server.shutdown()


def test_a_start_waits_until_safe_mode_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(daemon, "properties", lambda _: {"ActiveState": "active"})
    safe_mode = [ON, ON, ""]
    module: Any = None
    with hdfs(safe_mode) as ready:
        daemon.wait(module, UNIT, ready, LIMIT_SECONDS)
    assert safe_mode == [""]


def test_a_datanode_is_not_ready_in_safe_mode_and_says_why() -> None:
    with hdfs([ON]) as ready:
        said = daemon.first_error(ready)
    assert said
    assert said.endswith(f"beans.0.Safemode is {ON!r} (expected '')")
