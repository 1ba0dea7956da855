"""What cannot work is refused before anything starts: one line, and what to do."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from lakehouse import run
from lakehouse.local.compose.dotenv import Settings
from lakehouse.local.compose.labels import PROJECT_LABEL
from lakehouse.local.nodes import docker_api
from suites.testbed.engines.spark import Spark
from suites.testbed.tables import suffix
from tests.compose.conftest import BIRDS, ENV_FILE, compose, elsewhere, image, lakehouse, succeed

pytestmark = pytest.mark.cluster

VOLUME = "/var/lib/lakehouse/postgresql"
VOLUME_LABEL = "com.docker.compose.volume"
# Beside the stack that runs, and beside the second of test_two_stacks.py.
APART = 200
# What the steps say of a stack that is complete; the first leaves a server alone, and so asks it nothing.
NOTHING_TO_DO = {
    "postgres-init": "postgresql: left alone: a server runs on ",
    "namenode-format": "namenode: nothing to do",
    "hdfs-layout": "layout: nothing to do",
    "metastore-schema": "metastore: nothing to do",
}


def refused(said: str) -> str:
    """The one line of a refusal, without a stack trace."""
    assert "Traceback" not in said
    [line] = [line for line in said.splitlines() if "; next: " in line]
    return line


def start(**values: str) -> str:
    done = lakehouse("compose", "up", "--env-file", str(ENV_FILE), environment=values)
    assert done.returncode == 1
    return refused(done.stderr)


@contextmanager
def busy() -> Iterator[int]:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server.getsockname()[1]


def test_a_busy_port() -> None:
    with busy() as port:
        line = start(METASTORE_PORT=str(port))
    assert f"port {port} of METASTORE_PORT is busy" in line


def test_a_project_name_with_an_underscore() -> None:
    assert "COMPOSE_PROJECT_NAME 'my_stack' contains \"_\"" in start(COMPOSE_PROJECT_NAME="my_stack")


def test_an_unknown_profile() -> None:
    assert "no profile tirno" in start(COMPOSE_PROFILES="tirno")


def test_no_compose_of_version_2(tmp_path: Path) -> None:
    """A docker whose compose is too old; everything else of it is the real one."""
    fake = tmp_path / "docker"
    fake.write_text(
        f'#!/bin/sh\n[ "$1" = compose ] && {{ echo 2.1.0; exit 0; }}\nexec {shutil.which("docker")} "$@"\n'
    )
    fake.chmod(0o755)
    assert "docker compose is 2.1 (expected 2.20 or newer)" in start(PATH=f"{tmp_path}:{os.environ['PATH']}")


def test_a_volume_of_another_version(core: Settings) -> None:
    """A stack whose volume is of PostgreSQL 16 does not start; make compose-up says why."""
    project, volume = "kit-test-old", "kit-test-old_postgres"
    values = elsewhere(project, APART)
    written = f"mkdir {VOLUME}/data && cd {VOLUME}/data && echo 16 >PG_VERSION && touch postgresql.conf"
    with docker_api.connect() as client:

        def inside(command: str) -> bytes:
            mounts = {volume: {"bind": VOLUME, "mode": "rw"}}
            said: bytes = client.containers.run(
                image(core, "core"), ["sh", "-ec", command], user="postgres", volumes=mounts, remove=True
            )
            return said

        client.volumes.create(volume, labels={PROJECT_LABEL: project, VOLUME_LABEL: "postgres"})
        # A stack of this checkout has passwords.
        (run.ROOT / ".state" / f"compose-{project}").mkdir()
        try:
            inside(written)
            assert "a volume of PostgreSQL 16, the image has 17; nothing was touched" in start(**values)
            assert inside(f"ls -A {VOLUME}/data").split() == [b"PG_VERSION", b"postgresql.conf"]
        finally:
            succeed("compose", "down", "--volumes", "--env-file", str(ENV_FILE), environment=values)


def test_the_stack_of_another_checkout() -> None:
    """Its data is there, and its passwords are not: neither up nor down touches it."""
    project = f"kit-test-{suffix()}"
    values = elsewhere(project, APART)
    down = ("compose", "down", "--volumes", "--env-file", str(ENV_FILE))
    with docker_api.connect() as client:
        volume = client.volumes.create(f"{project}_postgres", labels={PROJECT_LABEL: project})
        try:
            done = lakehouse(*down, environment=values)
            for line in (refused(done.stderr), start(**values)):
                assert f"{project} is the stack of another checkout" in line
                assert "nothing was touched; next: name this one COMPOSE_PROJECT_NAME=" in line
            client.volumes.get(volume.name)
        finally:
            volume.remove()


def test_steps_are_harmless_again(core: Settings, birds: str, spark: Spark) -> None:
    for step, expected in NOTHING_TO_DO.items():
        said = compose(core, "run", "--rm", "--no-deps", "--no-TTY", step)
        assert expected in said, f"{step}: {said}"
    assert sorted(spark.sql(f"TABLE {birds}")) == BIRDS
