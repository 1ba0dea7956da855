"""The settings of the timeline, which the role writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """The cluster's name, the command lines of psql for both databases, and the address of HDFS."""

    cluster: str
    metastore_psql: list[str]
    psql: list[str]
    namenode: str
    superuser: str
    keep_days: int
    # After so many seconds the last look is old.
    alert_seconds: int
    # URLs by name.
    subscribers: Mapping[str, str] = field(default_factory=dict)
    # The file of metrics for the exporter of the host; none is written if empty.
    metrics: str = ""


def load(path: str) -> Settings:
    """Read the settings."""
    return Settings(**json.loads(Path(path).read_bytes()))
