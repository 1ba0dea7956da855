"""Seconds by number of nodes: preflight, render, the first converge and one that changes nothing.

    python -m lakehouse.dev.scale 3 6 12

The nodes are containers of a cluster of its own: the first three are those of `inventory/local` with the
small profile, each of the others has a DataNode and a Spark worker. They are made anew for each number and
removed at the end.
Writes `build/bench/scale.json`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

from lakehouse import run, verbs
from lakehouse.dev.bench import write
from lakehouse.errors import LakehouseError
from lakehouse.interruption import raised, terminated
from lakehouse.local import nodes
from lakehouse.phases import Phases

LOCAL = run.ROOT / "inventory" / "local"
# Where `../../.state` is the checkout's own, as for the inventories that are shipped.
INVENTORY = run.BUILD / "scale"
CLUSTER = "lakehouse-scale"
SUBNET = "172.28.9"
ADDED_GROUPS = ("datanodes", "spark_workers")
# What leaves room on a computer of 24 GiB for a cluster that runs already.
LEAST_FREE_MIB = 4096
# Smaller than preflight lets a node be for users: a DataNode and a Spark worker are all that it has.
ADDED_NODE = {"node_memory_mb": 2048, "node_min_memory_mb": 1536, "node_cores": 1}


def inventory(count: int, local: dict[str, Any]) -> dict[str, Any]:
    """Return the hosts and groups of `inventory/local` with other addresses and `count` nodes."""
    addresses = (f"{SUBNET}.{number}" for number in range(11, 11 + count))
    hosts: dict[str, dict[str, Any]] = {name: {} for name in local["all"]["hosts"]}
    added = [f"added{number}" for number in range(len(hosts) + 1, count + 1)]
    hosts |= {name: dict(ADDED_NODE) for name in added}
    groups = {
        group: {"hosts": dict.fromkeys([*members["hosts"], *(added if group in ADDED_GROUPS else [])])}
        for group, members in local.items()
        if group != "all"
    }
    placed = {
        name: {"ansible_host": address} | variables
        for (name, variables), address in zip(hosts.items(), addresses, strict=True)
    }
    return {"all": {"hosts": placed}, **groups}


def written(count: int) -> str:
    """Write the inventory of `count` nodes; return its path."""
    shutil.rmtree(INVENTORY, ignore_errors=True)
    shutil.copytree(LOCAL, INVENTORY)
    hosts = inventory(count, yaml.safe_load((LOCAL / "hosts.yml").read_text(encoding="utf-8")))
    (INVENTORY / "hosts.yml").write_text(yaml.safe_dump(hosts), encoding="utf-8")
    variables = {
        "lakehouse_cluster": CLUSTER,
        "lakehouse_cluster_id": f"CID-{CLUSTER}",
        "lakehouse_profile": "core",
        "local_nodes_subnet": f"{SUBNET}.0/24",
    }
    # The last file of a folder of variables wins.
    (INVENTORY / "group_vars" / "all" / "zz-scale.yml").write_text(
        yaml.safe_dump(variables), encoding="utf-8"
    )
    return str(INVENTORY)


def measured(count: int) -> dict[str, float]:
    """Make that many nodes, measure, and remove them."""
    path = written(count)
    rendered = f"lakehouse_render_dir={run.BUILD / 'scale-render'}"
    nodes.down(path, _say)
    try:
        nodes.up(path, _say)
        return {
            "preflight": _seconds(lambda: run.playbook("preflight", path, log="scale-preflight")),
            "render": _seconds(lambda: run.playbook("render", path, "-e", rendered, log="scale-render")),
            "converge": _seconds(lambda: run.playbook("site", path, log="scale-site")),
            "second run": _seconds(lambda: run.playbook("site", path, log="scale-again")),
            "tasks": float(_tasks(run.BUILD / "bench" / "scale-again.json")),
        }
    finally:
        nodes.down(path, _say)


def _tasks(timings: Path) -> int:
    """How many tasks a playbook had."""
    report = json.loads(timings.read_text(encoding="utf-8"))
    return sum(len(role["tasks"]) for play in report["plays"] for role in play["roles"])


def _seconds(work: Callable[[], object]) -> float:
    started = time.monotonic()
    work()
    return round(time.monotonic() - started, 1)


def free_mib() -> int:
    """Memory that programs may still take, in MiB (MemAvailable)."""
    lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    values = dict(line.split(":", 1) for line in lines)
    return int(values["MemAvailable"].split()[0]) >> 10


def refuse_too_many(count: int) -> None:
    """Raise LakehouseError where nodes of a GiB each would leave too little memory to all other processes."""
    if free_mib() < LEAST_FREE_MIB + 1024 * count:
        raise LakehouseError(
            f"{count} nodes need {count} GiB and leave less than 4 GiB of this computer's memory",
            "stop what else runs, or ask for fewer nodes",
        )


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 -- the run takes many minutes


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("counts", nargs="+", type=int)
    result = {}
    # Its end ends the nodes too.
    with raised(terminated, [signal.SIGTERM]):
        verbs.fetch(Phases(run.BUILD / "bench" / "scale-phases.json"), core=True)
        try:
            for count in parser.parse_args(argv).counts:
                refuse_too_many(count)
                result[str(count)] = measured(count)
                _say(f"{count} nodes: {result[str(count)]}")
        except LakehouseError as error:
            _say(str(error))
        finally:
            shutil.rmtree(INVENTORY, ignore_errors=True)
    write(run.BUILD / "bench" / "scale.json", "scale", seconds=result)
    return int(not result)


if __name__ == "__main__":
    sys.exit(main())
