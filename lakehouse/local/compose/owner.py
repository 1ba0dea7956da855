"""Whose stack this is: of the checkout that has its passwords.

Two checkouts have the same name for it. The second would start it with passwords that its database does not
know, or remove the first one's data.
"""

from __future__ import annotations

import docker

from lakehouse.errors import LakehouseError
from lakehouse.local.compose.dotenv import Settings
from lakehouse.local.compose.labels import FOLDER_LABEL, PROJECT_LABEL


def refuse(client: docker.DockerClient, settings: Settings) -> None:
    """Raise LakehouseError if Docker has data or containers of the stack, and this checkout no passwords."""
    if settings.state.exists():
        return
    label = f"{PROJECT_LABEL}={settings.project}"
    containers = client.containers.list(all=True, filters={"label": label}, ignore_removed=True)
    if not containers and not client.volumes.list(filters={"label": label}):
        return
    place = containers[0].labels.get(FOLDER_LABEL) if containers else None
    raise LakehouseError(
        f"{settings.project} is the stack of another checkout{f' ({place})' if place else ''}:"
        f" its passwords are not in {settings.state}; nothing was touched",
        f"name this one COMPOSE_PROJECT_NAME=... in {settings.file}, or copy that folder from there",
    )
