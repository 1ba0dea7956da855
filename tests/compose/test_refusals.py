"""What cannot work is refused before anything starts: one line, and what to do."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from lakehouse.compose.settings import Settings
from lakehouse.nodes import engine
from smoke.lake import Lake
from tests.compose.conftest import BIRDS, ENV_FILE, compose, image, lakehouse

pytestmark = pytest.mark.cluster

DATA = "/var/lib/lakehouse/postgresql/data"
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
    """A volume of PostgreSQL 16 is refused by the step, and not touched."""
    volume = f"kit-test-old-{secrets.token_hex(3)}"
    with engine.connect() as client:
        client.volumes.create(volume)
        mounts = {volume: {"bind": "/var/lib/lakehouse/postgresql", "mode": "rw"}}
        try:
            client.containers.run(
                image(core, "core"),
                ["sh", "-c", f"mkdir {DATA} && cd {DATA} && echo 16 >PG_VERSION && touch postgresql.conf"],
                user="postgres",
                volumes=mounts,
                remove=True,
            )
            container = client.containers.create(
                image(core, "core"),
                ["lakehouse-service", "step", "postgresql"],
                user="postgres",
                volumes={**mounts, str(core.rendered / "postgres"): {"bind": "/config", "mode": "ro"}},
            )
            container.start()
            status = container.wait(timeout=60)["StatusCode"]
            said = container.logs().decode()
            container.remove()
        finally:
            client.volumes.get(volume).remove(force=True)
    assert status == 1
    assert "16" in refused(said)
    assert "17" in refused(said)


def test_steps_are_harmless_again(core: Settings, birds: str, lake: Lake) -> None:
    for step, expected in NOTHING_TO_DO.items():
        said = compose(core, "run", "--rm", "--no-deps", "--no-TTY", step)
        assert expected in said, f"{step}: {said}"
    assert sorted(lake.sql(f"TABLE {birds}")) == BIRDS
