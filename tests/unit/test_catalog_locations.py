"""Where engines find the files of a commit's tables: in HDFS as it is now, in a snapshot, or nowhere."""

from __future__ import annotations

import json
from typing import IO, Any

import pytest
from hive_metastore.ttypes import MetaException

from lakehouse.catalog.names import Name
from lakehouse.catalog.served.hdfs_root import HdfsRoot
from lakehouse.catalog.served.locations import SnapshotLocations
from lakehouse.catalog.served.metadata_copies import MetadataCopies
from lakehouse.catalog.store import Entry
from plugins.module_utils.lakehouse.webhdfs import NoAnswerError, WebHdfs
from tests.unit.iceberg_files import DATA, POSITIONS, manifest, manifest_list

COMMIT = "c" * 40
OWN, LATER = "history-20260102T030405Z-cccccccccccc", "history-20260102T040405Z-dddddddddddd"
NAME = Name("hive", "sales", "orders")
PLACE = "hdfs://lake/root/t"


class Hdfs(WebHdfs):
    """Files by path in memory, and the calls that change them."""

    def __init__(self) -> None:
        super().__init__("http://none", "hdfs")
        self.files: dict[str, bytes] = {}
        self.folders: set[str] = {"/root"}
        self.owned: dict[str, str] = {}
        self.calls: list[str] = []
        self.is_silent = False

    def put(self, path: str, content: bytes = b"1", snapshot: str = "") -> None:
        place = path.replace("/root/", f"/root/.snapshot/{snapshot}/", 1) if snapshot else path
        self.files[place] = content
        words = place.split("/")
        self.folders |= {"/".join(words[:count]) for count in range(2, len(words))}

    def call(self, method: str, operation: str, path: str, **query: str) -> dict[str, Any]:
        del method
        if self.is_silent:
            raise NoAnswerError("no answer")
        self.calls.append(f"{operation} {path}")
        if operation == "MKDIRS":
            self.folders.add(path)
        elif operation == "SETOWNER":
            self.owned[path] = query["owner"]
        elif operation == "RENAME":
            self.files[query["destination"]] = self.files.pop(path)
        elif operation == "DELETE":
            inside = [one for one in {*self.files, *self.folders} if f"{one}/".startswith(f"{path}/")]
            for one in inside:
                self.files.pop(one, None)
                self.folders.discard(one)
        return {"boolean": True}

    def status(self, path: str) -> dict[str, Any] | None:
        self.call("GET", "GETFILESTATUS", path)
        if path not in self.files and path not in self.folders:
            return None
        return {
            "type": "FILE" if path in self.files else "DIRECTORY", "length": len(self.files.get(path, b"")),
            "owner": f"of {path.rpartition('/')[2]}", "group": "g", "permission": "750", "replication": 1,
            "modificationTime": 1, "fileId": 1, "pathSuffix": "",
        }  # fmt: skip

    def sizes(self, path: str) -> dict[str, int]:
        self.call("GET", "LISTSTATUS", path)
        every = {
            one.removeprefix(f"{path}/") for one in {*self.files, *self.folders} if one.startswith(f"{path}/")
        }
        return {one: 1 for one in every if "/" not in one}

    def read(self, path: str) -> bytes:
        return self.files[path]

    def write(self, path: str, stream: IO[bytes], length: int, **_: str) -> None:
        self.files[path] = stream.read()
        assert len(self.files[path]) == length


@pytest.fixture
def hdfs() -> Hdfs:
    found = Hdfs()
    found.folders |= {f"/root/.snapshot/{one}" for one in (OWN, LATER)} | {"/root/.snapshot"}
    return found


@pytest.fixture
def reports() -> list[str]:
    return []


@pytest.fixture
def copies(hdfs: Hdfs) -> MetadataCopies:
    return MetadataCopies(HdfsRoot(hdfs, "/root"), "me")


@pytest.fixture
def locations(hdfs: Hdfs, copies: MetadataCopies, reports: list[str]) -> SnapshotLocations:
    entry = Entry(COMMIT, "t", (), "ann", 1767323045, "subject")
    return SnapshotLocations(HdfsRoot(hdfs, "/root"), copies, entry, reports.append)


def hive(place: str = PLACE, *keys: str, **parameters: str) -> dict[str, Any]:
    return {
        "type": "EXTERNAL_TABLE",
        "parameters": parameters,
        "partition_keys": [{"name": one, "type": "string"} for one in keys],
        "storage": {"location": place, "serde": {"parameters": {"path": place, "x": place}}},
    }


def located(locations: SnapshotLocations, table: Any, partition: Any = None) -> str:
    return str(locations.table(NAME, table, lambda: partition)["storage"]["location"])


