"""Where the time of a playbook goes, as JSON."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible.executor.stats import AggregateStats
from ansible.executor.task_result import CallbackTaskResult
from ansible.inventory.host import Host
from ansible.playbook import Playbook
from ansible.playbook.play import Play
from ansible.playbook.task import Task
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = r"""
name: timings
type: aggregate
short_description: Seconds per play, role, task and host
description:
  - Writes the seconds of every play, of every role in it, of every task in that, and of every host in the
    task to the JSON file that E(LAKEHOUSE_TIMINGS) names, and does nothing where that is not set.
  - The seconds of a play and of a task run from its first start to its last end on any host; those of a role
    are the sum of its tasks. What a play has over the sum of its roles is Ansible's own time.
requirements:
  - enabled through callbacks_enabled in ansible.cfg
author: The lakehouse kit
"""
VARIABLE = "LAKEHOUSE_TIMINGS"
NO_ROLE = "-"


@dataclass(frozen=True)
class Run:
    """One task on one host; times are in seconds of the monotonic clock."""

    play: str
    role: str
    task: str
    path: str
    uuid: str
    host: str
    status: str
    began: float
    ended: float


class CallbackModule(CallbackBase):
    """Notes when each host begins and ends each task; writes the file when the playbook ends."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "timings"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._target = os.environ.get(VARIABLE)
        self._began = time.monotonic()
        self._playbook = ""
        self._play = ""
        self._running: dict[tuple[str, str], float] = {}
        self._runs: list[Run] = []
        self.disabled = not self._target

    def v2_playbook_on_start(self, playbook: Playbook) -> None:
        """Begin to count."""
        self._began = time.monotonic()
        self._playbook = Path(playbook._file_name).name

    def v2_playbook_on_play_start(self, play: Play) -> None:
        """Remember whose tasks the next ones are."""
        self._play = play.get_name().strip()

    def v2_runner_on_start(self, host: Host, task: Task) -> None:
        """Note that a host begins a task."""
        self._running[host.name, task._uuid] = time.monotonic()

    def v2_runner_on_ok(self, result: CallbackTaskResult) -> None:
        """Note the end of a task that was done."""
        self._end(result, "changed" if result.is_changed() else "ok")

    def v2_runner_on_failed(self, result: CallbackTaskResult, ignore_errors: bool = False) -> None:
        """Note the end of a task that failed."""
        self._end(result, "ignored" if ignore_errors else "failed")

    def v2_runner_on_skipped(self, result: CallbackTaskResult) -> None:
        """Note the end of a task that was not for this host."""
        self._end(result, "skipped")

    def v2_runner_on_unreachable(self, result: CallbackTaskResult) -> None:
        """Note the end of a task whose host did not answer."""
        self._end(result, "unreachable")

    def v2_playbook_on_stats(self, stats: AggregateStats) -> None:  # noqa: ARG002 (Ansible's signature)
        """Write the file."""
        report = {
            "playbook": self._playbook,
            "seconds": round(time.monotonic() - self._began, 3),
            "plays": _plays(self._runs),
        }
        target = Path(str(self._target))
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            self._display.warning(f"{VARIABLE}={target} cannot be written: {error.strerror}")

    def _end(self, result: CallbackTaskResult, status: str) -> None:
        task, host, end = result.task, result.host.name, time.monotonic()
        run = Run(
            play=self._play,
            role=task._role.get_name() if task._role else NO_ROLE,
            task=task.name or task.action,
            path=os.path.relpath(task.get_path()) if task.get_path() else "",
            uuid=task._uuid,
            host=host,
            status=status,
            began=self._running.pop((host, task._uuid), end),
            ended=end,
        )
        self._runs.append(run)


def _plays(runs: list[Run]) -> list[dict[str, Any]]:
    return [
        {"name": name, "seconds": _span(group), "roles": _roles(group)}
        for name, group in _grouped(runs, lambda run: run.play).items()
    ]


def _roles(runs: list[Run]) -> list[dict[str, Any]]:
    roles = []
    for name, group in _grouped(runs, lambda run: run.role).items():
        tasks = [_task(same) for same in _grouped(group, lambda run: run.uuid).values()]
        # A role may be entered several times with others in between: its span would count those too.
        seconds = round(sum(task["seconds"] for task in tasks), 3)
        roles.append({"name": name, "seconds": seconds, "tasks": tasks})
    return roles


def _task(runs: list[Run]) -> dict[str, Any]:
    hosts = {run.host: {"seconds": round(run.ended - run.began, 3), "status": run.status} for run in runs}
    return {"name": runs[0].task, "path": runs[0].path, "seconds": _span(runs), "hosts": hosts}


def _grouped(runs: list[Run], key: Callable[[Run], str]) -> dict[str, list[Run]]:
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return groups


def _span(runs: list[Run]) -> float:
    return round(max(run.ended for run in runs) - min(run.began for run in runs), 3)
