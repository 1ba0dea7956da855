"""The settings that the role writes for these programs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from plugins.module_utils.lakehouse.backup_manifest import NAME


class BackupError(Exception):
    """A failure of these programs: the object and the reason, in one line."""


class BackupUsageError(BackupError):
    """The caller named a backup, table or database that is not there."""


@dataclass(frozen=True)
class Settings:
    """Places and names; `database_ssh` reaches PostgreSQL's host, `checkpoint` makes an image."""

    cluster: str
    folder: str
    keep: int
    namenode: str
    superuser: str
    root: str
    left_out: tuple[str, ...]
    database: str
    database_user: str
    database_port: int
    database_ssh: tuple[str, ...]
    checkpoint: tuple[str, ...]
    checkpoint_folder: str
    spark_submit: tuple[str, ...]
    spark_user: str
    # Days between two runs that read every byte of all backups; 0 is never.
    verify_days: int = 0
    # The file of metrics for the exporter of the host; none is written if empty.
    metrics: str = ""
    # Hours after which the newest good backup is old.
    alert_hours: int = 30

    @property
    def backups(self) -> Path:
        """The folder with a folder per backup."""
        return Path(self.folder) / "backups"

    @property
    def state(self) -> Path:
        """The folder of the lock and of the result of the last run."""
        return Path(self.folder) / "state"

    @property
    def configuration(self) -> Path:
        """The encrypted archive of the inventory and its secrets."""
        return Path(self.folder) / "configuration.enc"


def load(path: str) -> Settings:
    """Read the role's file; BackupError where it is missing or of another release."""
    try:
        document: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
        for key, value in document.items():
            if isinstance(value, list):
                document[key] = tuple(value)
        return Settings(**document)
    except (OSError, ValueError, TypeError) as error:
        raise BackupError(f"{path}: {error}") from error


def new_name() -> str:
    """Return the name of a backup that begins now, such as 20260102T030405Z."""
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")


def made_at(name: str) -> float:
    """Return when a backup of this name began, in seconds since the epoch."""
    return datetime.strptime(name, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()


def checked(name: str) -> str:
    """Return the name of a backup; BackupUsageError for anything else."""
    if not NAME.fullmatch(name):
        raise BackupUsageError(f"{name!r} is no backup: a name reads as 20260102T030405Z")
    return name
