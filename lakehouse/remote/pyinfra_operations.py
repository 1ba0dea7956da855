"""Facts and operations of pyinfra: its own, and what the kit adds to them.

pyinfra's `systemd.service` takes a unit that systemd is about to restart for a stopped one, and leaves it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.api.facts import FactBase
from pyinfra.api.operation import operation
from pyinfra.context import host
from pyinfra.operations import files

_Commands = Generator[StringCommand, None, None]
_ENABLED = "enabled", "enabled-runtime"
_STOPPED = "inactive", "failed"


class Unit(FactBase[dict[str, str]]):
    """systemd's properties of a unit."""

    def command(self, unit: str) -> StringCommand:
        """Return the command that prints the properties, one per line."""
        return StringCommand(
            "systemctl show --property=LoadState,ActiveState,UnitFileState,NeedDaemonReload",
            QuoteString(unit),
        )

    def process(self, output: Iterable[str]) -> dict[str, str]:
        """Parse the properties."""
        return dict(line.split("=", 1) for line in output if "=" in line)


class FilesWith(FactBase[list[str]]):
    """The files in a folder that contain all of some texts."""

    default = list

    def command(self, folder: str, texts: Iterable[str]) -> StringCommand:
        """Return the command that prints their paths."""
        words: list[str | QuoteString] = ["find", QuoteString(folder), "-maxdepth 1 -type f -print0"]
        for text in texts:
            words += ["| xargs -0 -r grep -lZF --", QuoteString(text)]
        return StringCommand(*words, "| tr '\\0' '\\n'")

    def process(self, output: Iterable[str]) -> list[str]:
        """Return the paths."""
        return [line for line in output if line]


@operation()
def state(unit: str, *, running: bool, enabled: bool | None = None) -> _Commands:
    """Start or stop a unit, and enable or disable it unless `enabled` is None."""
    properties = host.get_fact(Unit, unit=unit)
    if not running and properties["LoadState"] == "not-found":
        return
    is_stopped = properties["ActiveState"] in _STOPPED
    if enabled is not None and enabled != (properties["UnitFileState"] in _ENABLED):
        yield StringCommand("systemctl --quiet", "enable" if enabled else "disable", QuoteString(unit))
    if running and properties["ActiveState"] != "active":
        yield StringCommand("systemctl start", QuoteString(unit))
    if not running and not is_stopped:
        yield StringCommand("systemctl stop", QuoteString(unit))


@operation()
def reread(unit: str) -> _Commands:
    """Have systemd read all units where the files of this one have changed."""
    if host.get_fact(Unit, unit=unit).get("NeedDaemonReload") == "yes":
        yield StringCommand("systemctl daemon-reload")


@operation()
def absent(folder: str, texts: Iterable[str]) -> _Commands:
    """Remove the files in a folder that contain all of some texts."""
    for path in host.get_fact(FilesWith, folder=folder, texts=texts):
        yield StringCommand("rm -f --", QuoteString(path))


BY_NAME: Mapping[str, Callable[..., Any]] = {
    "units.state": state,
    "units.reread": reread,
    "files.file": files.file,
    "files.directory": files.directory,
    "files_with.absent": absent,
}
