"""The settings of the cluster's history, which the role writes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """The cluster's name, the folder of its history, and the access to its database and HDFS."""

    cluster: str
    folder: str
    keep_days: int
    # The command line of psql for the metastore's database.
    psql: list[str]
    namenode: str
    superuser: str
    # The folder of HDFS above all tables, its owner, and the retention of its snapshots; 0 disables them.
    root: str
    owner: str
    snapshot_hours: int
    snapshot_days: int
    # The commit of the read-only metastore, and its address.
    past_commit: str
    past_address: str
    past_port: int
    # The file of metrics for the exporter of the host; none is written if empty.
    metrics: str = ""
    # Hours after which the last commit is old.
    alert_hours: int = 3

    @property
    def has_snapshots(self) -> bool:
        """Whether each commit has a snapshot of HDFS."""
        return bool(self.snapshot_hours or self.snapshot_days)

    @property
    def repository(self) -> Path:
        """The path of the repository."""
        return Path(self.folder) / "catalog.git"


def load(path: str) -> Settings:
    """Read the settings."""
    return Settings(**json.loads(Path(path).read_bytes()))
