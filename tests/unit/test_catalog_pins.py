"""What named commits of the history need of tables: a document in HDFS, and what upkeep makes of it."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from lakehouse.catalog import pins
from lakehouse.catalog.hosted import pinning
from lakehouse.catalog.hosted.layout import Settings
from lakehouse.catalog.pins import Pin, Pins
from lakehouse.catalog.store import Entry, Store
from plugins.module_utils.lakehouse.webhdfs import WebHdfs, WebHdfsError
from tests.unit import catalog_states

HOUR = 3600


def document(folder: str, **data: str) -> dict[str, Any]:
    parameters = {"table_type": "ICEBERG", "metadata_location": "m"} if data["format"] == "iceberg" else {}
    return {"type": "EXTERNAL_TABLE", "storage": {"location": folder}, "parameters": parameters, "data": data}


def written(**changes: Any) -> bytes:
    tables = pins.collect([
        (200, [document("hdfs://x/lake/a", format="iceberg", metadata="hdfs://x/lake/a/m1")]),
        (100, [
            document("hdfs://x/lake/a/", format="iceberg", metadata="hdfs://x/lake/a/m0"),
            document("hdfs://x/lake/d", format="delta", version="3"),
            document("hdfs://x/lake/h", format="hive"),
        ]),
    ])  # fmt: skip
    return json.dumps({**json.loads(pins.document(tables, "", 1000)), **changes}).encode()


def test_metadata_of_all_commits_is_pinned() -> None:
    parsed = pins.parse(written(), 1000, 3)
    assert parsed.unknown == ""
    assert parsed.of("hdfs://x/lake/a") == Pin(frozenset({"/lake/a/m0", "/lake/a/m1"}), 100)
    assert parsed.of("/lake/d") == Pin(since=100)
    assert parsed.of("/lake/h") == Pin()


def test_removed_files_of_delta_stay_since_the_oldest_commit() -> None:
    parsed = Pins({"/lake/d": Pin(since=HOUR)})
    # An hour more, since clocks differ.
    assert parsed.hours("hdfs://x/lake/d", 11 * HOUR) == 12
    assert parsed.hours("/lake/other", 11 * HOUR) == 0


def test_an_old_document_is_not_known() -> None:
    assert pins.parse(written(), 1000 + 3 * HOUR, 3).unknown == ""
    parsed = pins.parse(written(), 1000 + 5 * HOUR, 3)
    assert parsed == Pins({}, "the pins of the catalog's history are 5 hours old")


def test_a_commit_that_cannot_be_read_makes_all_pins_unknown(settings: Settings) -> None:
    store, hdfs = Store.made(settings.repository), Hdfs()
    commit = orders(store, 1)
    (tree,) = (number for name, number in store.tree(commit.tree).items() if name == "catalog")
    odd = store.record(tree, commit, "a <a@b>", 1, "no tree of a catalog")
    store.references.add("tags/odd", odd.id)
    pinning.publish(settings, store, cast("WebHdfs", hdfs))
    parsed = pins.parse(hdfs.files["/r-pins.json"], time.time(), 3)
    assert parsed.unknown.startswith(
        "the pins of the catalog's history are unknown: the commit's form is None"
    )


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"{}", b"[" * 100_000, written(tables=[]), written(time="x"),
        written(tables={"/a": {}}),
        written(tables={"/a": {"metadata": [], "since": "x"}}),
    ],
)  # fmt: skip
def test_a_damaged_document_is_not_known(content: bytes) -> None:
    assert pins.parse(content, 1000, 3).unknown.startswith("the pins of the catalog's history are damaged: ")


def test_the_document_is_beside_the_root() -> None:
    assert pins.path("/lake") == "/lake-pins.json"
    assert pins.path("/data/lake/") == "/data-lake-pins.json"


class Hdfs:
    """HDFS with one folder: what was written, and to which path it was renamed."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.files = error, dict[str, bytes]()

    def write(self, path: str, stream: Any, _: int) -> None:
        if self.error:
            raise self.error
        self.files[path] = stream.read()

    def call(self, _: str, operation: str, path: str, **options: str) -> None:
        if operation == "RENAME":
            self.files[options["destination"]] = self.files.pop(path)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        cluster="kit", folder=str(tmp_path), keep_days=1, psql=[], namenode="", superuser="", root="/r",
        owner="hive", snapshot_hours=0, snapshot_days=0, past_commit="HEAD", past_address="", past_port=0,
    )  # fmt: skip


def published(settings: Settings, store: Store, hdfs: Hdfs) -> dict[str, Any]:
    pinning.publish(settings, store, cast("WebHdfs", hdfs))
    document: dict[str, Any] = json.loads(hdfs.files["/r-pins.json"])
    return dict(document["tables"])


def orders(store: Store, number: int) -> Entry:
    """Commit a table with the metadata file of this number."""
    return catalog_states.commit(store, {"sales": {"orders": catalog_states.iceberg(number)}})


def test_commits_with_a_tag_or_a_branch_are_published(settings: Settings) -> None:
    store, hdfs = Store.made(settings.repository), Hdfs()
    first, second, _ = [orders(store, number) for number in range(3)]
    assert published(settings, store, hdfs) == {}
    store.references.add("tags/before", first.id)
    assert published(settings, store, hdfs) == {"/t": {"metadata": ["/m0.json"], "since": first.time}}
    store.references.add("heads/work", second.id)
    pinned = {"/t": {"metadata": ["/m0.json", "/m1.json"], "since": first.time}}
    assert published(settings, store, hdfs) == pinned
    # Without a new name no commit is read again.
    assert published(settings, cast("Store", Names(store)), hdfs) == pinned
    store.references.remove("tags/before")
    assert published(settings, store, hdfs) == {"/t": {"metadata": ["/m1.json"], "since": second.time}}


def test_the_served_commit_is_published(settings: Settings) -> None:
    store = Store.made(settings.repository)
    commit = orders(store, 7)
    served = replace(settings, past_commit=commit.id)
    assert published(served, store, Hdfs()) == {"/t": {"metadata": ["/m7.json"], "since": commit.time}}
    assert published(replace(settings, past_commit="gone"), store, Hdfs()) == {}


def test_the_history_goes_on_while_hdfs_refuses(settings: Settings) -> None:
    hdfs = Hdfs(WebHdfsError("safe mode"))
    pinning.publish(settings, Store.made(settings.repository), cast("WebHdfs", hdfs))
    assert hdfs.files == {}


class Names:
    """A repository whose names can be read, and no tree."""

    def __init__(self, store: Store) -> None:
        self.references, self.commit = store.references, store.commit
