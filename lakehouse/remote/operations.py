"""Desired states of things on hosts, which `lakehouse.remote.pyinfra_operations` brings about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# pyinfra refuses to remove a link, or renames it, unless it is told otherwise.
_ABSENT = {"present": False, "force": True, "force_backup": False}


@dataclass(frozen=True)
class Operation:
    """One thing of a host in a desired state: pyinfra's name of the operation, and its arguments.

    An operation reads a fact first: it runs a command only where the host differs.
    """

    name: str
    arguments: Mapping[str, Any]


def running(unit: str, *, enabled: bool | None = None) -> Operation:
    """Return the operation that starts a unit, and enables it if `enabled`."""
    return Operation("units.state", {"unit": unit, "running": True, "enabled": enabled})


def stopped(unit: str, *, enabled: bool | None = None) -> Operation:
    """Return the operation that stops a unit, and disables it if `enabled` is false."""
    return Operation("units.state", {"unit": unit, "running": False, "enabled": enabled})


def reread(unit: str) -> Operation:
    """Return the operation that has systemd read the files of a unit that have changed."""
    return Operation("units.reread", {"unit": unit})


def no_file(path: str) -> Operation:
    """Return the operation that removes a file, or what else is there: a masked unit is a link."""
    return Operation("files.file", {"path": path, **_ABSENT})


def no_folder(path: str) -> Operation:
    """Return the operation that removes a folder with everything in it, or a link to one."""
    return Operation("files.directory", {"path": path, **_ABSENT})


def no_files_with(folder: str, *texts: str) -> Operation:
    """Return the operation that removes the files in a folder that contain all these texts."""
    return Operation("files_with.absent", {"folder": folder, "texts": texts})
