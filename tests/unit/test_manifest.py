"""versions.yml: what is read, what is refused with which words, and the pairs of versions."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from lakehouse.artifacts import manifest
from lakehouse.artifacts.coordinates import Coordinate
from lakehouse.artifacts.manifest import Manifest
from lakehouse.errors import LakehouseError

REPOSITORY = Path(__file__).parents[2]
SHA = "0" * 64

BILL = f"""
versions: {{tool: "1.2.3", java: "21"}}
debian: {{suite: trixie, packages: {{java: "openjdk-{{java}}-jre-headless"}}}}
components:
  tool:
    java: "{{java}}"
    layers:
      jars: {{from: ["org.example:tool_{{tool_minor}}:{{tool}}"], into: lib}}
pairs: []
licences: {{}}
lock:
  tool:
    jars:
      - {{coordinate: "org.example:tool_1.2:1.2.3", sha256: "{SHA}", bytes: 7, licence: MIT}}
"""


@pytest.fixture(scope="module")
def ours() -> Manifest:
    return manifest.load(REPOSITORY / "versions.yml")


def load(tmp_path: Path, text: str) -> Manifest:
    path = tmp_path / "versions.yml"
    path.write_text(text, encoding="utf-8")
    return manifest.load(path)


@pytest.mark.parametrize(
    ("text", "file_name", "path"),
    [
        ("org.example:a:1", "a-1.jar", "maven/org/example/a/1/a-1.jar"),
        ("org.example:a:zip:1", "a-1.zip", "maven/org/example/a/1/a-1.zip"),
        ("g:a:tar.gz:bin:1", "a-1-bin.tar.gz", "maven/g/a/1/a-1-bin.tar.gz"),
        ("g:a:jar:linux-x86_64:1", "a-1-linux-x86_64.jar", "maven/g/a/1/a-1-linux-x86_64.jar"),
        ("name==1.0", "name-1.0.tar.gz", "pypi/name-1.0.tar.gz"),
    ],
)
def test_a_coordinate_reads_back_and_names_its_file(text: str, file_name: str, path: str) -> None:
    coordinate = Coordinate.parse(text)
    assert (str(coordinate), coordinate.file_name, str(coordinate.path)) == (text, file_name, path)


@pytest.mark.parametrize("text", ["", "a", "a:b", "a::1", "a:b:c:d:e:f", "name==", "==1"])
def test_what_is_no_coordinate_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is neither group:artifact"):
        Coordinate.parse(text)


def test_versions_are_filled_into_coordinates_and_packages(tmp_path: Path) -> None:
    bill = load(tmp_path, BILL)
    tool = bill.component("tool")
    assert (tool.version, tool.java) == ("1.2.3", "21")
    assert [str(artifact.coordinate) for artifact in tool.artifacts] == ["org.example:tool_1.2:1.2.3"]
    assert bill.debian.packages == {"java": "openjdk-21-jre-headless"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('tool: "1.2.3"', "tool: 1.2", "versions tool: 1.2 must be quoted"),
        ("into: lib", "into: lib, inot: x", "components.tool.layers.jars has unknown inot"),
        (", into: lib", "", "components.tool.layers.jars needs `into` or `unpack`"),
        ("pairs: []", "", "versions.yml lacks pairs"),
        ("{tool_minor}", "{toool}", "names a version that is not among `versions`"),
        ('java: "21"', 'java: "21', "not YAML"),
        ("pairs: []", "pairs: [{of: [tool, typo], allowed: []}]", "'typo' is not among `versions`"),
        ("bytes: 7, ", "", "lock.tool.jars[0] lacks bytes"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in BILL
    with pytest.raises(LakehouseError) as raised:
        load(tmp_path, BILL.replace(old, new))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_new_version_without_a_lock_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(LakehouseError, match=r"does not hold org.example:tool_1.3:1.3.0; next: .* lock"):
        load(tmp_path, BILL.replace('tool: "1.2.3"', 'tool: "1.3.0"'))


def test_a_missing_file_and_an_unknown_component_are_one_line(tmp_path: Path, ours: Manifest) -> None:
    with pytest.raises(LakehouseError, match="no such file"):
        manifest.load(tmp_path / "versions.yml")
    with pytest.raises(LakehouseError, match=r"no component 'spork'; known: catalog, flink, hadoop, hive"):
        ours.component("spork")


def test_every_file_of_ours_is_pinned_and_licensed(ours: Manifest) -> None:
    artifacts = list(ours.artifacts())
    assert len(artifacts) > 140
    for artifact in artifacts:
        assert len(bytes.fromhex(artifact.sha256)) == 32, artifact
        assert artifact.size > 0
        assert artifact.licence, artifact


def test_ours_holds_exactly_one_postgresql_driver_and_one_iceberg_runtime(ours: Manifest) -> None:
    names = [artifact.coordinate.artifact for artifact in ours.artifacts()]
    assert names.count("postgresql") == 1
    assert len([name for name in names if name.startswith("iceberg-spark-runtime")]) == 1


def test_the_lock_is_sorted_and_has_no_file_twice(ours: Manifest) -> None:
    for component in ours.components.values():
        for layer in component.layers:
            coordinates = [artifact.coordinate for artifact in layer.artifacts]
            assert coordinates == sorted(set(coordinates)), f"{component.name}.{layer.name}"


def test_no_registry_stands_in_the_bill() -> None:
    text = (REPOSITORY / "versions.yml").read_text(encoding="utf-8")
    assert "http://" not in text
    assert "https://" not in text


def test_the_digest_follows_content_and_nothing_else(tmp_path: Path) -> None:
    digest = load(tmp_path, BILL).component("tool").digest
    assert load(tmp_path, BILL.replace("MIT", "Apache-2.0")).component("tool").digest == digest
    assert load(tmp_path, BILL.replace(SHA, "1" * 64)).component("tool").digest != digest
    assert load(tmp_path, BILL.replace("into: lib", "into: jars")).component("tool").digest != digest


def test_our_versions_were_run_together(ours: Manifest) -> None:
    assert manifest.pair_findings(ours.pairs, ours.versions) == []


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ({"hive": "4.0.1"}, "hive 4.0.1 with spark 4.1.4: lacks get_table"),
        ({"hive": "4.0.0"}, "hive 4.0.0 with spark 4.1.4: rewrites tables"),
        (
            {"iceberg": "1.9.0"},
            "iceberg 1.9.0 with spark 4.1.4: never tested together; allowed: 1.11.0, 1.12.0",
        ),
        ({"spark": "3.5.1"}, "spark 3.5.1 with delta 4.4.0: never tested together; allowed: 4.1.x"),
        ({"java": "25"}, "java 25 with spark 4.1.4: Spark 4.1 does not run on it; allowed: 21"),
        ({"pgjdbc": "9.4"}, "pgjdbc 9.4 with postgresql 17: cannot answer the SCRAM"),
    ],
)
def test_an_untested_pair_is_one_line(ours: Manifest, change: dict[str, str], finding: str) -> None:
    findings = manifest.pair_findings(ours.pairs, {**ours.versions, **change})
    assert any(line.startswith(finding) for line in findings), findings


def test_both_sides_unknown_lists_whole_combinations(ours: Manifest) -> None:
    findings = manifest.pair_findings(ours.pairs, {"hive": "2.3.9", "spark": "3.5.1"})
    assert findings == [
        "hive 2.3.9 with spark 3.5.1: never tested together; allowed: hive 3.1.3 with spark 4.1.x"
    ]


def test_versions_that_a_cluster_does_not_have_are_not_checked(ours: Manifest) -> None:
    assert manifest.pair_findings(ours.pairs, {"hive": "4.0.1"}) == []


def test_the_lock_line_parts_the_file_once() -> None:
    text = (REPOSITORY / "versions.yml").read_text(encoding="utf-8")
    human, _, locked = text.partition("# LOCK:")
    assert "lock" not in yaml.safe_load(human)
    assert list(yaml.safe_load(locked.partition("\n")[2])) == ["lock"]
