"""`lakehouse metastore compare` and `catalog commit --from`: the cluster's own metastore, as another one."""

from __future__ import annotations

import pytest
from hive_metastore.ttypes import Database

from lakehouse.clients import metastores
from lakehouse.metastore import Metastore
from lakehouse.model import placement
from lakehouse.model.inventory import Inventory
from tests.cluster.changing import Verb

# Every other test that changes the catalog is a difference.
pytestmark = [pytest.mark.cluster, pytest.mark.alone]

DATABASE = "kit_compare"


@pytest.fixture
def uri(cluster: Inventory) -> str:
    return ",".join(map(str, metastores(placement.read(cluster))))


def test_a_metastore_does_not_differ_from_itself(verb: Verb, store: tuple[str, str], uri: str) -> None:
    verb.committed("-m", "first", *store)
    response = verb.json("metastore", "compare", uri, *store)
    assert (response["changes"], response["refused"]) == ([], []), response
    assert response["counts"]["databases"] > 0
    verb.json("metastore", "compare", uri, "--commit", "HEAD", *store)


def test_what_has_changed_since_a_commit_is_named(
    verb: Verb, store: tuple[str, str], uri: str, metastore: Metastore
) -> None:
    before = verb.committed("-m", "before", *store)
    metastore.call("create_database", Database(name=DATABASE, description="", parameters={}))
    try:
        process = verb.run("metastore", "compare", uri, "--commit", before, *store)
        verb.json("metastore", "compare", uri, *store)
    finally:
        metastore.call("drop_database", DATABASE, True, False)
    assert process.returncode == 1, process
    [line] = process.stdout.splitlines()
    assert line.startswith(f"+ database hive.{DATABASE}: hdfs://"), process
    assert "DEGRADED metastore.differs" in process.stderr


def test_another_metastore_is_committed_once(verb: Verb, store: tuple[str, str], uri: str) -> None:
    main = verb.committed("-m", "first", *store)
    words = ["catalog", "commit", "--from", uri, "--to", "old", *store]
    first, second = verb.json(*words), verb.json(*words)
    assert (first["changed"], second["changed"]) == (True, False)
    assert (first["branch"], second["commit"]) == ("old", first["commit"])
    assert [entry["id"] for entry in verb.json("catalog", "log", "--branch", "old", *store)["commits"]] == [
        first["commit"]
    ]
    assert [entry["id"] for entry in verb.json("catalog", "log", *store)["commits"]] == [main]
