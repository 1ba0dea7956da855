"""The format of a NameNode that was never formatted."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from ansible.module_utils.lakehouse import programs
from ansible.module_utils.lakehouse.hdfs_storage import MAKING, inspect
from ansible.module_utils.lakehouse.refused import RefusedError

LOG_LINES = 20
FORMAT_SECONDS = 300


def apply(parameters: dict[str, Any], *, check: bool = False) -> None:
    """Format the directories that the module hdfs_format is given, if all of them are empty.

    What is made is moved into place when it is complete: an interrupted format leaves empty directories, and
    the NameNode itself completes those that lack the move.
    """
    used = [path for path in parameters["name_dirs"] if inspect(path, name_dir=True).state != "empty"]
    if used:
        raise RefusedError(f"not empty, so not formatted: {', '.join(used)}", f"ls -lR {used[0]}")
    if check:
        return
    making = [Path(path) / MAKING for path in parameters["name_dirs"]]
    for path in making:
        shutil.rmtree(path, ignore_errors=True)
    _run(
        [
            *parameters["command"],
            f"-Ddfs.namenode.name.dir={','.join(path.as_uri() for path in making)}",
            *("-format", "-nonInteractive", "-clusterId", parameters["cluster_id"]),
        ]
    )
    for path in making:
        (path / "current").rename(path.parent / "current")
        shutil.rmtree(path)


def _run(argv: list[str]) -> None:
    process = programs.run(argv, seconds=FORMAT_SECONDS, next_command="df -h, uptime; rerun")
    if process.returncode:
        lines = (process.stdout + process.stderr).strip().splitlines()
        raise RefusedError(
            f"formatting failed: {lines[-1] if lines else process.returncode}", log=lines[-LOG_LINES:]
        )
