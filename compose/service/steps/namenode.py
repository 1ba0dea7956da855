"""The format of the NameNode, behind the guards of the role hdfs_namenode."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.lakehouse import hdfs_format
from ansible.module_utils.lakehouse.hdfs_storage import check, inspect
from ansible.module_utils.lakehouse.refused import RefusedError


def apply(parameters: dict[str, Any]) -> str:
    """Format empty directories, unless a DataNode holds blocks."""
    cluster_id, data_dirs = parameters["cluster_id"], parameters["data_dirs"]
    if check(parameters["name_dirs"], [], cluster_id):
        return ""
    if check([], data_dirs, cluster_id):
        holders = [path for path in data_dirs if inspect(path, name_dir=False).state == "formatted"]
        raise RefusedError(
            f"the NameNode's directories are empty, but DataNodes hold blocks of {cluster_id}"
            f" ({', '.join(holders)}): formatting would orphan them; nothing was touched",
            "restore the NameNode's directory from a backup, or move the DataNodes' directories away",
        )
    hdfs_format.apply(parameters)
    return f"formatted {', '.join(parameters['name_dirs'])} for cluster {cluster_id}"
