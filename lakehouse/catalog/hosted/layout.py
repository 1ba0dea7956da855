"""Where everything is, as the role has written it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """The cluster's name, the folder of its history, and how its database and HDFS are asked."""

    cluster: str
    folder: str
    keep_days: int
    # psql with all that it needs to reach the metastore's database.
    psql: list[str]
    namenode: str
    superuser: str
    # Above all tables in HDFS: whose it is, and how many hours and days its snapshots are kept; 0 makes none.
    root: str
    owner: str
    snapshot_hours: int
    snapshot_days: int
    # What is served, and where.
    past_commit: str
    past_address: str
    past_port: int

    @property
    def has_snapshots(self) -> bool:
        """Whether HDFS makes a snapshot with each commit."""
        return bool(self.snapshot_hours or self.snapshot_days)

    @property
    def repository(self) -> Path:
        """Where the repository is."""
        return Path(self.folder) / "catalog.git"


def load(path: str) -> Settings:
    """Read the settings."""
    return Settings(**json.loads(Path(path).read_bytes()))
