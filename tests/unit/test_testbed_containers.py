"""What is asked of which container; whether Docker does it, tests/cluster finds out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import docker
import pytest
from docker.errors import APIError

from lakehouse.local.compose.labels import HOST_LABEL, PROJECT_LABEL, UNIT_LABEL
from suites.testbed.containers import ContainerNodes
from suites.testbed.nodes import CommandError


class Fake:
    """A container that writes down what it is told."""

    def __init__(self, name: str, host: str, unit: str, status: str = "running") -> None:
        self.name, self.status = name, status
        self.labels = {PROJECT_LABEL: "lake", HOST_LABEL: host, UNIT_LABEL: unit}
        self.told: list[Any] = []

    def exec_run(self, argv: list[str], **options: Any) -> tuple[int, tuple[bytes | None, bytes | None]]:
        self.told.append((argv, options["user"], options["environment"]))
        return 0, (self.name.encode(), None)

    def start(self) -> None:
        self.told.append("start")

    def stop(self, timeout: int) -> None:
        assert timeout > 10
        self.told.append("stop")

    def restart(self, **_: Any) -> None:
        raise APIError("no", explanation="the network is gone")

    def logs(self, **_: Any) -> bytes:
        return b"2026-01-01 a line\n"


def nodes(*containers: Fake) -> ContainerNodes:
    """Return the containers as machines, behind a Docker that has no others."""

    def listed(filters: dict[str, list[str]], **options: Any) -> list[Fake]:
        wanted = [label.partition("=")[::2] for label in filters["label"]]
        assert (PROJECT_LABEL, "lake") in wanted
        return [
            container
            for container in containers
            if all(container.labels.get(name) == value for name, value in wanted)
            and (options["all"] or container.status != "exited")
        ]

    by_name = {container.name: container for container in containers}
    client = SimpleNamespace(containers=SimpleNamespace(list=listed, get=by_name.__getitem__))
    return ContainerNodes(cast("docker.DockerClient", client), "lake")


@pytest.fixture
def manager() -> Fake:
    return Fake("lake-jobmanager-1", "flink", "flink-jobmanager")


@pytest.fixture
def gateway() -> Fake:
    return Fake("lake-gateway-1", "flink", "flink-sql-gateway")


def test_a_program_runs_in_one_container_of_the_host(manager: Fake, gateway: Fake) -> None:
    output = nodes(manager, gateway).run(
        "flink", "echo", "a b", user="etl", environment={"X": "1"}, seconds=5
    )
    assert output == "lake-gateway-1"
    assert gateway.told == [(["timeout", "5", "echo", "a b"], "etl", {"X": "1"})]
    assert manager.told == []


def test_a_program_that_runs_everywhere_runs_as_root(manager: Fake, gateway: Fake) -> None:
    assert nodes(manager, gateway).run_everywhere("flink", "id") == ["lake-gateway-1", "lake-jobmanager-1"]
    assert {user for _, user, _ in manager.told + gateway.told} == {"root"}


def test_a_unit_is_stopped_and_started_with_its_container(manager: Fake, gateway: Fake) -> None:
    with nodes(manager, gateway).stopped("flink", "flink-jobmanager"):
        assert manager.told == ["stop"]
    assert manager.told == ["stop", "start"]
    assert gateway.told == []


def test_a_killed_unit_dies_from_within_or_docker_would_not_start_it_again(manager: Fake) -> None:
    nodes(manager).kill("flink", "flink-jobmanager")
    [(argv, user, _)] = manager.told
    assert (argv[-1], user) == ("kill -s KILL -- -1", "")


@pytest.mark.parametrize(("status", "running"), [("running", True), ("restarting", False), ("exited", False)])
def test_a_unit_runs_with_its_container(manager: Fake, status: str, running: bool) -> None:
    manager.status = status
    assert nodes(manager).is_running("flink", "flink-jobmanager") is running


def test_the_journal_is_what_the_container_logged(manager: Fake) -> None:
    assert nodes(manager).journal("flink", "flink-jobmanager") == "2026-01-01 a line\n"


def test_what_docker_refuses_says_where(manager: Fake) -> None:
    with pytest.raises(CommandError, match="flink: Docker refuses: the network is gone"):
        nodes(manager).restart("flink", "flink-jobmanager")


def test_a_host_that_nobody_plays_says_what_to_run(manager: Fake) -> None:
    manager.status = "exited"
    with pytest.raises(CommandError, match="flink: no container of lake plays it; next: make compose-up"):
        nodes(manager).run("flink", "id")
    with pytest.raises(CommandError, match="trino: no container of lake runs trino; next: make compose-up"):
        nodes(manager).start("trino", "trino")
