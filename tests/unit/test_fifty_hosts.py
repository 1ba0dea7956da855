"""The configuration of fifty hosts is rendered in the time that docs/benchmarks.md promises."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from lakehouse.dev import numbers
from tests.render import rendering

pytestmark = pytest.mark.longdrill

HOSTS = 50
# The first two have what there is once, all others every service of a worker.
WORKERS = ("datanodes", "spark_workers", "trino_workers", "flink_taskmanagers")
SECONDS = numbers.most("render of 50 hosts")
MACHINE = {"node_memory_mb": 256 * 1024, "node_cores": 64}


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    """Write an inventory of fifty hosts after `inventory/three-node`, with its secrets."""
    copied = rendering.copy(Path("inventory/three-node"), tmp_path)
    groups = yaml.safe_load((copied / "hosts.yml").read_text(encoding="utf-8"))
    names = [f"node{number:02}" for number in range(1, HOSTS + 1)]
    for name in WORKERS:
        groups[name]["hosts"] = dict.fromkeys(names[2:])
    for name in groups.keys() - {*WORKERS, "all"}:
        groups[name]["hosts"] = {names[name in {"clients", "flink_jobmanager"}]: None}
    groups["all"]["hosts"] = {
        name: {"ansible_host": f"10.0.0.{number}", **MACHINE} for number, name in enumerate(names, 1)
    }
    (copied / "hosts.yml").write_text(yaml.safe_dump(groups), encoding="utf-8")
    return copied


def test_fifty_hosts_are_rendered_in_time(
    inventory: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    began = time.monotonic()
    rendering.render(inventory, tmp_path / "rendered", *rendering.NO_SECRETS)
    seconds = time.monotonic() - began
    record_property("note", f"{seconds:.0f} s")
    assert len(list((tmp_path / "rendered").iterdir())) == HOSTS
    assert seconds <= SECONDS
