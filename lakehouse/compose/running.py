"""Which services of the stack run, and whether those that were asked for do."""

from __future__ import annotations

import docker
import yaml

from lakehouse.compose.settings import FOLDER, Settings
from lakehouse.errors import LakehouseError

# What plays a host of the inventory runs as long as the stack is up; steps and programs have no such label.
HOST_LABEL = "lakehouse.host"
_PROJECT_LABEL = "com.docker.compose.project"
_SERVICE_LABEL = "com.docker.compose.service"


def wanted(settings: Settings) -> set[str]:
    """Return the services of the profiles that were chosen."""
    services = yaml.safe_load((FOLDER / "compose.yaml").read_text("utf-8"))["services"]
    return {
        name
        for name, service in services.items()
        if HOST_LABEL in service.get("labels", {}) and set(service["profiles"]) & set(settings.profiles)
    }


def require(client: docker.DockerClient, settings: Settings) -> None:
    """Raise LakehouseError with the services that do not run."""
    found = client.containers.list(
        filters={"label": [f"{_PROJECT_LABEL}={settings.project}", HOST_LABEL], "status": "running"},
        ignore_removed=True,
    )
    missing = sorted(wanted(settings) - {container.labels[_SERVICE_LABEL] for container in found})
    if missing:
        what = ", ".join(missing) if found else "the stack"
        raise LakehouseError(f"{settings.project}: {what} does not run", "make compose-up")
