"""Collect the contents of a bundle on a host, and write them as a tar archive to stdout.

It is sent as a text with the request as its argument, needs only Python's library, and leaves no file.
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

# The last member: the full size of each of the others. Without it the archive is incomplete.
INDEX = "index.json"
# After SIGQUIT a JVM writes its threads to its stdout: the journal, which may be slow.
_DUMP_SECONDS = 5.0
# The bit of SIGQUIT in SigCgt: a process without a handler would be ended.
_CATCHES_QUIT = 1 << (signal.SIGQUIT - 1)
_DUMP_BEGINS, _DUMP_ENDS = "Full thread dump", ("JNI global ref", "Heap")


def bounded(data: bytes, most: int, *, end: bool) -> bytes:
    """Return at most `most` bytes of a text, from its end or its beginning, in whole lines."""
    if len(data) <= most:
        return data
    return data[-most:].partition(b"\n")[2] if end else data[:most].rpartition(b"\n")[0] + b"\n"


def shell(script: str, seconds: float) -> bytes:
    """Return the output of a script, with its exit code as last line where it failed or timed out."""
    argv = ["timeout", "-k", "1", f"{seconds:g}", "sh", "-c", script]
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    return done.stdout + (f"(exit {done.returncode})\n".encode() if done.returncode else b"")


def tail(path: Path, most: int) -> tuple[bytes, int]:
    """Return the last bytes of a file, in whole lines, and its size."""
    # Its owner may have replaced the regular file by a link to another's file, or by a pipe.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is no file")
        size = status.st_size
        stream.seek(max(0, size - most - 1))
        return bounded(stream.read(most + 1), most, end=True), size


def threads(unit: str) -> bytes:
    """Return the thread dump of a unit's JVM, or why there is none."""
    pid = shell(f"systemctl show --value --property=MainPID {unit}", 5).strip().decode() or "0"
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return b"it does not run\n"
    handled = next(line for line in status.splitlines() if line.startswith("SigCgt:")).split()[1]
    if not arguments[0].endswith(b"java") or b"-Xrs" in arguments or not int(handled, 16) & _CATCHES_QUIT:
        return b"no JVM that takes the signal\n"
    began = time.time()
    os.kill(int(pid), signal.SIGQUIT)
    output = ""
    while time.time() < began + _DUMP_SECONDS:
        command = f"journalctl -q --no-pager -o cat --since=@{began - 1:.0f} _PID={pid}"
        output = shell(command, _DUMP_SECONDS).decode(errors="replace")
        _, begin, dump = output.rpartition(_DUMP_BEGINS)
        if begin and any(f"\n{end}" in dump for end in _DUMP_ENDS):
            return f"{begin}{dump}".encode()
        time.sleep(0.1)
    return output.encode() or b"no answer to the signal\n"


def files(pattern: str) -> Iterator[Path]:
    """Yield the regular files of a pattern, in which two stars match any folders."""
    for path in sorted(Path("/").glob(pattern.lstrip("/"))):
        # lstat: the target of a link may be unreadable.
        if stat.S_ISREG(path.lstat().st_mode):
            yield path


def read_as(account: str, patterns: list[str], most: int) -> Iterator[tuple[Path, bytes, int]]:
    """Yield path, last bytes and size of each file of some patterns, with an account's permissions."""
    with acting_as(account):
        for path in (path for pattern in patterns for path in files(pattern)):
            try:
                data, size = tail(path, most)
            except OSError as error:
                data, size = f"{error}\n".encode(), 0
            yield path, data, size


@contextmanager
def acting_as(account: str) -> Iterator[None]:
    """Switch to the effective user and groups of an account, and back to root at the end."""
    entry = pwd.getpwnam(account)
    if entry.pw_uid == os.geteuid():
        yield
        return
    groups = os.getgroups()
    os.initgroups(account, entry.pw_gid)
    os.setegid(entry.pw_gid)
    os.seteuid(entry.pw_uid)
    try:
        yield
    finally:
        os.seteuid(os.getuid())
        os.setegid(os.getgid())
        os.setgroups(groups)


def collect(request: dict[str, Any]) -> Iterator[tuple[str, bytes, int]]:
    """Yield name, content and full size of each part, the smallest kind first."""
    most = int(request["bytes"])
    for name, script in request["shell"].items():
        output = shell(script, request["seconds"])
        yield name, bounded(output, most, end=True), len(output)
    for account, patterns in request["files"].items():
        for path, data, size in read_as(account, patterns, most):
            yield f"files{path}", data, size
    for unit in request["threads"]:
        dump = threads(unit)
        yield f"threads/{unit}.txt", bounded(dump, most, end=False), len(dump)


def send(request: dict[str, Any], out: BinaryIO) -> None:
    """Write all parts as a compressed tar archive, with the index as last member."""
    index: dict[str, int] = {}
    compressed = gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1)
    with compressed, tarfile.open(fileobj=compressed, mode="w|") as archive:
        for name, data, size in collect(request):
            index[name] = size
            _add(archive, name, data)
        _add(archive, INDEX, json.dumps(index).encode())


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mtime = len(data), int(time.time())
    archive.addfile(member, io.BytesIO(data))


if __name__ == "__main__":
    send(json.loads(sys.argv[1]), sys.stdout.buffer)
