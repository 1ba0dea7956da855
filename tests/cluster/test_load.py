"""What the load does with rows that cannot be loaded, the same file again, and another header."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from lakehouse.model.inventory import Inventory
from tests.cluster.machines import Machines

pytestmark = pytest.mark.cluster

PROGRAM = Path(__file__).with_name("bad_rows.py")
GOOD = [["AA", "American"], ["BB", "Bee"]]
TABLES = {
    "iceberg": "iceberg.kit_bad_rows_iceberg.airlines",
    "delta": "spark_catalog.kit_bad_rows_delta.airlines",
}


@pytest.fixture(scope="module")
def loads(cluster: Inventory, machines: Machines) -> dict[str, Any]:
    """Five loads by the installed pipeline on the cluster: see the program."""
    client = machines[cluster.group("clients")[0].name]
    home, user = client.variable("lakehouse_install_dir"), client.variable("lakehouse_users")["spark"]
    root = f"hdfs://{client.variable('lakehouse_nameservice')}{client.variable('lakehouse_root')}"
    with client.scratch("kit-bad-rows") as folder:
        program = f"{folder}/{PROGRAM.name}"
        client.run("echo %s | base64 -d > %s", base64.b64encode(PROGRAM.read_bytes()).decode(), program)
        submit = "cd / && runuser -u %s -- env PYTHONPATH=%s %s/spark/current/bin/spark-submit %s %s"
        modules = f"{home}/lakehouse-pipeline"
        said = client.run(submit, user, modules, home, program, f"{root}/kit-bad-rows")
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    return found


def results(rows: int, *, written: bool) -> list[dict[str, Any]]:
    """What the load says of the table in each format."""
    return [{"table": table, "rows": rows, "written": written} for table in TABLES.values()]


def test_a_file_is_loaded_once(loads: dict[str, Any]) -> None:
    rows = dict.fromkeys(TABLES, GOOD)
    assert loads["first"] == {"refused": False, "results": results(2, written=True), "rows": rows}
    assert loads["second"] == {"refused": False, "results": results(2, written=False), "rows": rows}


@pytest.mark.parametrize("file", ["bad", "swapped"])
def test_a_file_with_a_bad_row_or_another_header_is_refused_as_a_whole(
    loads: dict[str, Any], file: str
) -> None:
    assert loads[file] == {"refused": True, "results": [], "rows": loads["first"]["rows"]}


def test_a_changed_file_replaces_its_rows(loads: dict[str, Any]) -> None:
    assert loads["longer"]["results"] == results(3, written=True)
    assert loads["longer"]["rows"] == {name: [*GOOD, ["ZZ", "Zed"]] for name in TABLES}
