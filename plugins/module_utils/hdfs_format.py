"""The format of a NameNode that was never formatted."""

from __future__ import annotations

import subprocess
from typing import Any

from ansible.module_utils.hdfs_storage import inspect
from ansible.module_utils.refused import RefusedError

LOG_LINES = 20


def apply(parameters: dict[str, Any], *, check: bool = False) -> None:
    """Run the command that the module hdfs_format is given, if all the directories are empty."""
    used = [path for path in parameters["name_dirs"] if inspect(path, name_dir=True).state != "empty"]
    if used:
        raise RefusedError(f"not empty, so not formatted: {', '.join(used)}", f"ls -lR {used[0]}")
    if check:
        return
    done = subprocess.run(parameters["argv"], capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise RefusedError(
            f"formatting failed: {lines[-1] if lines else done.returncode}", log=lines[-LOG_LINES:]
        )
