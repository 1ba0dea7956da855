"""What the person has set in compose/.env or another such file, or in the environment, which wins."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from dotenv import dotenv_values

from lakehouse import run
from lakehouse.errors import LakehouseError

FOLDER = run.ROOT / "compose"
DEFAULT_FILE = FOLDER / ".env"
# How many DataNodes there are is a matter of the inventory: DATANODES=3 is short for the profile.
DATANODES_VARIABLE = "DATANODES"
# Added to every port: a second stack needs one number, not seventeen.
OFFSET_VARIABLE = "PORT_OFFSET"
PORT = "_PORT"
THREE_DATANODES = "three-datanodes"
# What the images are built on, if not on that of a node: one with apt, of the release that versions.yml says.
BASE_VARIABLE = "BASE_IMAGE"
PROFILES_OF = {"1": "", "3": f",{THREE_DATANODES}"}
EVERYWHERE, LOOPBACK = "0.0.0.0", "127.0.0.1"  # noqa: S104 -- what a person may ask for


@dataclass(frozen=True)
class Settings:
    """The stack that is meant: its file of settings, and what it says."""

    file: Path
    values: Mapping[str, str]

    @property
    def project(self) -> str:
        """The name of the stack, in front of everything that Docker has of it."""
        return self.values["COMPOSE_PROJECT_NAME"]

    @property
    def profiles(self) -> tuple[str, ...]:
        """The profiles whose services run."""
        names = dict.fromkeys(name.strip() for name in self.values["COMPOSE_PROFILES"].split(","))
        return tuple(name for name in names if name)

    @property
    def inventory(self) -> str:
        """The inventory with as many DataNodes as the profiles start."""
        return "inventory/compose-three" if THREE_DATANODES in self.profiles else "inventory/compose"

    @property
    def ports(self) -> dict[str, str]:
        """The ports on this computer, as they were written, by variable."""
        return {name: value for name, value in self.values.items() if name.endswith(PORT)}

    def port(self, listener: str) -> str:
        """The port of a listener on this computer, as it was written."""
        return self.values[port_variable(listener)]

    @property
    def published(self) -> str:
        """The address at which programs on this computer reach the ports, as the inventory has it."""
        bound = self.values["BIND_ADDRESS"]
        return LOOPBACK if bound == EVERYWHERE else bound

    def with_values(self, **values: str) -> Settings:
        """Return the settings with other values."""
        return replace(self, values={**self.values, **values})

    @property
    def state(self) -> Path:
        """The folder with the passwords of the stack, as inventory/compose has it."""
        return run.ROOT / ".state" / f"compose-{self.project}"

    @property
    def rendered(self) -> Path:
        """The folder with the configuration of every container."""
        return run.BUILD / "compose" / self.project


def port_variable(listener: str) -> str:
    """Return the variable of a listener's port."""
    return f"{listener.upper()}{PORT}"


def load(file: Path | None = None, environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings; those that a file leaves out are as in compose/.env.

    Raises LakehouseError when the file is missing.
    """
    path = file or DEFAULT_FILE
    if not path.is_file():
        raise LakehouseError(f"{path} does not exist", f"cp {DEFAULT_FILE.relative_to(run.ROOT)} {path}")
    written = {**dotenv_values(DEFAULT_FILE), **dotenv_values(path)}
    values = {name: environment.get(name) or value or "" for name, value in written.items()}
    # compose/.env leaves these out.
    optional = (DATANODES_VARIABLE, BASE_VARIABLE)
    values |= {name: environment[name] for name in optional if environment.get(name)}
    count = values.get(DATANODES_VARIABLE) or "1"
    if count not in PROFILES_OF:
        raise LakehouseError(
            f"{DATANODES_VARIABLE} is {count!r} (expected {' or '.join(PROFILES_OF)})",
            f"make compose-up {DATANODES_VARIABLE}=3",
        )
    values["COMPOSE_PROFILES"] += PROFILES_OF[count]
    return Settings(path, _moved(values, path))


def _moved(values: Mapping[str, str], path: Path) -> dict[str, str]:
    """Return the values with PORT_OFFSET in every port, and none to be added any more."""
    offset = values[OFFSET_VARIABLE] or "0"
    try:
        distance = int(offset)
    except ValueError:
        raise LakehouseError(
            f"{OFFSET_VARIABLE} is {offset!r} (expected a number)", f"change it in {path}"
        ) from None
    moved = {
        name: str(int(value) + distance)
        for name, value in values.items()
        if name.endswith(PORT) and value.isdecimal()
    }
    return {**values, **moved, OFFSET_VARIABLE: "0"}
