"""The stack of docker compose that these tests share, under names and ports of its own."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from docker import DockerClient
from docker.errors import APIError
from docker.models.containers import Container

from lakehouse import run
from lakehouse.local.compose import dotenv, stack
from lakehouse.local.compose.dotenv import Settings
from lakehouse.local.compose.labels import PROJECT_LABEL
from lakehouse.local.nodes import docker_api
from suites.testbed import waiting
from suites.testbed.engines.facade import Row
from suites.testbed.engines.spark import Spark
from suites.testbed.tables import suffix

ENV_FILE = Path(__file__).with_name("test.env")
EVIDENCE_LINES = "15"
# What the table of the fixture `birds` holds.
BIRDS: list[Row] = [("kiwi", 2), ("swift", 2)]
BIRDS_QUERY = "SELECT * FROM VALUES ('kiwi', 2), ('swift', 2) AS birds (name, wings)"


def compose(meant: Settings, *arguments: str, stdin: str | None = None) -> str:
    """Run docker compose and return its output; fail with what it and the containers said."""
    variables = {**os.environ, **meant.values}
    done = subprocess.run(
        stack.compose(meant, *arguments),
        capture_output=True,
        text=True,
        check=False,
        env=variables,
        input=stdin,
    )
    if done.returncode:
        logs = subprocess.run(
            stack.compose(meant, "logs", "--tail", EVIDENCE_LINES),
            capture_output=True,
            text=True,
            check=False,
            env=variables,
        )
        pytest.fail(f"docker compose {' '.join(arguments)}:\n{done.stdout}{done.stderr}\n{logs.stdout}")
    return done.stdout


def kill(meant: Settings) -> None:
    """Kill all containers of a stack; a step that ends by itself in that moment is no failure."""
    label = f"{PROJECT_LABEL}={meant.project}"

    def nothing_runs(client: DockerClient) -> bool:
        running = client.containers.list(filters={"label": label}, ignore_removed=True)
        for container in running:
            with suppress(APIError):
                container.kill()
        return not running

    with docker_api.connect() as client:
        waiting.wait_for("no container runs", lambda: nothing_runs(client), seconds=60)


def up(meant: Settings) -> None:
    """Start what does not run, and wait until every service has answered."""
    compose(meant, "up", "--detach", "--wait")


def connect(meant: Settings) -> Spark:
    """A new session with the stack's Spark, as a person on this computer opens it."""

    def first_answer() -> Spark:
        spark = Spark.connect(f"sc://127.0.0.1:{meant.values['SPARK_CONNECT_PORT']}")
        spark.sql("SELECT 1")
        return spark

    return waiting.wait_for("a first query", first_answer, seconds=90, ignoring=(Exception,))


def image(meant: Settings, family: str) -> str:
    """The name of the image that a stack's services of this family run."""
    return f"lakehouse-{family}:{meant.values['IMAGE_TAG']}"


def elsewhere(project: str, apart: int) -> dict[str, str]:
    """The settings in which a second stack differs from one that runs: its name, and where its ports are."""
    return {"COMPOSE_PROJECT_NAME": project, dotenv.OFFSET_VARIABLE: str(apart)}


def another(folder: Path, project: str, apart: int, **values: str) -> Path:
    """Write the settings of another stack, as a person does: a copy of these with other names and ports."""
    meant = {**dotenv.load(ENV_FILE, environment={}).values, **elsewhere(project, apart), **values}
    file = folder / f"{project}.env"
    file.write_text("".join(f"{name}={value}\n" for name, value in meant.items()), encoding="utf-8")
    return file


def volumes(meant: Settings) -> set[str]:
    """The names of the volumes that Docker has of a stack."""
    with docker_api.connect() as client:
        found = client.volumes.list(filters={"label": f"{PROJECT_LABEL}={meant.project}"})
    return {str(volume.name) for volume in found}


def files(container: Container, path: str) -> dict[str, bytes]:
    """The regular files at a path of a container, which need not run, by their names below its last part."""
    chunks, _ = container.get_archive(path)
    found = {}
    with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
        for member in archive:
            if content := archive.extractfile(member) if member.isfile() else None:
                found[member.name] = content.read()
    return found


@pytest.fixture(scope="session")
def meant() -> Settings:
    return dotenv.load(ENV_FILE, environment={})


@pytest.fixture(scope="session")
def _rendered(meant: Settings) -> None:
    if not (meant.rendered / "namenode").is_dir():
        pytest.exit(
            "the stack kit-test was never rendered; next: make compose-up ENV_FILE=tests/compose/test.env", 1
        )


@pytest.fixture(scope="session")
def core(meant: Settings, _rendered: None) -> Iterator[Settings]:
    """The small stack, which runs."""
    up(meant)
    yield meant
    if os.environ.get("CI"):
        compose(meant, "--profile", "*", "down", "--volumes", "--remove-orphans")


@pytest.fixture
def spark(core: Settings) -> Iterator[Spark]:
    spark = connect(core)
    yield spark
    spark.session.stop()


@pytest.fixture(scope="session")
def birds(core: Settings) -> Iterator[str]:
    """The full name of a table with BIRDS in it, for those who only read."""
    namespace = f"iceberg.birds_{suffix()}"
    table = f"{namespace}.birds"
    spark = connect(core)
    spark.sql(f"CREATE NAMESPACE {namespace}")
    spark.sql(f"CREATE TABLE {table} USING iceberg AS {BIRDS_QUERY}")
    spark.session.stop()
    yield table
    spark = connect(core)
    spark.sql(f"DROP TABLE {table} PURGE")
    spark.sql(f"DROP NAMESPACE {namespace}")
    spark.session.stop()


@pytest.fixture(scope="session")
def everything(core: Settings) -> Settings:
    """The same stack with all engines and the client."""
    complete = core.with_values(COMPOSE_PROFILES="all,past")
    up(complete)
    return complete


def lakehouse(
    *arguments: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the kit's program as a person would."""
    return subprocess.run(
        [run.program("lakehouse"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=run.ROOT,
        env={**surroundings(), **(environment or {})},
    )


def succeed(*arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """Run the kit's program and return what it said; fail with that unless it succeeds."""
    done = lakehouse(*arguments, environment=environment)
    assert done.returncode == 0, f"lakehouse {' '.join(arguments)}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def surroundings() -> dict[str, str]:
    """The environment without what would be a setting: it would win, and mean a person's own stack."""
    own = {*dotenv.load(environment={}).values, dotenv.DATANODES_VARIABLE}
    return {name: value for name, value in os.environ.items() if name not in own}
