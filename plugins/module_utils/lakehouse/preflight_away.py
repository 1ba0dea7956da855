"""Whether a verb has taken the host out of service, or is changing the cluster at this moment.

Standard library only, and Python 3.9: this runs on the nodes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Container
from pathlib import Path

from ansible.module_utils.lakehouse import away
from ansible.module_utils.lakehouse.findings import finding
from ansible.module_utils.lakehouse.holder import FILE, SILENT_SECONDS


def check_away(folder: Path, host: str, hosts: Container[str] = ()) -> list[dict[str, str]]:
    """Check that neither the host nor one of `hosts` in its notes is in maintenance mode or removed.

    `folder` is that of the configuration.
    """
    mark_file, notes_file = folder / away.FILE, folder / away.NOTES
    try:
        mark = away.read(_text(path := mark_file))
        marks = away.notes(_text(path := notes_file))
    except ValueError as error:
        return [finding("host.away", f"{path}: {error}", "look at it, or move it away")]
    other_hosts = [{**_away(note, name), "host": name} for name, note in marks.items() if name in hosts]
    return ([_away(mark, host)] if mark else []) + other_hosts


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _away(mark: away.Mark, host: str) -> dict[str, str]:
    return_command = f".venv/bin/lakehouse {away.way_back(mark, host)}"
    return finding("host.away", away.told(mark), return_command, away.EXPECTED[mark["state"]])


def check_lock(root: Path, run: str) -> list[dict[str, str]]:
    """Check that no other run than `run` changes the cluster; `root` is the top of the file system.

    The lock of a holder that seems to be dead is no fault: what it has left undone, a playbook completes.
    """
    path = root / FILE
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
        silent = time.time() - path.stat().st_mtime
    except (FileNotFoundError, ValueError):  # given back, or never whole
        return []
    if holder["run"] == run or silent > SILENT_SECONDS:
        return []
    fact = f"{holder['run']} {holder['verb']} of {holder['user']} on {holder['machine']} changes the cluster"
    return [finding("host.locked", fact, "wait for its end: .venv/bin/lakehouse runs", "nobody else")]
