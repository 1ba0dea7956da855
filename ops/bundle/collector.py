"""Collects on a host what a bundle is to hold, and writes it as a tar archive on stdout.

Sent there as a text, with the request behind it. It needs nothing but Python's library, and leaves no file.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import pwd
import signal
import stat
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

# The last member: what there is of each of the others, and its absence is that of a part of the rest.
INDEX = "index.json"
# By a signal a JVM writes its threads to where it writes everything: the journal, which may be slow.
_DUMP_SECONDS = 5.0
# SIGQUIT among the signals that a process has a handler for: without one, it would be ended.
_CATCHES_QUIT = 1 << (signal.SIGQUIT - 1)
_DUMP_BEGINS, _DUMP_ENDS = "Full thread dump", ("JNI global ref", "Heap")


def bounded(data: bytes, most: int, *, end: bool) -> bytes:
    """Return at most so many bytes of a text, of its end or of its beginning, in whole lines."""
    if len(data) <= most:
        return data
    return data[-most:].partition(b"\n")[2] if end else data[:most].rpartition(b"\n")[0] + b"\n"


def shell(script: str, seconds: float) -> bytes:
    """Return what a script says, with a line at the end where it failed or took too long."""
    argv = ["timeout", "-k", "1", f"{seconds:g}", "sh", "-c", script]
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    return done.stdout + (f"(exit {done.returncode})\n".encode() if done.returncode else b"")


def tail(path: Path, most: int) -> tuple[bytes, int]:
    """Return the last bytes of a file, in whole lines, and how large it is."""
    # It was a regular file; its owner may have made it a link to another's since then, or a pipe.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is no file")
        size = status.st_size
        stream.seek(max(0, size - most - 1))
        return bounded(stream.read(most + 1), most, end=True), size


def threads(unit: str) -> bytes:
    """Return the threads of a unit's JVM, which goes on; or why there are none."""
    pid = shell(f"systemctl show --value --property=MainPID {unit}", 5).strip().decode() or "0"
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return b"it does not run\n"
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:")).split()[1]
    if not arguments[0].endswith(b"java") or b"-Xrs" in arguments or not int(caught, 16) & _CATCHES_QUIT:
        return b"no JVM that takes the signal\n"
    began = time.time()
    os.kill(int(pid), signal.SIGQUIT)
    said = ""
    while time.time() < began + _DUMP_SECONDS:
        shown = f"journalctl -q --no-pager -o cat --since=@{began - 1:.0f} _PID={pid}"
        said = shell(shown, _DUMP_SECONDS).decode(errors="replace")
        _, found, dump = said.rpartition(_DUMP_BEGINS)
        if found and any(f"\n{end}" in dump for end in _DUMP_ENDS):
            return f"{found}{dump}".encode()
        time.sleep(0.1)
    return said.encode() or b"no answer to the signal\n"


def files(pattern: str) -> Iterator[Path]:
    """Give the regular files of a pattern, in which two stars stand for any folders."""
    for path in sorted(Path("/").glob(pattern.lstrip("/"))):
        # Not of what a link leads to, which may be out of reach.
        if stat.S_ISREG(path.lstat().st_mode):
            yield path


def read_as(account: str, patterns: list[str], most: int) -> Iterator[tuple[Path, bytes, int]]:
    """Give the path, the last bytes and the size of each file of some patterns, with an account's rights."""
    with acting(account):
        for path in (path for pattern in patterns for path in files(pattern)):
            try:
                data, size = tail(path, most)
            except OSError as error:
                data, size = f"{error}\n".encode(), 0
            yield path, data, size


@contextmanager
def acting(account: str) -> Iterator[None]:
    """Have the process reach what an account may reach, and be root again at the end."""
    person = pwd.getpwnam(account)
    if person.pw_uid == os.geteuid():
        yield
        return
    groups = os.getgroups()
    os.initgroups(account, person.pw_gid)
    os.setegid(person.pw_gid)
    os.seteuid(person.pw_uid)
    try:
        yield
    finally:
        os.seteuid(os.getuid())
        os.setegid(os.getgid())
        os.setgroups(groups)


def collected(request: dict[str, Any]) -> Iterator[tuple[str, bytes, int]]:
    """Give name, content and the size before it was cut, the smallest first."""
    most = int(request["bytes"])
    for name, script in request["shell"].items():
        said = shell(script, request["seconds"])
        yield name, bounded(said, most, end=True), len(said)
    for account, patterns in request["files"].items():
        for path, data, size in read_as(account, patterns, most):
            yield f"files{path}", data, size
    for unit in request["threads"]:
        dump = threads(unit)
        yield f"threads/{unit}.txt", bounded(dump, most, end=False), len(dump)


def send(request: dict[str, Any], out: BinaryIO) -> None:
    """Write everything as a compressed tar archive, and at its end what there is of what."""
    index: dict[str, int] = {}
    packed = gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1)
    with packed, tarfile.open(fileobj=packed, mode="w|") as archive:
        for name, data, size in collected(request):
            index[name] = size
            _add(archive, name, data)
        _add(archive, INDEX, json.dumps(index).encode())


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mtime = len(data), int(time.time())
    archive.addfile(member, io.BytesIO(data))


if __name__ == "__main__":
    send(json.loads(sys.argv[1]), sys.stdout.buffer)
