"""Whether the data directories of this machine are empty or ours; a foreign one is never touched."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.lakehouse import orphaned_data
from ansible.module_utils.lakehouse.findings import finding
from ansible.module_utils.lakehouse.hdfs_storage import inspect, read_version

DATA_DIRECTORY = re.compile(r"^\s*data_directory\s*=\s*'([^']*)'", re.MULTILINE)
UNTOUCHED = "the data is not touched"


def check_hdfs(path: str, cluster_id: str, *, name_dir: bool) -> list[dict[str, str]]:
    """Check a directory of the NameNode or of a DataNode."""
    storage = inspect(path, name_dir=name_dir)
    if storage.cluster_id not in (None, cluster_id):
        fact = f"{path} belongs to cluster {storage.cluster_id}"
        advice = f"{UNTOUCHED}; move it away, or set lakehouse_cluster_id: {storage.cluster_id}"
        return [finding("hdfs.cluster_id", fact, advice, cluster_id)]
    if storage.state != "incomplete":
        return []
    if storage.cluster_id is None:
        advice = f"{UNTOUCHED}; see what is in it (ls -lR {path}), then move it away"
        return [
            finding(
                "hdfs.foreign", f"{path} holds files, but no VERSION", advice, "empty, or an HDFS directory"
            )
        ]
    advice = f"{UNTOUCHED}; restore the image from a backup, or move the directory away to format again"
    return [finding("hdfs.format", f"{path} has a VERSION without fsimage", advice, "a finished format")]


def check_postgresql(root: Path, path: str, cluster: str) -> list[dict[str, str]]:
    """Check that Debian's cluster (``17/main``) is not there yet, or keeps its data below ``path``."""
    configuration = root / "etc/postgresql" / cluster / "postgresql.conf"
    if not configuration.is_file():
        return []
    match = DATA_DIRECTORY.search(configuration.read_text(encoding="utf-8"))
    current = match[1] if match else "an unknown place"
    if current.startswith(f"{path}/"):
        return []
    advice = f"{UNTOUCHED}; rename that cluster (pg_renamecluster), or use another machine"
    return [
        finding(
            "postgresql.data", f"cluster {cluster} of this machine is in {current}", advice, f"below {path}"
        )
    ]


def check_storage(
    root: Path, services: list[dict[str, Any]], cluster_id: str, forsaken: Sequence[str] = ()
) -> list[dict[str, str]]:
    """Check the ``storage`` of every service that has some, and the data that it would orphan."""
    findings = []
    for service in (service for service in services if service.get("storage")):
        storage = service["storage"]
        for path in storage.get("paths", []):
            if storage["kind"] == "postgresql":
                findings += check_postgresql(root, path, storage["cluster"])
            else:
                findings += check_hdfs(path, cluster_id, name_dir=storage["kind"] == "hdfs_name")
        findings += orphaned_data.check(root, service, forsaken, cluster_id)
    return findings


def _paths(services: list[dict[str, Any]], kind: str) -> list[str]:
    stored = [service["storage"] for service in services if service.get("storage")]
    return [path for storage in stored if storage["kind"] == kind for path in storage["paths"]]


def formats(services: list[dict[str, Any]]) -> bool:
    """Whether a NameNode is to run here whose directories are all empty."""
    states = {inspect(path, name_dir=True).state for path in _paths(services, "hdfs_name")}
    return states == {"empty"}


def datanodes(services: list[dict[str, Any]]) -> list[str]:
    """Return the uuids of the DataNodes with data on this machine, normally one."""
    files = (Path(path) / "current" / "VERSION" for path in _paths(services, "hdfs_data"))
    uuids = {read_version(file).get("datanodeUuid", "") for file in files if file.is_file()}
    return sorted(uuids - {""})
