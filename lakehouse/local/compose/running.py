"""The running services of the stack, compared with those of its profiles."""

from __future__ import annotations

from collections.abc import Callable, Collection

import docker
from docker.models.containers import Container

from lakehouse.errors import LakehouseError
from lakehouse.local.compose import services
from lakehouse.local.compose.dotenv import Settings
from lakehouse.local.compose.labels import HOST_LABEL, PROJECT_LABEL, SERVICE_LABEL

# As stop_grace_period in compose.yaml.
_STOP_SECONDS = 60
# A container that refuses to work says why in a line with this; the log of a tool may follow.
_NEXT = "; next: "
_LAST_LINES = 50


def wanted(settings: Settings) -> set[str]:
    """Return the services of the selected profiles."""
    return {service.name for service in services.chosen(settings.profiles)}


def require(client: docker.DockerClient, settings: Settings, services: Collection[str] | None = None) -> None:
    """Raise LakehouseError with the services, or those of the profiles, that do not run."""
    running = containers(client, settings)
    needed = wanted(settings) if services is None else set(services)
    missing = sorted(needed - {container.labels[SERVICE_LABEL] for container in running})
    if missing:
        stopped = ", ".join(missing) if running else "the stack"
        raise LakehouseError(f"{settings.project}: {stopped} does not run", "make compose-up")


def stop_others(client: docker.DockerClient, settings: Settings, log: Callable[[str], None]) -> None:
    """Remove the services that run and were not chosen: of another profile, with another configuration."""
    chosen = wanted(settings)
    for container in containers(client, settings):
        name = container.labels[SERVICE_LABEL]
        if name not in chosen:
            log(f"removing {name}, which is not of {', '.join(settings.profiles)}")
            container.stop(timeout=_STOP_SECONDS)
            container.remove()


def refusals(client: docker.DockerClient, settings: Settings) -> list[str]:
    """Return the error lines, each with its next command, in the logs of failed containers."""
    label = f"{PROJECT_LABEL}={settings.project}"
    failed = [
        container
        for container in client.containers.list(all=True, filters={"label": label}, ignore_removed=True)
        if container.attrs["State"]["ExitCode"] or container.attrs["RestartCount"]
    ]
    logs = (container.logs(tail=_LAST_LINES).decode(errors="replace") for container in failed)
    return sorted({line for log in logs for line in log.splitlines() if _NEXT in line})


def containers(client: docker.DockerClient, settings: Settings) -> list[Container]:
    """Return the containers of the stack that play a host and run."""
    labels = [f"{PROJECT_LABEL}={settings.project}", HOST_LABEL]
    return list(client.containers.list(filters={"label": labels, "status": "running"}, ignore_removed=True))
