"""What is installed names the old place: a configuration that would leave its data behind is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.lakehouse import credentials, orphaned_data
from ansible.module_utils.lakehouse.hdfs_storage import DATA_LAYOUT, NAME_LAYOUT
from ansible.module_utils.lakehouse.refused import RefusedError

OURS = "CID-ours"
Put = Callable[[str, str], None]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Return a function that writes a file of the machine."""

    def write(path: str, text: str) -> None:
        target = tmp_path / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    return write


def xml(**properties: str) -> str:
    body = "".join(
        f"<property><name>{name.replace('__', '.')}</name><value>{value}</value></property>"
        for name, value in properties.items()
    )
    return f"<configuration>{body}</configuration>"


@pytest.fixture
def hdfs(put: Put) -> Put:
    """A machine with both daemons installed, which keep their data in /old/nn and /old/dn."""
    for unit, key in (("namenode", "dfs__namenode__name__dir"), ("datanode", "dfs__datanode__data__dir")):
        put(
            f"/etc/systemd/system/hdfs-{unit}.service",
            f"[Service]\nExecStart=java -cp /conf/{unit}:/lib/* Main\n",
        )
        put(f"/conf/{unit}/hdfs-site.xml", xml(**{key: f"file:///old/{unit[0]}n"}))
    put("/conf/hdfs-site.xml", xml(dfs__namenode__name__dir="file:///nobody/reads/this"))
    formatted(put, "/old/nn")
    put("/old/dn/current/VERSION", f"clusterID={OURS}\nlayoutVersion={DATA_LAYOUT}\n")
    return put


def formatted(put: Put, path: str, pool: str = "BP-1") -> None:
    put(f"{path}/current/VERSION", f"clusterID={OURS}\nblockpoolID={pool}\nlayoutVersion={NAME_LAYOUT}\n")
    put(f"{path}/current/fsimage_0000000000000000000", "")


def found(root: Path, kind: str, *desired: str, forsaken: tuple[str, ...] = ()) -> list[dict[str, str]]:
    unit = {"hdfs_name": "hdfs-namenode.service", "hdfs_data": "hdfs-datanode.service"}[kind]
    service = {"unit": unit, "storage": {"kind": kind, "paths": list(desired)}}
    return list(orphaned_data.check(root, service, list(forsaken), OURS))


@pytest.mark.usefixtures("hdfs")
@pytest.mark.parametrize(("kind", "old"), [("hdfs_name", "/old/nn"), ("hdfs_data", "/old/dn")])
def test_directories_that_moved_in_the_inventory_alone(tmp_path: Path, kind: str, old: str) -> None:
    (finding,) = found(tmp_path, kind, "/new")
    assert finding["fact"].startswith(f"{old} holds the data of hdfs-")
    assert finding["fact"].endswith("_dirs names /new instead")
    assert f"lakehouse_forsaken: ['{old}']" in finding["action"]
    assert found(tmp_path, kind, "/new", forsaken=(old,)) == []
    assert found(tmp_path, kind, "/new", old) == []


def test_a_machine_where_nothing_is_installed(tmp_path: Path) -> None:
    assert found(tmp_path, "hdfs_name", "/new") == found(tmp_path, "hdfs_data", "/new") == []


@pytest.mark.usefixtures("hdfs")
def test_an_old_place_that_was_moved_away(tmp_path: Path) -> None:
    (tmp_path / "old").rename(tmp_path / "new")
    assert found(tmp_path, "hdfs_name", "/new/nn") == found(tmp_path, "hdfs_data", "/new/dn") == []


@pytest.mark.parametrize(("pool", "count"), [("BP-1", 0), ("BP-2", 1)])
def test_a_copy_of_the_namenode_is_no_second_one(hdfs: Put, tmp_path: Path, pool: str, count: int) -> None:
    formatted(hdfs, "/new", pool)
    assert len(found(tmp_path, "hdfs_name", "/new")) == count


def test_what_runs_counts_when_its_file_has_changed_already(
    hdfs: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = {"dfs__namenode__name__dir": "file:///new", "dfs__namenode__http-address__x__nn1": "n1:9870"}
    hdfs("/conf/namenode/hdfs-site.xml", xml(**site))
    asked = []

    def fetch(url: str) -> bytes:
        asked.append(url)
        return b'{"beans": [{"NameDirStatuses": "{\\"active\\": {\\"/old/nn\\": \\"IMAGE_AND_EDITS\\"}}"}]}'

    monkeypatch.setattr(orphaned_data, "fetch", fetch)
    (finding,) = found(tmp_path, "hdfs_name", "/new")
    assert finding["fact"].startswith("/old/nn holds the data of hdfs-namenode")
    assert asked == ["http://n1:9870/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo"]


@pytest.fixture(params=["file of credentials", "environment of an older kit"])
def catalog(request: pytest.FixtureRequest, put: Put) -> None:
    """A metastore is installed, whose catalog is the database ``old`` of db1."""
    properties = {
        "javax__jdo__option__ConnectionURL": "jdbc:postgresql://db1:5432/old",
        "javax__jdo__option__ConnectionUserName": "hive",
    }
    unit = "[Service]\nExecStart=java -cp /conf/hive:/lib Main\n"
    if request.param == "file of credentials":
        put("/conf/hive/credentials.json", json.dumps({credentials.PASSWORD: "a secret"}))
        properties["hadoop__security__credential__provider__path"] = "json:/conf/hive/credentials.json"
    else:
        put("/conf/hive/metastore.env", 'METASTORE_DATABASE_PASSWORD="a secret"\n')
        unit += "EnvironmentFile=/conf/hive/metastore.env\n"
    put("/etc/systemd/system/hive-metastore.service", unit)
    put("/conf/hive/hive-site.xml", xml(**properties))


def look(root: Path, database: str, host: str = "db1", *forsaken: str) -> list[dict[str, str]]:
    storage: dict[str, Any] = {
        "kind": "metastore",
        "host": host,
        "address": "192.0.2.1",
        "database": database,
    }
    service = {"unit": "hive-metastore.service", "storage": storage}
    return list(orphaned_data.check(root, service, list(forsaken)))


@pytest.mark.usefixtures("catalog")
class TestCatalog:
    """The metastore's database."""

    @pytest.mark.parametrize(("database", "host"), [("new", "db1"), ("old", "db2")])
    def test_one_in_use_is_not_left_behind(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: str, host: str
    ) -> None:
        monkeypatch.setattr(orphaned_data, "uses", lambda _: ["rows in TBLS"])
        (finding,) = look(tmp_path, database, host)
        assert finding["fact"] == (
            f"db1/old holds the data of hive-metastore (rows in TBLS), and lakehouse_database names"
            f" {host}/{database} instead"
        )
        assert look(tmp_path, database, host, "db1/old") == []

    def test_the_same_one_is_not_even_asked(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(orphaned_data, "Database", None)
        assert look(tmp_path, "old") == []

    def test_an_empty_one_may_be_left(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(orphaned_data, "uses", lambda _: [])
        assert look(tmp_path, "new") == []

    def test_one_that_does_not_answer_may_hold_data(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(_: object) -> list[str]:
            raise RefusedError("PostgreSQL at db1:\nno route")

        monkeypatch.setattr(orphaned_data, "uses", refuse)
        (finding,) = look(tmp_path, "new")
        assert "(it cannot be looked at: PostgreSQL at db1: no route)" in finding["fact"]
        assert "a secret" not in str(finding)
