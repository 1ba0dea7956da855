"""Directories and files in HDFS."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.lakehouse import hdfs_path, hdfs_upload
from ansible.module_utils.lakehouse.refused import RefusedError

LOGS = "docker compose logs"


def layout(parameters: dict[str, Any]) -> str:
    """Make and mend directories."""
    try:
        changed = hdfs_path.apply(parameters)
    except RefusedError as error:
        raise RefusedError(error.what, LOGS) from error
    return f"made or mended {', '.join(changed)}" if changed else ""


def upload(parameters: dict[str, Any]) -> str:
    """Write files that are not there yet."""
    try:
        written = hdfs_upload.apply(parameters)
    except RefusedError as error:
        raise RefusedError(error.what, LOGS) from error
    return f"wrote {', '.join(written)}" if written else ""
