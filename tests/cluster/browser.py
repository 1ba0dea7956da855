"""A real browser without a screen: Debian's Chromium, told what to do through a pair of pipes.

What it is told is the Chrome DevTools Protocol: JSON, each message ended by a zero byte.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from lakehouse.run import ROOT
from suites.testbed.waiting import wait_for

PACKAGE = "chromium"
_PROGRAMS = (PACKAGE, "chromium-browser", "google-chrome")
# On a machine that has none: 120 MB from Debian's mirror.
_INSTALL_SECONDS = 60
# Of an answer, and of what is waited for on a page unless more is said.
_SECONDS = 15
# Its own sandbox needs what a container may not have, and no page but ours is opened.
_OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--remote-debugging-pipe",
)  # fmt: skip


def program() -> str:
    """Return the path of a browser, which is installed where there is none; AssertionError says why not."""
    if found := next(filter(None, map(shutil.which, _PROGRAMS)), None):
        return found
    argv = ["timeout", "--kill-after=5", str(_INSTALL_SECONDS), "scripts/apt-install", PACKAGE]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    found = shutil.which(PACKAGE)
    assert found, (
        f"no browser, and {PACKAGE} was not installed in {_INSTALL_SECONDS} s "
        f"(exit {done.returncode}: {done.stderr.strip()}); next: sudo apt-get install {PACKAGE}"
    )
    return found


class Browser:
    """One page of a browser. `asked` is every address that it asked for, `complaints` what it objected to."""

    def __init__(self, process: subprocess.Popen[bytes], to: int, source: int) -> None:
        self._process = process
        self._to = to
        self._source = source
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        self.asked: list[str] = []
        self.complaints: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")

    def open(self, url: str) -> None:
        """Go to a page, and wait until it is there."""
        self._call("Page.navigate", url=url)
        self.wait(f"location.href === {json.dumps(url)} && document.readyState === 'complete'")

    def value(self, expression: str) -> Any:
        """Return what an expression of JavaScript is on the page."""
        result = self._call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait(self, expression: str, seconds: float = _SECONDS) -> Any:
        """Wait until an expression is true on the page, and return it; the error has the page's text."""
        try:
            return wait_for(expression, lambda: self.value(expression), seconds=seconds)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; the page: {self.text('body')}") from None

    def text(self, selector: str) -> str:
        """Return the text of an element, empty where there is none."""
        return str(self.value(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def picture(self, path: Path, width: int = 1280, *, dark: bool = False) -> None:
        """Write the whole page as a picture, as on a screen of so many pixels."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self._call("Emulation.setEmulatedMedia", features=scheme)
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": True}
        self._call("Emulation.setDeviceMetricsOverride", **size)
        shot = self._call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + _SECONDS
        while True:
            said = self._next(deadline, method)
            if said.get("id") == self._number:
                assert "error" not in said, f"{method}: {said['error']}"
                return dict(said["result"])
            self._note(said.get("method", ""), said.get("params", {}))

    def _next(self, deadline: float, method: str) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._source], [], [], max(0.0, deadline - time.monotonic()))
            found = os.read(self._source, 1 << 20) if ready else b""
            if not found:
                raise AssertionError(f"{method}: the browser says nothing (exit {self._process.poll()})")
            self._rest += found
        line, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(line))

    def _note(self, event: str, said: dict[str, Any]) -> None:
        if event == "Network.requestWillBeSent":
            self.asked.append(said["request"]["url"])
        elif event == "Log.entryAdded":
            self.complaints.append(said["entry"]["text"])
        elif event == "Runtime.exceptionThrown":
            self.complaints.append(str(said["exceptionDetails"]))


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Start a browser, whose own files go to a folder, and end it."""
    # It reads from 3 and writes to 4; high numbers are not in the way of these.
    (theirs_in, to), (source, theirs_out) = (os.pipe(), os.pipe())
    high = [fcntl.fcntl(one, fcntl.F_DUPFD, 20) for one in (theirs_in, theirs_out)]
    argv = [program(), *_OPTIONS, f"--user-data-dir={folder}", "about:blank"]
    shell = ["bash", "-c", f'exec "$@" 3<&{high[0]} 4>&{high[1]}', "bash", *argv]
    with (folder / "browser.log").open("wb") as log:
        process = subprocess.Popen(shell, pass_fds=high, stdout=log, stderr=log, start_new_session=True)
    for one in (theirs_in, theirs_out, *high):
        os.close(one)
    try:
        yield Browser(process, to, source)
    finally:
        # Its helpers are in the session that was begun for it.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()
        os.close(to)
        os.close(source)