def test_a_table_is_read_out_of_the_commits_own_snapshot_then_now_then_another(
    locations: SnapshotLocations, hdfs: Hdfs
) -> None:
    for snapshot in (OWN, "", LATER):
        hdfs.put("/root/t/a", snapshot=snapshot)
    found = locations.table(NAME, hive(), lambda: None)
    own = f"hdfs://lake/root/.snapshot/{OWN}/t"
    assert found["storage"] == {"location": own, "serde": {"parameters": {"path": own, "x": PLACE}}}
    hdfs.call("DELETE", "DELETE", f"/root/.snapshot/{OWN}")
    assert located(locations, hive()) == PLACE
    hdfs.call("DELETE", "DELETE", "/root/t")
    assert located(locations, hive()) == f"hdfs://lake/root/.snapshot/{LATER}/t"


def test_a_table_of_delta_needs_its_log(locations: SnapshotLocations, hdfs: Hdfs) -> None:
    table = hive(**{"spark.sql.sources.provider": "delta"})
    hdfs.put("/root/t/a", snapshot=OWN)
    hdfs.put("/root/t/_delta_log/0", snapshot=LATER)
    assert located(locations, table) == f"hdfs://lake/root/.snapshot/{LATER}/t"


@pytest.mark.usefixtures("hdfs")
def test_a_table_whose_files_are_gone_is_one_line(locations: SnapshotLocations, reports: list[str]) -> None:
    for _ in range(2):
        with pytest.raises(MetaException, match="no snapshot of the history has it"):
            locations.table(NAME, hive(), lambda: None)
    assert reports == [
        f"DEGRADED catalog.files {NAME}: {PLACE} is not there, and no snapshot of the history has it"
    ]
    # Of Hive, partitions elsewhere, or none.
    elsewhere = {"location": "hdfs://lake/other/p", "values": ["1"]}
    assert located(locations, hive(PLACE, "ds"), elsewhere) == PLACE
    assert located(locations, hive(PLACE, "ds")) == PLACE
    with pytest.raises(MetaException):
        locations.table(NAME, hive(PLACE, "ds"), lambda: {"location": f"{PLACE}/ds=1"})


@pytest.mark.parametrize(
    "place",
    [
        "s3://bucket/root/t",
        "hdfs://lake/elsewhere/t",
        "hdfs://lake/root",
        "hdfs://lake/root/../t",
        "hdfs://lake/root/.snapshot/x/t",
        "file:///root/t",
        "hdfs://lake/root/a:b",
        "hdfs://lake/root/\udc80",
    ],
)
def test_a_place_that_is_in_no_snapshot_stays(locations: SnapshotLocations, place: str) -> None:
    assert located(locations, hive(place)) == place
    [partition] = locations.partitions(hive(), [{"location": place}])
    assert partition["location"] == place


def test_many_partitions_of_the_commits_snapshot_need_no_look(
    locations: SnapshotLocations, hdfs: Hdfs
) -> None:
    documents = [{"location": f"{PLACE}/ds={number}"} for number in range(1000)]
    found = locations.partitions(hive(), documents)
    assert found[9]["location"] == f"hdfs://lake/root/.snapshot/{OWN}/t/ds=9"
    assert len(hdfs.calls) == 1


def test_partitions_are_looked_for_by_one_listing_of_their_folder(
    locations: SnapshotLocations, hdfs: Hdfs
) -> None:
    hdfs.call("DELETE", "DELETE", f"/root/.snapshot/{OWN}")
    for number in range(100):
        hdfs.put(f"/root/t/ds={number}/a", snapshot="" if number % 2 else LATER)
    hdfs.calls.clear()
    documents = [{"location": f"{PLACE}/ds={number}"} for number in range(101)]
    found = [one["location"] for one in locations.partitions(hive(), documents)]
    assert found[98:] == [f"hdfs://lake/root/.snapshot/{LATER}/t/ds=98", f"{PLACE}/ds=99", f"{PLACE}/ds=100"]
    assert len(hdfs.calls) == 3


POINTER = f"{PLACE}/metadata/1.metadata.json"


def iceberg_table(hdfs: Hdfs, snapshot: str, content: Any = DATA) -> dict[str, Any]:
    metadata = {
        "current-snapshot-id": 7,
        "snapshots": [{"snapshot-id": 7, "timestamp-ms": 1, "manifest-list": f"{PLACE}/metadata/list.avro"}],
    }
    hdfs.put("/root/t/metadata/1.metadata.json", json.dumps(metadata).encode(), snapshot)
    hdfs.put("/root/t/metadata/list.avro", manifest_list(f"{PLACE}/metadata/m.avro"), snapshot)
    hdfs.put("/root/t/metadata/m.avro", manifest((f"{PLACE}/data/d", content)), snapshot)
    return {
        "type": "EXTERNAL_TABLE",
        "parameters": {"table_type": "ICEBERG", "metadata_location": POINTER},
        "storage": {"location": PLACE},
    }


