"""The numbers that the README promises, measured: nodes to services, second run, idle memory."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

from lakehouse import nodes, phases, run, verbs
from lakehouse.errors import LakehouseError
from lakehouse.inventory import load

# A process may end between the listing and the reading.
MEMORY = "cat /proc/[0-9]*/smaps_rollup 2>/dev/null | awk '/^Pss:/ {sum += $2} END {print sum}'"


def idle_memory_mib(inventory: str) -> dict[str, int]:
    """Proportional set size of every process of each node, in MiB (Pss counts a shared page once)."""
    argv = [
        run.program("ansible"),
        "all",
        "-i",
        inventory,
        "--become",
        "-m",
        "ansible.builtin.shell",
        "-a",
        MEMORY,
    ]
    output = run.logged(argv, run.LOGS / "memory.log")
    found = re.findall(r"^(\S+) \| \S+ \| rc=0 >>\n(\d+)", output, re.MULTILINE)
    if len(found) != len(load(inventory).hosts):
        raise LakehouseError("the memory of some nodes is unknown", f"less {run.LOGS / 'memory.log'}")
    return {host: int(kib) >> 10 for host, kib in found}


def measure(inventory: str) -> int:
    """From no nodes, with a warm cache: write ``build/bench/bench.json`` and return 0."""
    if not verbs.is_local(inventory):
        raise LakehouseError(f"{inventory} has real machines; the benchmark begins by removing the nodes")
    timer = verbs.start()
    nodes.down(inventory, timer.log)
    verbs.fetch(timer)
    verbs.up(timer, inventory)
    verbs.converge(timer, inventory, "bare nodes to services")
    changed = verbs.converge(timer, inventory, "second run")
    idle = idle_memory_mib(inventory)
    verbs.load(timer, inventory)
    verbs.smoke(timer, inventory)
    write(run.BUILD / "bench" / "bench.json", changed, idle)
    return 0


def write(path: Path, changed: int, idle: dict[str, int]) -> None:
    """The result as data: seconds by phase, tasks that the second run changed, MiB by node."""
    seconds = {phase.name: phase.seconds for phase in phases.read(verbs.PHASES)}
    result = {
        "measured": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": seconds,
        "second_run_changed": changed,
        "idle_memory_mib": {**idle, "total": sum(idle.values())},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(path.read_text(encoding="utf-8"))  # noqa: T201 -- the verb's answer
