"""Whom the suites ask: machines as before, or the stack of docker compose, if all of it runs."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import docker
import pytest

from lakehouse import run, shared_options, verbs
from lakehouse.errors import LakehouseError
from lakehouse.local import targets
from lakehouse.local.compose import dotenv, running, stack

CORE = {
    "postgres", "namenode", "datanode1", "metastore", "spark-master", "spark-worker", "spark-connect",
}  # fmt: skip


def chosen(**environment: str) -> dotenv.Settings:
    """Return the settings of compose/.env where these variables are set."""
    return dotenv.load(environment=environment)


def engine(*services: str) -> docker.DockerClient:
    """Return a Docker in which containers of these services run."""
    found = [SimpleNamespace(labels={"com.docker.compose.service": name}) for name in services]
    return cast("docker.DockerClient", SimpleNamespace(containers=SimpleNamespace(list=lambda **_: found)))


class TestRunning:
    """What has to run."""

    @pytest.mark.parametrize(
        ("environment", "more"),
        [
            ({"COMPOSE_PROFILES": "core"}, set()),
            ({"COMPOSE_PROFILES": "trino"}, {"trino"}),
            ({"COMPOSE_PROFILES": "core", "DATANODES": "3"}, {"datanode2", "datanode3"}),
        ],
    )
    def test_it_follows_from_the_profiles(self, environment: dict[str, str], more: set[str]) -> None:
        assert running.wanted(chosen(**environment)) == CORE | more

    def test_all_is_all_that_plays_a_host(self) -> None:
        wanted = running.wanted(chosen(COMPOSE_PROFILES="all"))
        assert wanted > CORE | {"client", "trino", "flink-jobmanager", "flink-taskmanager"}
        assert not wanted & {"load", "postgres-init", "namenode-format"}

    def test_all_of_it_may_be_asked(self) -> None:
        running.require(engine(*CORE), chosen(COMPOSE_PROFILES="core"))

    def test_some_of_it_may_be_enough(self) -> None:
        running.require(engine("postgres"), chosen(), {"postgres"})
        with pytest.raises(LakehouseError, match="lakehouse: namenode does not run"):
            running.require(engine("postgres"), chosen(), {"postgres", "namenode"})

    @pytest.mark.parametrize(
        ("there", "line"),
        [
            ([], "lakehouse: the stack does not run; next: make compose-up"),
            (sorted(CORE - {"namenode"}), "lakehouse: namenode does not run; next: make compose-up"),
        ],
    )
    def test_what_is_missing_is_named(self, there: list[str], line: str) -> None:
        with pytest.raises(LakehouseError) as refused:
            running.require(engine(*there), chosen(COMPOSE_PROFILES="core"))
        assert str(refused.value) == line


class TestRefusals:
    """What is shown when the stack does not start."""

    def test_it_is_what_the_failed_containers_said_last(self) -> None:
        def container(said: str, **state: int) -> SimpleNamespace:
            attributes = {"State": {"ExitCode": state.get("code", 0)}, "RestartCount": state.get("again", 0)}
            return SimpleNamespace(attrs=attributes, logs=lambda **_: said.encode())

        step = "postgresql: a volume of PostgreSQL 16; next: dump it"
        daemon = "hdfs-namenode: the volume of another cluster; next: move it away"
        found = [
            container("postgresql: nothing to do; next: never shown"),
            container(f"{step}\nand a log\n", code=1),
            container(f"{daemon}\n{daemon}\n", again=2),
            container("no reason\n", code=137),
        ]
        client = SimpleNamespace(containers=SimpleNamespace(list=lambda **_: found))
        assert running.refusals(cast("docker.DockerClient", client), chosen()) == [daemon, step]


class TestTarget:
    """What the verbs do with it."""

    @pytest.fixture(autouse=True)
    def _build(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(verbs, "PHASES", tmp_path / "phases.json")

    def test_machines_are_asked_as_they_are(self) -> None:
        target = targets.choose(shared_options.MACHINES, "inventory/mine", None)
        target.check()
        target.load(verbs.start())
        assert (target.inventory, target.environment) == ("inventory/mine", {})

    def test_the_stack_has_an_inventory_of_its_own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(os.environ, "DATANODES", "3")
        target = targets.choose(shared_options.COMPOSE, "inventory/mine", None)
        assert target.inventory == "inventory/compose-three"
        assert target.environment["COMPOSE_PROJECT_NAME"]

    def test_the_stack_is_given_its_data(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[Any] = []
        monkeypatch.setattr(run, "logged", lambda argv, *_: asked.append(argv))
        targets.Target("", chosen()).load(verbs.start())
        assert asked == [stack.compose(chosen(), "run", "--rm", "--no-TTY", "load")]
