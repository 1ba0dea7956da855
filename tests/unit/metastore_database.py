"""A real PostgreSQL with the tables of Hive Metastore 3.1.3, and rows as a metastore writes them."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from lakehouse import artifacts
from lakehouse.artifacts import manifest
from lakehouse.run import ROOT

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
POSTGRES = next((user for user in pwd.getpwall() if user.pw_name == "postgres"), pwd.getpwuid(0))
MAY_TRY = bool(PROGRAMS) and os.geteuid() == 0 and POSTGRES.pw_uid != 0
SCRIPT = "/hive-schema-3.1.0.postgres.sql"


@dataclass(frozen=True)
class Database:
    """A database of a server that listens on a socket in a folder of its own."""

    sockets: Path
    name: str
    user: str = "postgres"

    @property
    def argv(self) -> list[str]:
        """The command that asks it, as `lakehouse catalog` does on its host."""
        return ["psql", "-XAtq", "-h", str(self.sockets), "-U", self.user, "-d", self.name]

    def run(self, sql: str) -> str:
        """Run SQL; return what it printed."""
        done = self.attempt(sql)
        assert done.returncode == 0, f"{done.stderr}\n{sql[:2000]}"
        return done.stdout

    def attempt(self, sql: str) -> subprocess.CompletedProcess[str]:
        """Run SQL, which may fail."""
        argv = [*self.argv, "-v", "ON_ERROR_STOP=1"]
        return subprocess.run(argv, input=sql, capture_output=True, text=True, check=False)

    def lines(self, script: str) -> Generator[bytes, None, None]:
        """Give what a script for psql prints, line by line."""
        with tempfile.TemporaryFile() as given:
            given.write(script.encode())
            given.seek(0)
            process = subprocess.Popen(
                [*self.argv, "-f", "-"], stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            assert process.stdout is not None
            assert process.stderr is not None
            with process:
                yield from process.stdout
                said = process.stderr.read().decode()
            assert process.returncode == 0, said

    def copy(self, name: str) -> Database:
        """Make another database that holds the same; no client may be connected to this one."""
        other = Database(self.sockets, name)
        Database(self.sockets, "postgres").run(
            f'DROP DATABASE IF EXISTS "{name}"; CREATE DATABASE "{name}" TEMPLATE "{self.name}"'
        )
        return other


@contextmanager
def server() -> Iterator[Database]:
    """Start a server and make Hive's tables in its database `hive`; skip where that cannot be."""
    script = _script()
    with bare() as administrator:
        database = Database(administrator.sockets, "hive")
        administrator.run("CREATE DATABASE hive")
        database.run(script)
        # A metastore that starts makes it.
        database.run(
            "INSERT INTO \"DBS\" VALUES (1, 'Default Hive database', 'hdfs://lake/warehouse', 'default',"
            " 'public', 'ROLE', 'hive')"
        )
        yield database


@contextmanager
def bare() -> Iterator[Database]:
    """Start a server without databases of its own; skip where that cannot be."""
    _want_programs()
    home = Path(tempfile.mkdtemp(prefix="lakehouse-catalog-"))
    os.chown(home, POSTGRES.pw_uid, POSTGRES.pw_gid)
    data, programs = home / "data", PROGRAMS[-1].parent

    def as_postgres(*argv: str) -> None:
        done = subprocess.run(
            ["runuser", "-u", "postgres", "--", *argv], cwd="/", capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    as_postgres(
        f"{programs}/initdb", "-D", str(data), "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"
    )
    options = f"-c listen_addresses= -c unix_socket_directories={home} -c fsync=off -c shared_buffers=256MB"
    control = (f"{programs}/pg_ctl", "-D", str(data), "-w", "-l", f"{home}/log")
    try:
        as_postgres(*control, "-o", options, "start")
        try:
            yield Database(home, "postgres")
        finally:
            as_postgres(*control, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home)


def _want_programs() -> None:
    if not MAY_TRY:
        pytest.skip("needs root, the user postgres and initdb (apt-get install postgresql)")


def _script() -> str:
    """Return Hive's own script, of the release in the cache."""
    _want_programs()
    bill = manifest.load(ROOT / "versions.yml")
    [release] = [one for one in bill.component("hive").artifacts if "standalone" in str(one.coordinate)]
    path = artifacts.cache_dir().file(release)
    if not path.exists():
        pytest.skip("needs the release of Hive in the cache (lakehouse artifacts fetch)")
    with tarfile.open(path) as archive:
        member = next(one for one in archive if one.name.endswith(SCRIPT))
        stream = archive.extractfile(member)
        assert stream is not None
        return stream.read().decode()
