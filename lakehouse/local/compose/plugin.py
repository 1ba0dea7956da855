"""Docker compose, version 2: the one that is there, or Debian's, taken out of its package."""

from __future__ import annotations

import io
import re
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import docker
import requests
from docker.errors import DockerException

from lakehouse.artifacts import apt
from lakehouse.errors import LakehouseError
from lakehouse.local.nodes import image

# The first with profiles, --wait and depends_on: service_completed_successfully.
OLDEST = (2, 20)
_INSIDE = "usr/libexec/docker/cli-plugins/docker-compose"
# The image of a node has the mirrors, proxies and authorities of this computer.
_FETCH = (
    "apt-get update -qq && cd /tmp && apt-get download -qq docker-compose"
    f" && dpkg-deb --fsys-tarfile docker-compose_*.deb | tar -x ./{_INSIDE}"
)
_PATIENCE = 300


def version() -> tuple[int, ...] | None:
    """Return the version of `docker compose`; None if Docker lacks it, or has version 1 only."""
    try:
        process = subprocess.run(
            ["docker", "compose", "version", "--short"], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return None
    numbers = re.match(r"v?(\d+)\.(\d+)", process.stdout.strip())
    return tuple(map(int, numbers.groups())) if process.returncode == 0 and numbers else None


def ensure(client: docker.DockerClient, suite: str, log: Callable[[str], None]) -> None:
    """Install docker compose if it is missing; LakehouseError with the packages to install if that fails."""
    installed = version()
    if installed and installed >= OLDEST:
        return
    if installed:
        raise LakehouseError(
            f"docker compose is {'.'.join(map(str, installed))}"
            f" (expected {'.'.join(map(str, OLDEST))} or newer)",
            "upgrade the package docker-compose-plugin, docker-compose-v2 or docker-compose",
        )
    log("installing docker compose for this user")
    try:
        _install(client, image.ensure(client, suite, log))
    except (DockerException, requests.RequestException, LakehouseError, KeyError) as error:
        raise LakehouseError(
            f"Docker has no compose, version 2, and it cannot be had from Debian: {error}",
            "install the package docker-compose-plugin (Docker's), docker-compose-v2 (Ubuntu's)"
            " or docker-compose (Debian 13's)",
        ) from error
    if version() is None:
        raise LakehouseError("docker compose was installed but does not run", "docker compose version")


def _install(client: docker.DockerClient, reference: str) -> None:
    container = client.containers.run(
        reference, ["sh", "-ec", _FETCH], user="root", environment=apt.proxies(), detach=True
    )
    try:
        status = container.wait(timeout=_PATIENCE)["StatusCode"]
        if status:
            last = container.logs(tail=1).decode(errors="replace").strip()
            raise LakehouseError(f"its package cannot be fetched: {last}")
        chunks, _ = container.get_archive(f"/tmp/{_INSIDE}")  # noqa: S108 -- in the container
        with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
            program = archive.extractfile(Path(_INSIDE).name)
            assert program  # noqa: S101 -- it is a file
            content = program.read()
    finally:
        container.remove(force=True)
    target = Path.home() / ".docker" / "cli-plugins" / "docker-compose"
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".part")
    partial.write_bytes(content)
    partial.chmod(0o755)
    partial.replace(target)
