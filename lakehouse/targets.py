"""What the suites ask: the machines of an inventory, or the stack of docker compose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from lakehouse.compose import dotenv, running, stack
from lakehouse.compose.dotenv import Settings
from lakehouse.nodes import docker_api
from lakehouse.phases import Phases
from lakehouse.shared_options import COMPOSE


class Target(Protocol):
    """A cluster: its inventory, and the environment in which that one's variables are looked up."""

    @property
    def inventory(self) -> str:
        """The path of the inventory."""

    @property
    def environment(self) -> Mapping[str, str]:
        """What is set in addition to this program's own environment."""

    def check(self) -> None:
        """Raise LakehouseError if it is not there to be asked."""

    def load(self, phases: Phases) -> None:
        """Load the real data where it is missing."""


@dataclass(frozen=True)
class Machines:
    """What `make lakehouse` has made, and loaded; who is not there is named by the suites themselves."""

    inventory: str
    environment: Mapping[str, str] = field(default_factory=dict)

    def check(self) -> None:
        """Do nothing: the suites themselves name a machine that is not there."""

    def load(self, phases: Phases) -> None:
        """Leave the data as it is."""


@dataclass(frozen=True)
class Stack:
    """What `make compose-up` has started; its data comes with the first question."""

    settings: Settings

    @property
    def inventory(self) -> str:
        """The path of the inventory."""
        return self.settings.inventory

    @property
    def environment(self) -> Mapping[str, str]:
        """Names, ports and profiles."""
        return self.settings.values

    def check(self) -> None:
        """Raise LakehouseError with the services that do not run."""
        with docker_api.connect() as client:
            running.require(client, self.settings)

    def load(self, phases: Phases) -> None:
        """Run the job that loads what is not there yet."""
        with phases.phase("data"):
            stack.load(self.settings)


def choose(kind: str, inventory: str, env_file: Path | None) -> Target:
    """Return the target of a kind, machines of the inventory or a stack with the settings of a file."""
    return Stack(dotenv.load(env_file)) if kind == COMPOSE else Machines(inventory)
