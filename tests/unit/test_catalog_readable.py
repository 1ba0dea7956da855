"""What of a table's state in a commit is gone, which tag a snapshot needs, and what a hook may say."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lakehouse.catalog import hooks, readable
from lakehouse.catalog.names import Name
from lakehouse.errors import LakehouseError
from ops.catalog import pinning

DAY = 24 * 3600 * 1000
NOW = 1_000 * DAY
ORDERS = Name("hive", "sales", "orders")


@dataclass
class Files:
    """Files by URI, and folders by their names."""

    contents: Mapping[str, bytes] = field(default_factory=dict)
    folders: Mapping[str, list[str]] = field(default_factory=dict)

    def exists(self, uri: str) -> bool:
        return uri in self.contents or uri in self.folders

    def read(self, uri: str) -> bytes:
        return self.contents[uri]

    def names(self, uri: str) -> list[str]:
        return self.folders.get(uri, [])


def metadata(*, age: int = 0, tag_days: int | None = None, number: int = 7) -> dict[str, Any]:
    """The metadata of an Iceberg table with one snapshot that is so many days old, and its tag."""
    found = {"snapshot-id": number, "timestamp-ms": NOW - age * DAY, "manifest-list": "hdfs://c/list"}
    tag = {"snapshot-id": number, "type": "tag", "max-ref-age-ms": (tag_days or 0) * DAY}
    refs = {} if tag_days is None else {f"lakehouse-{number}": tag}
    return {"current-snapshot-id": number, "snapshots": [found], "refs": refs}


def iceberg(place: str) -> dict[str, Any]:
    return {"parameters": {"table_type": "ICEBERG", "metadata_location": place}}


def test_an_iceberg_table_needs_its_metadata_and_the_list_of_its_snapshot() -> None:
    said, content = iceberg("hdfs://c/1.metadata.json"), json.dumps(metadata()).encode()
    there = {"hdfs://c/1.metadata.json": content, "hdfs://c/list": b""}
    assert readable.lost(said, Files(there)) == ""
    assert readable.lost(said, Files()) == "hdfs://c/1.metadata.json is gone"
    del there["hdfs://c/list"]
    assert readable.lost(said, Files(there)) == "snapshot 7 has expired"


def test_metadata_may_be_compressed_and_without_a_snapshot() -> None:
    place = "hdfs://c/1.gz.metadata.json"
    content = gzip.compress(json.dumps({"current-snapshot-id": -1, "snapshots": []}).encode())
    assert readable.lost(iceberg(place), Files({place: content})) == ""


@pytest.mark.parametrize(
    ("entries", "checkpoints", "gone"),
    [
        (range(6), (), None),
        (range(3, 6), (3,), None),
        (range(4, 6), (3,), None),
        (range(3, 6), (), 0),
        (range(5), (3,), 5),
        # A checkpoint of a later version says nothing of this one.
        (range(6, 9), (7,), 0),
    ],
)
def test_a_delta_table_needs_its_log_from_a_checkpoint_on(
    entries: range, checkpoints: tuple[int, ...], gone: int | None
) -> None:
    names = [f"{one:020}.json" for one in entries]
    names += [f"{one:020}.checkpoint.parquet" for one in checkpoints]
    said = {
        "parameters": {"spark.sql.sources.provider": "delta"},
        "storage": {"location": "hdfs://c/t"},
        "data": {"format": "delta", "version": "5"},
    }
    why = "" if gone is None else f"its log has no version {gone} any more"
    assert readable.lost(said, Files(folders={"hdfs://c/t/_delta_log": names})) == why


def test_a_hive_table_needs_its_folder_and_a_view_nothing() -> None:
    said = {"storage": {"location": "hdfs://c/t"}}
    assert readable.lost(said, Files()) == "hdfs://c/t is gone"
    assert readable.lost(said, Files(folders={"hdfs://c/t": []})) == ""
    assert readable.lost({"type": "VIRTUAL_VIEW"}, Files()) == ""


@pytest.mark.parametrize(
    ("age", "tag_days", "kept"),
    [
        (0, None, 30),
        # The age of a tag is that of its snapshot: one of 100 days would go at once.
        (100, None, 130),
        (100, 130, None),
        (100, 120, 130),
        # For ever.
        (100, 0, None),
    ],
)
def test_a_tag_is_kept_from_now_on(age: int, tag_days: int | None, kept: int | None) -> None:
    found = pinning.wanted(ORDERS, metadata(age=age, tag_days=tag_days), NOW, 30)
    said = found.statement if found else None
    tag = "ALTER TABLE iceberg.`sales`.`orders` CREATE OR REPLACE TAG `lakehouse-7` AS OF VERSION 7"
    assert said == (f"{tag} RETAIN {kept} DAYS" if kept else None)


def test_a_table_without_a_row_needs_no_tag() -> None:
    assert pinning.wanted(ORDERS, {"current-snapshot-id": None}, NOW, 30) is None


def hook(tmp_path: Path, text: str, mode: int = 0o700) -> None:
    (tmp_path / "hooks").mkdir()
    path = tmp_path / "hooks" / hooks.PRE_COMMIT
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)


def test_a_hook_reads_what_happens(tmp_path: Path) -> None:
    hook(tmp_path, f"#!/bin/sh\ncat > {tmp_path}/told\n")
    hooks.run(tmp_path, hooks.PRE_COMMIT, lambda: {"changes": []})
    assert json.loads((tmp_path / "told").read_text(encoding="utf-8")) == {"changes": []}


@pytest.mark.parametrize("mode", [0o600, None])
def test_without_a_hook_nothing_is_told(tmp_path: Path, mode: int | None) -> None:
    if mode:
        hook(tmp_path, "#!/bin/sh\nexit 1\n", mode)

    def told() -> dict[str, Any]:
        raise AssertionError

    hooks.run(tmp_path, hooks.PRE_COMMIT, told)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#!/bin/sh\necho first >&2\necho 'no owner' >&2\nexit 3\n", "refuses: no owner"),
        ("#!/bin/sh\nexit 3\n", "refuses: it ended with 3"),
        ("#!/nobody/has/this\n", "cannot be run: No such file or directory"),
    ],
)
def test_a_hook_that_fails_refuses_in_its_own_words(tmp_path: Path, text: str, said: str) -> None:
    hook(tmp_path, text)
    with pytest.raises(LakehouseError, match=f"the hook catalog-pre-commit {said}"):
        hooks.run(tmp_path, hooks.PRE_COMMIT, dict)


def test_a_hook_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hook(tmp_path, "#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(hooks, "_SECONDS", 0.2)
    with pytest.raises(LakehouseError, match="has not ended after 0 s"):
        hooks.run(tmp_path, hooks.PRE_COMMIT, dict)
