"""Manifests of backups for tests."""

from __future__ import annotations

from typing import Any

NAME = "20260102T030405Z"
LABEL = "20260102-030405F"


def manifest(name: str = NAME, label: str = LABEL, **other: Any) -> dict[str, Any]:
    """A whole manifest of no table."""
    return {
        "name": name,
        "cluster": "kit",
        "began": 1.0,
        "ended": 2.0,
        "took": {"files": 0.5},
        "database": {
            "label": label, "restore_point": name, "lsn": "0/16B3748", "at": 1.0, "bytes": 1,
            "version": "17.2 (Debian 17.2-1)",
        },
        "hdfs": {"at": 1.5, "root": "/lakehouse", "snapshot": name},
        "bytes": 2,
        "fetched": 1,
        "files": 1,
        "tables": [],
        **other,
    }  # fmt: skip