def pointer(locations: SnapshotLocations, table: Any) -> str:
    return str(locations.table(NAME, table, lambda: None)["parameters"]["metadata_location"])


def test_an_iceberg_table_is_read_where_it_is_while_its_state_is_there(
    locations: SnapshotLocations, hdfs: Hdfs
) -> None:
    table = iceberg_table(hdfs, "")
    iceberg_table(hdfs, OWN)
    assert pointer(locations, table) == POINTER
    assert not [one for one in hdfs.calls if one.startswith(("MKDIRS", "RENAME"))]


@pytest.mark.parametrize("lost", ["1.metadata.json", "list.avro", "m.avro"])
def test_a_deleted_file_of_iceberg_is_read_by_a_protected_copy_that_goes(
    locations: SnapshotLocations, hdfs: Hdfs, copies: MetadataCopies, lost: str
) -> None:
    table = iceberg_table(hdfs, "")
    iceberg_table(hdfs, LATER)
    del hdfs.files[f"/root/t/metadata/{lost}"]
    before = {path for path in hdfs.files if not path.startswith("/root-served")}
    copy = pointer(locations, table)
    assert copy == f"hdfs://lake/root-served/me/{LATER}/t/metadata/1.metadata.json"
    written = [one for one in hdfs.calls if one.startswith("RENAME")]
    assert len(written) == 3
    folder = f"/root-served/me/{LATER}/t/metadata"
    assert f"hdfs://lake{folder}/list.avro".encode() in hdfs.files[f"{folder}/1.metadata.json"]
    assert hdfs.owned[folder] == "of metadata"
    assert hdfs.owned["/root-served"] == hdfs.owned["/root-served/me"] == "of root"
    assert {path for path in hdfs.files if not path.startswith("/root-served")} == before
    # A second time nothing is written.
    assert pointer(locations, table) == copy
    assert [one for one in hdfs.calls if one.startswith("RENAME")] == written
    copies.close()
    assert not [path for path in {*hdfs.files, *hdfs.folders} if path.startswith("/root-served/")]


def test_position_deletes_and_damage_are_one_line(
    locations: SnapshotLocations, hdfs: Hdfs, reports: list[str]
) -> None:
    table = iceberg_table(hdfs, OWN, POSITIONS)
    with pytest.raises(
        MetaException, match=f"to bring it back: .venv/bin/lakehouse catalog restore {COMMIT[:12]} {NAME}"
    ):
        pointer(locations, table)
    hdfs.put("/root/t/metadata/list.avro", b"no avro", OWN)
    assert len(reports) == 1
    hdfs.put("/root/t/metadata/1.metadata.json", b"{}", OWN)
    other = {**table, "parameters": {**table["parameters"], "metadata_location": f"{PLACE}/metadata/m.avro"}}
    with pytest.raises(MetaException, match="damaged"):
        pointer(locations, other)
    assert len(reports) == 2


def test_a_silent_hdfs_leaves_places_as_they_are(
    locations: SnapshotLocations, hdfs: Hdfs, reports: list[str]
) -> None:
    hdfs.is_silent = True
    assert located(locations, hive()) == PLACE
    assert locations.partitions(hive(), [{"location": PLACE}]) == [{"location": PLACE}]
    assert len(reports) == 1


def test_what_killed_servers_have_left_goes(copies: MetadataCopies, hdfs: Hdfs) -> None:
    for path in (
        f"me/{OWN}/a",
        f"other/{OWN}/a",
        "other/history-20250101T000000Z-aaaaaaaaaaaa/a",
        "gone/x/a",
    ):
        hdfs.put(f"/root-served/{path}")
    said: list[str] = []
    copies.clean(said.append)
    assert {path for path in hdfs.files if "served" in path} == {f"/root-served/other/{OWN}/a"}
    assert said == []


def test_a_file_of_metadata_that_is_too_large_is_not_read(
    hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch, locations: SnapshotLocations
) -> None:
    table = iceberg_table(hdfs, "")
    monkeypatch.setattr("lakehouse.catalog.served.hdfs_root.MOST_BYTES", 10)
    with pytest.raises(MetaException, match="has more than 0 MiB"):
        pointer(locations, table)
