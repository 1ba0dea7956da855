"""The settings of the Python clients: a node's file, or the endpoints of the control machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from lakehouse_clients import ClientError, connect, settings
from lakehouse_clients.settings import Settings

NODE = {
    "metastore": "thrift://beta2:19083",
    "warehouse": "hdfs://proving/ground",
    "group": "dataplatform",
    "hadoop_conf_dir": "/etc/proving/hadoop",
}
ENDPOINTS = {
    "nameservice": "proving",
    "namenode": {"host": "alpha1", "rpc_port": 18020},
    "hosts": {"alpha1": {"address": "172.29.7.21"}},
    "metastore": {"address": "172.29.7.22", "port": 19083},
    "warehouse": "hdfs://proving/ground",
    "replication": 3,
    "group": "dataplatform",
    "users": {"spark": "compute"},
}


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (settings.VARIABLE, settings.USER_VARIABLE, settings.ENDPOINTS_VARIABLE, "HADOOP_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)


def written(folder: Path, data: Any) -> Path:
    path = folder / "client.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def test_a_node_is_described_by_its_file(tmp_path: Path) -> None:
    assert settings.load(written(tmp_path, NODE), user="ada") == Settings(
        "thrift://beta2:19083", "hdfs://proving/ground", "ada", "dataplatform", "/etc/proving/hadoop", {}
    )


def test_outside_of_the_cluster_addresses_take_the_place_of_names(tmp_path: Path) -> None:
    found = settings.load(written(tmp_path, ENDPOINTS))
    assert found.metastore == "thrift://172.29.7.22:19083"
    assert found.user == "compute"
    assert found.hdfs["dfs.namenode.rpc-address.proving.nn1"] == "172.29.7.21:18020"
    assert found.hadoop_conf_dir is None
    assert found.hdfs["dfs.client.use.datanode.hostname"] == "false"
    assert "alpha1" not in str(found)


def test_containers_are_reached_by_their_names(tmp_path: Path) -> None:
    found = settings.load(written(tmp_path, ENDPOINTS | {"compose_project": "lake"}))
    assert found.hdfs["dfs.client.use.datanode.hostname"] == "true"


def test_the_user_is_the_wished_one_then_the_environment_s_then_the_file_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, NODE | {"user": "file"})
    assert settings.load(path).user == "file"
    monkeypatch.setenv(settings.USER_VARIABLE, "environment")
    assert settings.load(path).user == "environment"
    assert settings.load(path, user="named").user == "named"


def test_the_launcher_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.VARIABLE, str(written(tmp_path, NODE)))
    assert settings.load().metastore == "thrift://beta2:19083"


def test_no_file_says_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ClientError, match=r"build/endpoints\.json: no such file; next: .*lakehouse-python"):
        settings.load()


@pytest.mark.parametrize(("text", "words"), [("{", "cannot be read"), ("{}", "lacks 'metastore'")])
def test_a_wrong_file_is_named(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "client.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ClientError, match=rf"client\.json: {words}.*; next: "):
        settings.load(path)


def test_a_process_has_one_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.USER_VARIABLE, "")
    monkeypatch.delenv(settings.USER_VARIABLE)
    monkeypatch.setenv("HADOOP_CONF_DIR", "")
    path = written(tmp_path, NODE)
    monkeypatch.setenv(settings.USER_VARIABLE, "ada")
    assert connect(path).settings.user == "ada"
    with pytest.raises(ClientError, match="speaks to HDFS as ada and cannot be bob too"):
        connect(path, user="bob")
