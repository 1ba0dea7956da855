"""Containers of docker compose: each runs one unit as its only daemon, with unit and host in its labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import docker
from docker.errors import APIError
from docker.models.containers import Container

from lakehouse.local.compose.labels import HOST_LABEL, PROJECT_LABEL, UNIT_LABEL
from suites.testbed.nodes import CommandError, Ended, Nodes

# A daemon that has not ended by then is killed, as systemd does it.
_STOP_SECONDS = 90
# Root has no rights in a container that runs as another user: it may signal no one.
_ITS_USER = ""
# All but process 1, which ends with its child. A container that Docker itself is told to kill counts as
# stopped by a person, and is not started again.
_KILL_ALL = ["sh", "-c", "kill -s KILL -- -1"]


class ContainerNodes(Nodes):
    """The containers of one project; a host of the inventory is one or several of them."""

    def __init__(self, client: docker.DockerClient, project: str) -> None:
        self._client = client
        self._project = project

    def places(self, host: str) -> Sequence[str]:
        """Return the names of the host's containers that run, in alphabetical order."""
        names = sorted(str(container.name) for container in self._find(f"{HOST_LABEL}={host}"))
        if not names:
            raise CommandError(f"{host}: no container of {self._project} plays it; next: make compose-up")
        return names

    def execute(self, place: str, argv: Sequence[str], user: str, environment: Mapping[str, str]) -> Ended:
        """Run a program as `user`."""

        def call() -> Ended:
            container = self._client.containers.get(place)
            # With demux the output is a pair, which docker's types do not know.
            answer: Any = container.exec_run(list(argv), user=user, environment=dict(environment), demux=True)
            status, (output, error) = answer
            return Ended(status, _text(output), _text(error))

        ended: Ended = _asked(place, call)
        return ended

    def is_running(self, host: str, unit: str) -> bool:
        """Tell whether the unit's container runs."""
        return bool(self._find(f"{HOST_LABEL}={host}", f"{UNIT_LABEL}={unit}"))

    def start(self, host: str, unit: str) -> None:
        """Start a unit's container; it need not answer yet."""
        container = self._of(host, unit)
        _asked(host, container.start)

    def stop(self, host: str, unit: str) -> None:
        """Stop a unit's container and wait until it has ended."""
        container = self._of(host, unit)
        _asked(host, lambda: container.stop(timeout=_STOP_SECONDS))

    def restart(self, host: str, unit: str) -> None:
        """Stop and start a unit's container; it need not answer yet."""
        container = self._of(host, unit)
        _asked(host, lambda: container.restart(timeout=_STOP_SECONDS))

    def kill(self, host: str, unit: str) -> None:
        """Kill a unit's processes; Docker starts the container again. How the killer ends says nothing."""
        self.execute(str(self._of(host, unit).name), _KILL_ALL, _ITS_USER, {})

    def journal(self, host: str, unit: str, lines: int = 15) -> str:
        """Return the last lines that the unit's container logged."""
        container = self._of(host, unit)
        return _text(_asked(host, lambda: container.logs(tail=lines, timestamps=True)))

    def _of(self, host: str, unit: str) -> Container:
        containers = self._find(f"{HOST_LABEL}={host}", f"{UNIT_LABEL}={unit}", ended=True)
        if not containers:
            raise CommandError(f"{host}: no container of {self._project} runs {unit}; next: make compose-up")
        return containers[0]

    def _find(self, *labels: str, ended: bool = False) -> list[Container]:
        filters: dict[str, str | list[str] | bool] = {"label": [f"{PROJECT_LABEL}={self._project}", *labels]}
        containers = self._client.containers.list(all=ended, filters=filters, ignore_removed=True)
        return [container for container in containers if ended or container.status == "running"]


def _asked(where: str, call: Callable[[], Any]) -> Any:
    """Do something that Docker may refuse: CommandError."""
    try:
        return call()
    except APIError as error:
        raise CommandError(f"{where}: Docker refuses: {error.explanation or error}") from error


def _text(output: bytes | None) -> str:
    return (output or b"").decode(errors="replace")
