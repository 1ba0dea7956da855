"""What of a table's state in a commit is gone, which tag a snapshot needs, and what a hook may say."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lakehouse import clients
from lakehouse.catalog import hooks, readable
from lakehouse.catalog.names import Name
from lakehouse.cluster_catalog import pinning
from lakehouse.errors import LakehouseError
from tests.unit.catalog_files import Files
from tests.unit.iceberg_files import DATA, manifest, manifest_list

DAY = 24 * 3600 * 1000
NOW = 1_000 * DAY
ORDERS = Name("hive", "sales", "orders")


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
    there = {"hdfs://c/1.metadata.json": content, "hdfs://c/list": manifest_list()}
    assert readable.why_unreadable(said, Files(there)) == ""
    assert readable.why_unreadable(said, Files()) == "hdfs://c/1.metadata.json is not there"
    del there["hdfs://c/list"]
    assert readable.why_unreadable(said, Files(there)) == "snapshot 7 has expired: hdfs://c/list is not there"


def whole_table() -> dict[str, bytes]:
    """The files of an Iceberg table with two manifests."""
    return {
        "hdfs://c/1.metadata.json": json.dumps(metadata()).encode(),
        "hdfs://c/list": manifest_list("hdfs://c/m1", "hdfs://c/m2"),
        "hdfs://c/m1": manifest(("hdfs://c/d1", DATA)),
        "hdfs://c/m2": manifest(("hdfs://c/d2", DATA), ("hdfs://c/d3", DATA)),
        **{f"hdfs://c/d{number}": b"rows" for number in (1, 2, 3)},
    }


ICE = iceberg("hdfs://c/1.metadata.json")


def paths_of_faults(*arguments: Any, rows: bool = False) -> list[str]:
    return [fault.path for fault in readable.file_faults(*arguments, rows=rows)]


def test_a_whole_table_lacks_no_file() -> None:
    assert paths_of_faults(ICE, Files(whole_table()), rows=True) == []
    assert readable.why_unreadable(ICE, Files(whole_table())) == ""


@pytest.mark.parametrize("missing", [["list"], ["m1"], ["m1", "m2"], ["d2"], ["m1", "d3"]])
def test_missing_files_of_an_iceberg_table_are_named(missing: list[str]) -> None:
    there = {path: content for path, content in whole_table().items() if path[9:] not in missing}
    paths = [f"hdfs://c/{one}" for one in missing]
    assert paths_of_faults(ICE, Files(there), rows=True) == paths
    # Rows are looked for where asked to.
    assert paths_of_faults(ICE, Files(there)) == [one for one in paths if "/d" not in one]


def test_copies_name_what_else_is_missing() -> None:
    whole = whole_table()
    left = {"hdfs://c/m2": whole["hdfs://c/m2"], "hdfs://c/d1": b"rows"}
    found = paths_of_faults(ICE, Files(left), Files(whole), rows=True)
    assert found == [f"hdfs://c/{one}" for one in ("1.metadata.json", "list", "m1", "d2", "d3")]


@pytest.mark.parametrize(
    ("path", "content", "why"),
    [
        ("1.metadata.json", b"", "is empty"),
        ("1.metadata.json", b'{"snapshots": [{"sn', "is damaged: Unterminated string"),
        ("1.metadata.json", gzip.compress(b"{}" * 99, mtime=0)[:-9], "is damaged: it ends in the middle"),
        ("1.metadata.json", b"\x1f\x8bdamaged", "is damaged: "),
        ("1.metadata.json", b"\xff\xfe\x00", "is damaged: "),
        ("1.metadata.json", b"[" * 100_000, "is damaged: "),
        ("1.metadata.json", b"[]", "is damaged: it is no metadata of an Iceberg table"),
        ("1.metadata.json", b'{"snapshots": [1]}', "is damaged: it is no metadata of an Iceberg table"),
        (
            "1.metadata.json",
            b'{"current-snapshot-id": 9, "snapshots": []}',
            "is damaged: it does not have its current snapshot 9",
        ),
        ("list", b"", "is empty"),
        ("list", b"garbage", "is damaged: "),
        ("list", manifest_list("hdfs://c/m1")[:-30], "is damaged: "),
        ("m2", b"", "is empty"),
    ],
)
def test_a_damaged_file_of_an_iceberg_table_is_one_line(path: str, content: bytes, why: str) -> None:
    place = f"hdfs://c/{path}"
    files = Files(whole_table() | {place: content})
    [line] = readable.why_unreadable(ICE, files).splitlines()
    assert f"{place} {why}" in line
    assert paths_of_faults(ICE, files) == [place]


def test_a_file_that_no_datanode_answers_for_is_one_line() -> None:
    for path in ("1.metadata.json", "list"):
        files = Files(whole_table(), unreadable=[f"hdfs://c/{path}"])
        assert f"hdfs://c/{path} cannot be read: OPEN hdfs" in readable.why_unreadable(ICE, files)


def test_many_folders_are_found_by_the_listing_of_their_parents() -> None:
    files = Files(folders={"hdfs://c/t": ["ds=1", "ds=3"], "hdfs://c/u": []})
    wanted = [*(f"hdfs://c/t/ds={number}" for number in (1, 2, 3)), "hdfs://c/u/ds=1/", "s3a://c/ds=1"]
    found = readable.folder_faults([*wanted, "hdfs://c/gone/x"], files)
    assert [str(one) for one in found.values()] == [
        f"hdfs://c/{place} is not there" for place in ("t/ds=2", "u/ds=1/", "gone/x")
    ]


@pytest.mark.parametrize("name", ["1.metadata.json", "1.gz.metadata.json"])
def test_metadata_in_another_file_system_is_taken_to_be_there(name: str) -> None:
    assert readable.why_unreadable(iceberg(f"s3a://c/{name}"), Files()) == ""
    assert readable.iceberg(f"s3a://c/{name}", Files()) == {}


def test_metadata_may_be_compressed_and_without_a_snapshot() -> None:
    place = "hdfs://c/1.gz.metadata.json"
    content = gzip.compress(json.dumps({"current-snapshot-id": -1, "snapshots": []}).encode())
    assert readable.why_unreadable(iceberg(place), Files({place: content})) == ""


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
    assert readable.why_unreadable(said, Files(folders={"hdfs://c/t/_delta_log": names})) == why


def test_a_hive_table_needs_its_folder_and_a_view_nothing() -> None:
    said = {"storage": {"location": "hdfs://c/t"}}
    assert readable.why_unreadable(said, Files()) == "hdfs://c/t is not there"
    assert readable.why_unreadable(said, Files(folders={"hdfs://c/t": []})) == ""
    assert readable.why_unreadable({"type": "VIRTUAL_VIEW"}, Files()) == ""


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
    found = pinning.needed_tag(ORDERS, metadata(age=age, tag_days=tag_days), NOW, 30)
    said = found.statement if found else None
    tag = "ALTER TABLE iceberg.`sales`.`orders` CREATE OR REPLACE TAG `lakehouse-7` AS OF VERSION 7"
    assert said == (f"{tag} RETAIN {kept} DAYS" if kept else None)


def test_a_table_without_a_row_needs_no_tag() -> None:
    assert pinning.needed_tag(ORDERS, {"current-snapshot-id": None}, NOW, 30) is None


@dataclass
class Lake:
    """A cluster whose Spark tags what it is told to, unless it fails."""

    files: Files
    monkeypatch: pytest.MonkeyPatch
    failing: dict[str, str] = field(default_factory=dict)
    tagged: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.monkeypatch.setattr(clients.Files, "of", lambda _: self.files)
        self.monkeypatch.setattr(pinning, "_failed_pins", self._failed_pins)

    def _failed_pins(self, _: Any, pins: list[pinning.Pin]) -> Iterator[tuple[pinning.Pin, str]]:
        for one in pins:
            if why := self.failing.get(one.table.table):
                yield one, why
            else:
                self.tagged.append(f"{one.table.table} {one.snapshot}")

    def committed(self, first: Mapping[str, str], then: Mapping[str, str]) -> list[str]:
        """Pin one state, then that of a commit; return the findings. A state is metadata files by table."""
        before, after = (
            [(Name("hive", "sales", table), iceberg_state(place)) for table, place in state.items()]
            for state in (first, then)
        )
        cluster: Any = SimpleNamespace(inventory=SimpleNamespace(path="inventory/x"))
        pinned = pinning.pin(cluster, before, 30)
        return [f"{one.where}: {one.fact}" for one in pinning.pin_rest(cluster, pinned, after, 30)]


def iceberg_state(place: str) -> dict[str, Any]:
    return iceberg(place) | {"data": {"format": "iceberg", "metadata": place}}


def test_what_was_written_while_spark_tagged_is_tagged_after_the_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    contents = {f"hdfs://c/{number}": json.dumps(metadata(number=number)).encode() for number in (1, 2, 3)}
    # The first table's tag is a new metadata file; the second table has new rows in it; the third one is new.
    contents["hdfs://c/1t"] = json.dumps(metadata(number=1, tag_days=10**6)).encode()
    lake = Lake(Files(contents), monkeypatch)
    first = {"one": "hdfs://c/1", "two": "hdfs://c/1"}
    then = {"one": "hdfs://c/1t", "two": "hdfs://c/2", "three": "hdfs://c/3"}
    assert lake.committed(first, then) == []
    assert lake.tagged == ["one 1", "two 1", "two 2", "three 3"]


def test_a_table_that_spark_does_not_tag_or_nobody_can_read_is_one_finding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    contents = {"hdfs://c/1": json.dumps(metadata()).encode(), "hdfs://c/cut": b'{"snap'}
    lake = Lake(Files(contents), monkeypatch, {"refused": "the table is read-only"})
    state = {"cut": "hdfs://c/cut", "gone": "hdfs://c/gone", "refused": "hdfs://c/1", "well": "hdfs://c/1"}
    cut, gone, refused = sorted(lake.committed(state, state))
    assert cut.startswith("hive.sales.cut: hdfs://c/cut is damaged: Unterminated string")
    assert gone == "hive.sales.gone: hdfs://c/gone is not there"
    assert refused == "hive.sales.refused: the table is read-only"
    assert lake.tagged == ["well 7"]


def test_a_table_of_another_catalog_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    Lake(Files(), monkeypatch)
    cluster: Any = SimpleNamespace(inventory=SimpleNamespace(path="inventory/x"))
    [found] = pinning.pin(cluster, [(Name("other", "sales", "t"), iceberg_state("hdfs://c/1"))], 30).findings
    assert (found.where, found.fact.partition(":")[0]) == ("other.sales.t", "no tag")
    assert found.fact.endswith("catalog hive alone, and this is of other")


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
