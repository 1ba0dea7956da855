"""The nodes of an inventory as Docker's containers: the only module that runs commands on them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from lakehouse.errors import LakehouseError
from lakehouse.local.nodes import docker_api, spec
from lakehouse.model.inventory import Inventory

# A command that is not done by then hangs.
LIMIT_SECONDS = 600


class Machines:
    """Local nodes, by their names in the inventory.

    Raises LakehouseError where the inventory's machines are real.
    """

    def __init__(self, inventory: Inventory) -> None:
        cluster = spec.read(inventory)
        if cluster is None:
            raise LakehouseError(f"{inventory.path} has real machines; the floor is made of bare nodes")
        with docker_api.connect() as client:
            containers = docker_api.containers(client, cluster.cluster)
            self._names = {
                str(container.labels[docker_api.NODE_LABEL]): str(container.name) for container in containers
            }

    @property
    def nodes(self) -> list[str]:
        """Their names."""
        return sorted(self._names)

    def run(self, node: str, script: str, stdin: bytes = b"") -> bytes:
        """Run a script on a node with these bytes as its input; return what it prints."""
        words = ["exec", "--interactive", self._names[node], "bash", "-eo", "pipefail", "-c", script]
        return self._called(node, words, input=stdin)

    def ask(self, node: str, script: str) -> str:
        """Run a script on a node; return what it prints, as text."""
        return self.run(node, script).decode(errors="replace")

    def unpack(self, node: str, archive: Path, folder: str) -> None:
        """Unpack an archive of this computer in a folder that the node has."""
        with archive.open("rb") as stream:
            self._called(node, ["cp", "-", f"{self._names[node]}:{folder}"], stdin=stream)

    def changed(self, node: str) -> list[str]:
        """Return the paths that were made or changed since the node was made."""
        lines = self._called(node, ["diff", self._names[node]]).decode(errors="replace").splitlines()
        return [line[2:] for line in lines if not line.startswith("D ")]

    def _called(self, node: str, arguments: list[str], **source: Any) -> bytes:
        subject = f"{node}: {arguments[-1].strip().splitlines()[-1]}"
        command = f"docker exec -it {self._names[node]} bash"
        try:
            process = subprocess.run(
                ["docker", *arguments], capture_output=True, check=False, timeout=LIMIT_SECONDS, **source
            )
        except subprocess.TimeoutExpired:
            raise LakehouseError(f"{subject}: not done after {LIMIT_SECONDS} s", command) from None
        if process.returncode:
            messages = process.stderr.decode(errors="replace").strip().splitlines() or ["no output"]
            raise LakehouseError(f"{subject}: {messages[-1]}", command)
        return bytes(process.stdout)
