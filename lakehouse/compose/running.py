"""Which services of the stack run, and whether those that were asked for do."""

from __future__ import annotations

from collections.abc import Callable, Collection

import docker
from docker.models.containers import Container

from lakehouse.compose import services
from lakehouse.compose.dotenv import Settings
from lakehouse.compose.labels import HOST_LABEL, PROJECT_LABEL, SERVICE_LABEL
from lakehouse.errors import LakehouseError

# As stop_grace_period in compose.yaml.
_STOP_SECONDS = 60
# A container that refuses to work says why in a line with this; the log of a tool may follow.
_NEXT = "; next: "
_LAST_LINES = 50


def wanted(settings: Settings) -> set[str]:
    """Return the services of the profiles that were chosen."""
    return {service.name for service in services.chosen(settings.profiles)}


def require(client: docker.DockerClient, settings: Settings, services: Collection[str] | None = None) -> None:
    """Raise LakehouseError with those of these services that do not run; of all, unless they are named."""
    found = containers(client, settings)
    needed = wanted(settings) if services is None else set(services)
    missing = sorted(needed - {container.labels[SERVICE_LABEL] for container in found})
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


def refusals(client: docker.DockerClient, settings: Settings) -> list[str]:
    """Return what the containers that failed said is wrong, and what to do: one line each."""
    label = f"{PROJECT_LABEL}={settings.project}"
    found = client.containers.list(all=True, filters={"label": label}, ignore_removed=True)
    failed = [each for each in found if each.attrs["State"]["ExitCode"] or each.attrs["RestartCount"]]
    said = (each.logs(tail=_LAST_LINES).decode(errors="replace").splitlines() for each in failed)
    return sorted({line for lines in said for line in lines if _NEXT in line})


def containers(client: docker.DockerClient, settings: Settings) -> list[Container]:
    """Return the containers of the stack that play a host and run."""
    labels = [f"{PROJECT_LABEL}={settings.project}", HOST_LABEL]
    return list(client.containers.list(filters={"label": labels, "status": "running"}, ignore_removed=True))
