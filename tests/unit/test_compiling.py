"""The kit's Java sources: what decides the jar, its bytes, and what a mistake in them is called."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from lakehouse.artifacts import compiling, manifest, releases
from lakehouse.artifacts.compiling import Sources
from lakehouse.errors import LakehouseError

ROOT = Path(__file__).parents[2]


def test_another_source_or_another_name_is_another_jar(tmp_path: Path) -> None:
    (tmp_path / "A.java").write_text("class A {}")
    first = Sources.read(tmp_path).digest
    assert Sources.read(tmp_path).digest == first
    (tmp_path / "A.java").write_text("class A { int a; }")
    second = Sources.read(tmp_path).digest
    (tmp_path / "A.java").rename(tmp_path / "B.java")
    assert len({first, second, Sources.read(tmp_path).digest}) == 3


def test_what_service_loaders_read_goes_into_the_jar_and_its_digest(tmp_path: Path) -> None:
    (tmp_path / "A.java").write_text("class A {}")
    first = Sources.read(tmp_path).digest
    services = tmp_path / "META-INF" / "services"
    services.mkdir(parents=True)
    (services / "some.Factory").write_text("A\n")
    assert Sources.read(tmp_path).digest != first


def test_a_folder_without_sources_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LakehouseError, match="no Java sources; next: git status"):
        Sources.read(tmp_path)


def test_a_jar_has_the_same_bytes_whatever_the_order() -> None:
    files = {"b/B.class": b"b", "A.class": b"a"}
    packed = compiling.packed(files)
    assert packed == compiling.packed(dict(reversed(files.items())))
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        assert [(info.filename, info.date_time[0]) for info in archive.infolist()] == [
            ("A.class", 1980),
            ("b/B.class", 1980),
        ]


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (
            "/cache/Guard.java:7: error: The import java.no cannot be resolved\n1 problem (1 error)\n",
            "Java does not compile: Guard.java:7: error: The import java.no cannot be resolved",
        ),
        (
            "Exception in thread main java.lang.UnsupportedClassVersionError: org/eclipse\n\tat java\n",
            "the java on PATH is older than 17",
        ),
        (
            "Error: Unable to access jarfile ecj.jar\n",
            "the Java compiler failed: Error: Unable to access jarfile ecj.jar",
        ),
        ("", "the Java compiler failed: no output"),
    ],
)
def test_the_line_that_matters(output: str, message: str) -> None:
    assert compiling.explain(output).message == message


def test_the_metastore_s_release_depends_on_the_guard_and_holds_no_compiler() -> None:
    hive = manifest.load(ROOT / "versions.yml").component("hive")
    guard = hive.layers[-1]
    assert guard.sources is not None
    assert guard.sources.digest == Sources.read(ROOT / "roles/hive_metastore/files/guard").digest
    compilers = {item.coordinate.artifact for item in hive.artifacts} - {
        item.coordinate.artifact for item in hive.contents
    }
    assert compilers == {"ecj"}
    assert releases.release_id(hive).startswith("3.1.3-")
