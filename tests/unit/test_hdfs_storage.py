"""A storage directory is told apart by its files alone; what is not certainly ours is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from ansible.module_utils.lakehouse.hdfs_storage import (
    DATA_LAYOUT,
    NAME_LAYOUT,
    Storage,
    check,
    inspect,
    problem,
    read_version,
)
from ansible.module_utils.lakehouse.refused import RefusedError

from lakehouse import run
from lakehouse.artifacts import manifest

OURS = "CID-ours"
Make = Callable[..., str]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Return a function that makes a directory with files, and a VERSION where a cluster is given."""

    def directory(*files: str, cluster_id: str | None = None, layout: int = DATA_LAYOUT) -> str:
        for name in files:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        if cluster_id is not None:
            (tmp_path / "current").mkdir(exist_ok=True)
            (tmp_path / "current" / "VERSION").write_text(
                f"#Fri Jan 02 03:04:05 UTC 2026\nnamespaceID=1\nclusterID={cluster_id}\n"
                f"layoutVersion={layout}\n",
                encoding="utf-8",
            )
        return str(tmp_path)

    return directory


@pytest.mark.parametrize("name_dir", [True, False])
def test_a_directory_that_is_not_there_is_empty(tmp_path: Path, name_dir: bool) -> None:
    assert inspect(str(tmp_path / "none"), name_dir=name_dir).state == "empty"


@pytest.mark.parametrize("files", [(), ("lost+found",), ("in_use.lock",)])
def test_a_fresh_file_system_is_empty(make: Make, files: tuple[str, ...]) -> None:
    storage = inspect(make(*files), name_dir=True)
    assert (storage.state, problem(storage, OURS)) == ("empty", None)


def test_a_namenode_with_an_image_is_formatted(make: Make) -> None:
    storage = inspect(make("current/fsimage_0000000000000000000", cluster_id=OURS), name_dir=True)
    assert (storage.state, storage.cluster_id, problem(storage, OURS)) == ("formatted", OURS, None)


@pytest.mark.parametrize(
    "left", ["seen_txid", "fsimage_0000000000000000000.md5", "fsimage.ckpt_0000000000000000000"]
)
def test_a_version_without_an_image_is_an_interrupted_format(make: Make, left: str) -> None:
    path = make(f"current/{left}", cluster_id=OURS)
    storage = inspect(path, name_dir=True)
    refused = problem(storage, OURS)
    assert storage.state == "incomplete"
    assert refused
    assert path in refused
    assert "nothing was touched" in refused


def test_a_datanode_needs_no_image(make: Make) -> None:
    storage = inspect(make("current/BP-1/current/finalized/x", cluster_id=OURS), name_dir=False)
    assert (storage.state, problem(storage, OURS)) == ("formatted", None)


@pytest.mark.parametrize("files", [("photo.jpg",), ("current/edits_1",)])
def test_files_without_a_version_are_refused(make: Make, files: tuple[str, ...]) -> None:
    path = make(*files)
    refused = problem(inspect(path, name_dir=False), OURS)
    assert refused
    assert refused.endswith(f"next: ls -lR {path}, then move it away")


@pytest.mark.parametrize("name_dir", [True, False])
def test_a_directory_of_another_cluster_is_refused_by_its_name(make: Make, name_dir: bool) -> None:
    path = make("current/fsimage_0000000000000000012", cluster_id="CID-theirs")
    refused = problem(inspect(path, name_dir=name_dir), OURS)
    assert refused
    assert refused.startswith(
        f"{path} belongs to cluster CID-theirs (expected CID-ours); nothing was touched"
    )
    assert "\n" not in refused


each_kind = pytest.mark.parametrize(("name_dir", "newest"), [(True, NAME_LAYOUT), (False, DATA_LAYOUT)])
IMAGE = "current/fsimage_0000000000000000012"


@each_kind
@pytest.mark.parametrize("older", [0, 1])
def test_a_layout_of_this_hadoop_or_an_older_is_read(
    make: Make, name_dir: bool, newest: int, older: int
) -> None:
    path = make(IMAGE, cluster_id=OURS, layout=newest + older)
    assert problem(inspect(path, name_dir=name_dir), OURS) is None


@each_kind
def test_a_layout_of_a_newer_hadoop_is_refused(make: Make, name_dir: bool, newest: int) -> None:
    path = make(IMAGE, cluster_id=OURS, layout=newest - 1)
    with pytest.raises(RefusedError) as refused:
        check([path] if name_dir else [], [] if name_dir else [path], OURS)
    assert str(refused.value) == (
        f"{path} was written by a newer Hadoop: its layout is {newest - 1} (expected {newest}, which this one"
        " writes); nothing was touched; next: go back to the release that wrote it, or move it away"
    )


def test_the_layouts_are_those_of_the_release() -> None:
    hadoop = manifest.load(run.ROOT / "versions.yml").component("hadoop")
    assert hadoop.version == "3.5.0", "next: read NAME_LAYOUT and DATA_LAYOUT from the new hadoop-hdfs.jar"


def test_a_version_that_names_no_cluster_is_not_refused_as_foreign() -> None:
    assert problem(Storage("/data", "formatted", None), OURS) is None


def test_a_version_file_is_read_with_blanks_and_comments(tmp_path: Path) -> None:
    path = tmp_path / "VERSION"
    path.write_text("# made by hand\nclusterID = CID-x \n\nstorageType=NAME_NODE\n", encoding="utf-8")
    assert read_version(path) == {"clusterID": "CID-x", "storageType": "NAME_NODE"}
