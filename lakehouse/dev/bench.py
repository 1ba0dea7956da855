"""The numbers of docs/numbers.yml, measured: times of nodes and of docker compose, idle memory."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

from lakehouse import phases, run, verbs
from lakehouse.artifacts import airgap
from lakehouse.dev import drills, floor, numbers
from lakehouse.errors import LakehouseError
from lakehouse.local import nodes
from lakehouse.local.compose.dotenv import Settings
from lakehouse.local.targets import Target
from lakehouse.model import profile
from lakehouse.model.inventory import load
from lakehouse.phases import Phases
from lakehouse.report import record

# A process may end between the listing and the reading.
MEMORY = "cat /proc/[0-9]*/smaps_rollup 2>/dev/null | awk '/^Pss:/ {sum += $2} END {print sum}'"
# The kit from bare nodes, and what is its measure: the same by plain shell commands.
KIT, FLOOR = "bare nodes to services", "floor"
# What `make bench-tpch` writes.
TPCH = run.BUILD / "bench" / "tpch.json"
# The starts of a stack, in their order.
STARTS = ("core from nothing", "core with data", "all from nothing", "all with data")


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
    sizes = re.findall(r"^(\S+) \| \S+ \| rc=0 >>\n(\d+)", output, re.MULTILINE)
    if len(sizes) != len(load(inventory).hosts):
        raise LakehouseError("the memory of some nodes is unknown", f"less {run.LOGS / 'memory.log'}")
    return {host: int(kib) >> 10 for host, kib in sizes}


def measure(inventory: str, typed: str | None = None) -> int:
    """From no nodes, with a warm cache: write ``build/bench/bench.json`` and return 0.

    The floor's nodes are the last, and none are left. Raises LakehouseError where there are nodes, unless
    their cluster's name was typed, and where the floor does not come up as the kit's cluster did.
    """
    if not verbs.is_local(inventory):
        raise LakehouseError(f"{inventory} has real machines; the benchmark begins by removing the nodes")
    if airgap.folder():
        raise LakehouseError(
            "the floor installs Debian's packages from a mirror, not out of a bundle",
            "make bench without BUNDLE",
        )
    timer = verbs.start()
    verbs.confirm(timer, inventory, typed)
    nodes.down(inventory, timer.log)
    verbs.fetch(timer)
    verbs.up(timer, inventory)
    verbs.converge(timer, inventory, KIT)
    steps = floor.look(inventory)
    changed = verbs.converge(timer, inventory, "second run")
    idle = idle_memory_mib(inventory)
    verbs.load(timer, inventory)
    passed = verbs.smoke(timer, inventory)
    compared, by_stock = compare_with_stock(timer)
    measure_floor(timer, inventory, steps)
    seconds = {phase.name: phase.seconds for phase in phases.read(verbs.PHASES)}
    write(
        run.BUILD / "bench" / "bench.json",
        profile.of(inventory),
        seconds=seconds,
        kit_by_floor=round(seconds[KIT] / seconds[FLOOR], 2),
        times_as_fast_as_stock=by_stock,
        second_run_changed=changed,
        idle_memory_mib={**idle, "total": sum(idle.values())},
    )
    return int(not (passed and compared))


def compare_with_stock(timer: Phases) -> tuple[bool, dict[str, float]]:
    """Compare the cluster with stock settings in a round of TPC-H; return success, and the ratios by engine.

    A ratio is the geometric mean of stock's seconds by the kit's. A cluster without Trino, which creates the
    tables, has none.
    """
    if "trino" not in record.load(run.BUILD / "endpoints.json", "make bench"):
        return True, {}
    if not verbs.timed(timer, "tpch", [sys.executable, "-m", "suites.matrix.tpch.bench", "--rounds", "1"]):
        return False, {}
    results = record.load(TPCH, "make bench-tpch")
    return True, {engine: float(results[engine].text("ratio")) for engine in ("spark", "trino")}


def measure_floor(timer: Phases, inventory: str, steps: floor.Steps) -> None:
    """Make the nodes anew, and of them what the kit had made, by plain shell commands; remove them."""
    with timer.phase("nodes of the floor"):
        nodes.down(inventory, timer.log)
        nodes.up(inventory, timer.log)
    with timer.phase(FLOOR):
        floor.carry_out(steps)
    # They run, and no inventory knows their passwords any more.
    nodes.down(inventory, timer.log)


def measure_compose(settings: Settings) -> int:
    """Measure a separate stack with existing images: write ``build/bench/compose.json``.

    Return 0 if the smoke suite passed. The ports are those of the settings.
    """
    timer = verbs.start()
    small, full = (
        settings.with_values(COMPOSE_PROJECT_NAME=f"{settings.project}-bench", COMPOSE_PROFILES=profile)
        for profile in ("core", "all")
    )
    verbs.compose_image(timer, full)
    try:
        for stack in (small, full):
            verbs.compose_down(full, volumes=True)
            verbs.compose_up(timer, stack)
            Target(stack.inventory, stack).load(timer)
            verbs.compose_down(full, volumes=False)
            verbs.compose_up(timer, stack)
            if stack is small:
                passed = verbs.smoke(timer, stack.inventory, environment=stack.values)
    finally:
        verbs.compose_down(full, volumes=True)
    recorded_phases = phases.read(verbs.PHASES)
    starts = (phase.seconds for phase in recorded_phases if phase.name == "compose")
    write(
        run.BUILD / "bench" / "compose.json",
        "compose",
        seconds={
            **dict(zip(STARTS, starts, strict=True)),
            **{phase.name: phase.seconds for phase in recorded_phases if phase.name in {"images", "smoke"}},
        },
    )
    return int(not passed)


def write(path: Path, subject: str, **result: object) -> None:
    """Write the result of a profile or of compose to its file, to the terminal, and to the numbers."""
    measured = dict(numbers.flat(f"{subject} ", result))
    result = {"measured": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **result}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(path.read_text(encoding="utf-8"))  # noqa: T201 -- the verb's answer
    numbers.record(measured, drills.circumstances())
