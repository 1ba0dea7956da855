"""Which services of the stack run, and whether those that were asked for do."""

from __future__ import annotations

from collections.abc import Callable

import docker
from docker.models.containers import Container

from lakehouse.compose import services
from lakehouse.compose.labels import HOST_LABEL, PROJECT_LABEL, SERVICE_LABEL
from lakehouse.compose.settings import Settings
from lakehouse.errors import LakehouseError

# As stop_grace_period in compose.yaml.
_STOP_SECONDS = 60


def wanted(settings: Settings) -> set[str]:
    """Return the services of the profiles that were chosen."""
    return {service.name for service in services.chosen(settings.profiles)}


def require(client: docker.DockerClient, settings: Settings) -> None:
    """Raise LakehouseError with the services that do not run."""
    found = containers(client, settings)
    missing = sorted(wanted(settings) - {container.labels[SERVICE_LABEL] for container in found})
    if missing:
        what = ", ".join(missing) if found else "the stack"
        raise LakehouseError(f"{settings.project}: {what} does not run", "make compose-up")


def stop_others(client: docker.DockerClient, settings: Settings, log: Callable[[str], None]) -> None:
    """Remove the services that run and were not chosen: of another profile, with another configuration."""
    chosen = wanted(settings)
    for container in containers(client, settings):
        name = container.labels[SERVICE_LABEL]
        if name not in chosen:
            log(f"removing {name}, which is not of {', '.join(settings.profiles)}")
            container.stop(timeout=_STOP_SECONDS)
            container.remove()


def containers(client: docker.DockerClient, settings: Settings) -> list[Container]:
    """Return the containers of the stack that play a host and run."""
    labels = [f"{PROJECT_LABEL}={settings.project}", HOST_LABEL]
    return list(client.containers.list(filters={"label": labels, "status": "running"}, ignore_removed=True))
