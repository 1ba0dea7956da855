from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lakehouse.errors import LakehouseError
from suites.testbed import endpoints

ENDPOINTS: dict[str, Any] = {
    "inventory": "inventory/other",
    "cluster": "other",
    "nameservice": "lake2",
    "root": "/data",
    "warehouse": "hdfs://lake2/data",
    "replication": 2,
    "group": "lakers",
    "hosts": {
        "alpha": {"address": "10.1.0.1", "groups": ["namenode", "datanodes"]},
        "beta": {"address": "10.1.0.2", "groups": ["datanodes"]},
    },
    "namenode": {"host": "alpha", "http": "http://10.1.0.1:50070", "rpc_port": 8020},
    "metastore": {"host": "alpha", "address": "10.1.0.1", "port": 9183},
    "postgresql": {"host": "beta", "port": 5433, "database": "hms", "role": "hive"},
    "spark": {
        "master": "spark://alpha:7177",
        "home": "/srv/spark",
        "conf_dir": "/srv/conf",
        "client": "beta",
    },
    "spark_connect": {"host": "beta", "url": "sc://10.1.0.2:15102", "unit": "spark-connect"},
    "units": {"namenode": "hdfs-namenode"},
    "users": {"hdfs": "hdfs", "hive": "hms", "spark": "etl"},
}


def written(folder: Path, endpoints: dict[str, Any]) -> Path:
    path = folder / "endpoints.json"
    path.write_text(json.dumps(endpoints))
    return path


def test_everything_is_read(tmp_path: Path) -> None:
    found = endpoints.load(written(tmp_path, ENDPOINTS))
    assert [host.name for host in found.in_group("datanodes")] == ["alpha", "beta"]
    assert found.postgresql == endpoints.Service("beta", "10.1.0.2", 5433)
    assert found.spark.connect_url == "sc://10.1.0.2:15102"
    assert found.flink is None
    assert found.project is None
    assert found.report == tmp_path / "report"


def test_an_engine_that_is_deployed_has_its_addresses(tmp_path: Path) -> None:
    flink = {"host": "beta", "rest": "http://b:1", "sql_gateway": "http://b:2", "history": "http://b:3"}
    found = endpoints.load(written(tmp_path, ENDPOINTS | {"flink": flink}))
    assert found.flink == endpoints.Flink("beta", "http://b:1", "http://b:2", "http://b:3")


def test_containers_have_a_project_and_not_every_service(tmp_path: Path) -> None:
    flink = {"host": "beta", "rest": "http://b:1", "sql_gateway": "http://b:2", "history": None}
    found = endpoints.load(written(tmp_path, ENDPOINTS | {"compose_project": "lake", "flink": flink}))
    assert found.project == "lake"
    assert found.flink == endpoints.Flink("beta", "http://b:1", "http://b:2", None)


@pytest.mark.parametrize(
    ("address", "name"),
    [("10.1.0.2:9866", "beta"), ("beta:9866", "beta"), ("10.9.9.9:9866", "10.9.9.9:9866")],
)
def test_a_datanode_is_called_by_its_machine(tmp_path: Path, address: str, name: str) -> None:
    assert endpoints.load(written(tmp_path, ENDPOINTS)).name_of(address) == name


@pytest.mark.parametrize(
    ("client", "datanodes", "spare"),
    [
        ("beta", ("alpha", "beta", "gamma"), "gamma"),
        ("gamma", ("alpha", "beta", "gamma"), "beta"),
        ("alpha", ("alpha", "beta"), "beta"),
        ("beta", ("alpha", "beta"), "beta"),
    ],
)
def test_a_datanode_to_stop_is_found_on_every_cluster(
    tmp_path: Path, client: str, datanodes: tuple[str, ...], spare: str
) -> None:
    hosts = {name: {"address": f"10.1.0.{n}", "groups": ["datanodes"]} for n, name in enumerate(datanodes)}
    connect = ENDPOINTS["spark_connect"] | {"host": client}
    found = endpoints.load(
        written(tmp_path, ENDPOINTS | {"hosts": ENDPOINTS["hosts"] | hosts, "spark_connect": connect})
    )
    assert found.spare_datanode.name == spare


def test_an_engine_that_is_not_deployed_is_none(tmp_path: Path) -> None:
    coordinator = {"host": "beta", "http": "http://10.1.0.2:8090"}
    with_trino = endpoints.load(written(tmp_path, ENDPOINTS | {"trino": coordinator}))
    assert with_trino.trino == endpoints.Trino("beta", "http://10.1.0.2:8090")
    assert endpoints.load(written(tmp_path, ENDPOINTS | {"trino": None})).trino is None


def test_a_missing_file_says_what_writes_it(tmp_path: Path) -> None:
    with pytest.raises(LakehouseError, match=r"endpoints\.json is missing; next: make lakehouse"):
        endpoints.load(tmp_path / "endpoints.json")


def test_a_missing_key_is_named(tmp_path: Path) -> None:
    broken = {**ENDPOINTS, "metastore": {"host": "alpha", "address": "10.1.0.1"}}
    with pytest.raises(LakehouseError, match=r"metastore.*lacks 'port'"):
        endpoints.load(written(tmp_path, broken))
