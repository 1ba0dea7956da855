"""A host compared with its manifest: what is on it, and whether its units run and answer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ansible.module_utils.lakehouse import host_state, programs, units
from ansible.module_utils.lakehouse.probes import ask
from ansible.module_utils.lakehouse.refused import RefusedError

_SYSTEMCTL_SECONDS = 60


def compared(path: str) -> tuple[list[str], str]:
    """Return a line for each difference, and the inputs from which the manifest was written."""
    try:
        document = host_state.read(path)
    except ValueError as error:
        return [f"{path} {error}"], ""
    items = list(document["items"].values())
    units_of_kit = [item for item in items if item["kind"] == "unit"]
    # Trino answers a query in about a second: all units are asked at once.
    with ThreadPoolExecutor(max_workers=len(units_of_kit) or 1) as pool:
        answers = [pool.submit(_unit, item) for item in units_of_kit]
        lines = list(host_state.differences(items))
        lines += [line for answer in answers for line in answer.result()]
    return lines, str(document["inputs"])


def _unit(item: dict[str, Any]) -> list[str]:
    """Return what a unit lacks; what cannot be compared is a difference, which the roles may repair."""
    try:
        return unit_differences(item)
    except (OSError, LookupError, ValueError, TypeError, RefusedError) as error:
        return [f"unit {item['name']} {host_state.UNCOMPARED}: {error}"]


def unit_differences(item: dict[str, Any]) -> list[str]:
    """Return what a unit lacks: its state by systemd, its sockets, and right answers."""
    name = item["name"]
    show = programs.run(
        ["systemctl", "--no-pager", *units.question(name)],
        seconds=_SYSTEMCTL_SECONDS,
        next_command=f"systemctl status {name}",
    )
    properties = units.properties(show.stdout.splitlines())
    enabled = item.get("enabled", True)
    if not enabled and properties["LoadState"] == "not-found":
        return []
    stale = units.is_stale(properties, item.get("files", []))
    if not units.is_as_desired(properties, enabled=enabled, stale=stale):
        states = (properties[name] for name in ("LoadState", "ActiveState", "UnitFileState"))
        unread = "its file not read by systemd" if properties["NeedDaemonReload"] == "yes" else ""
        words = ", ".join(word for word in (*states, unread) if word)
        return [f"unit {name} is {words}{', older than a file that it reads' if stale else ''}"]
    if not enabled:
        return []
    if units.is_deaf(properties, item.get("listens", [])):
        return [f"unit {name} has a socket that takes no connection"]
    answers = (ask(probe) for probe in item.get("ready", []))
    return [f"unit {name} is not ready: {answer}" for answer in answers if answer is not None][:1]
