"""What the pipeline does with rows that cannot be loaded, the same file again, and another header."""

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
ASIDE = [
    ["airlines", "1 fields instead of 2", "ZZ"],
    ["airlines", "3 fields instead of 2", "CC,See,extra"],
    ["airlines", "no key: carrier", ",Nobody"],
]
TABLES = {
    "iceberg": "iceberg.kit_bad_rows_iceberg.airlines",
    "delta": "spark_catalog.kit_bad_rows_delta.airlines",
}


@pytest.fixture(scope="module")
def loads(cluster: Inventory, machines: Machines) -> dict[str, Any]:
    """Four loads by the installed pipeline on the cluster: see the program."""
    client = machines[cluster.group("clients")[0].name]
    home, user = client.variable("lakehouse_install_dir"), client.variable("lakehouse_users")["spark"]
    root = f"hdfs://{client.variable('lakehouse_nameservice')}{client.variable('lakehouse_root')}"
    with client.scratch("kit-bad-rows") as folder:
        program = f"{folder}/{PROGRAM.name}"
        client.run("echo %s | base64 -d > %s", base64.b64encode(PROGRAM.read_bytes()).decode(), program)
        submit = "cd / && runuser -u %s -- env PYTHONPATH=%s %s/spark/current/bin/spark-submit %s %s"
        said = client.run(submit, user, home, home, program, f"{root}/kit-bad-rows")
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    return found


def results(rows: int, rejected: int, *, written: bool) -> list[dict[str, Any]]:
    """What the pipeline says of the table in each format."""
    return [
        {"table": table, "rows": rows, "rejected": rejected, "written": written} for table in TABLES.values()
    ]


def test_bad_rows_are_counted_and_set_aside_with_the_reason(loads: dict[str, Any]) -> None:
    first = loads["first"]
    assert first["results"] == results(rows=2, rejected=3, written=True)
    assert first["rows"] == dict.fromkeys(TABLES, GOOD)
    assert first["aside"] == ASIDE


def test_a_second_load_of_the_same_file_writes_nothing(loads: dict[str, Any]) -> None:
    second = loads["second"]
    assert second["results"] == results(rows=2, rejected=3, written=False)
    assert (second["rows"], second["aside"]) == (loads["first"]["rows"], ASIDE)


def test_a_file_with_another_header_is_refused_as_a_whole(loads: dict[str, Any]) -> None:
    swapped = loads["swapped"]
    assert swapped["refusal"].endswith(
        "/kit-bad-rows/airlines.csv begins with 'name,carrier'; expected 'carrier,name'"
    )
    assert (swapped["rows"], swapped["aside"]) == (loads["first"]["rows"], ASIDE)


def test_a_mended_file_replaces_its_rows_and_takes_back_what_was_set_aside(loads: dict[str, Any]) -> None:
    mended = loads["mended"]
    assert mended["results"] == results(rows=3, rejected=0, written=True)
    assert mended["rows"] == {name: [*GOOD, ["ZZ", "Zed"]] for name in TABLES}
    assert mended["aside"] == []
