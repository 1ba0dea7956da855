"""What the suites run against: the machines of an inventory, or the stack of docker compose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lakehouse.local.compose import dotenv, running, stack
from lakehouse.local.compose.dotenv import Settings
from lakehouse.local.nodes import docker_api
from lakehouse.phases import Phases
from lakehouse.shared_options import COMPOSE


@dataclass(frozen=True)
class Target:
    """An inventory, and the settings of docker compose if it is that of a stack."""

    inventory: str
    settings: Settings | None = None

    @property
    def environment(self) -> Mapping[str, str]:
        """What variables of the inventory read in addition to this program's own environment."""
        return self.settings.values if self.settings else {}

    def check(self) -> None:
        """Raise LakehouseError for services of a stack that do not run; suites report machines themselves."""
        if self.settings:
            with docker_api.connect() as client:
                running.require(client, self.settings)

    def load(self, phases: Phases) -> None:
        """Load the data of a stack where it is missing; `make lakehouse` has loaded that of machines."""
        if self.settings:
            with phases.phase("data"):
                stack.load(self.settings)


def choose(kind: str, inventory: str, env_file: Path | None) -> Target:
    """Return the target of a kind of `--target`: an inventory, or a stack with the settings of a file."""
    if kind != COMPOSE:
        return Target(inventory)
    settings = dotenv.load(env_file)
    return Target(settings.inventory, settings)
