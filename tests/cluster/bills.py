"""Bills of materials like the kit's, but for one thing: another version, or a release that is broken."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from lakehouse.artifacts import manifest
from lakehouse.artifacts.compiling import Sources
from lakehouse.artifacts.coordinates import Coordinate
from lakehouse.artifacts.manifest import Artifact, Layer, Manifest
from lakehouse.run import BUILD, ROOT

# Another version's files with their sha256 and size, by the name of the artifact: all on Maven Central.
_ICEBERG = {
    "iceberg-spark-runtime-4.1_2.13": (
        "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82", 48309426),
}  # fmt: skip
_DELTA = {
    "delta-kernel-api": ("b081b818d6f5686c7d6406588af72c9f8baf6765a41ada8197364aef90a260e8", 2823032),
    "delta-kernel-defaults": ("27471cca7dd7a36289af2c8d52d2babb37e9e5a13cdaaea76730120f4c72e62f", 225733),
    "delta-kernel-unitycatalog": ("a288342b7e53da34a608a1a227c8109aa4681fcb582da499ed19347f2193362b", 41872),
    "delta-spark_4.1_2.13": ("ebf35a4383f0a653c3ee3c7882c0edcac2f846be31ac61af4b96ccfaaf36c171", 9021481),
    "delta-storage": ("577c12c7e371be4c041714fb48e88ad86e3c3512beea2bdaffbe7a4debf79718", 110970),
}

# Hive publishes the tests of its client with the metastore; they need this JUnit.
_CLIENT_TESTS = {
    "org.apache.hive:hive-standalone-metastore:jar:tests:{hive}": (
        "6cdfcd8fe0263b8b5228ba9280aaecf03a22cf3ffd7380aef174be4ae9c2d454", 603147),
    "junit:junit:4.11": ("90a8e1603eeca48e7e879f3afbc9560715322985f39a274f6f6070b43f9d06fe", 245039),
    "org.hamcrest:hamcrest-core:1.3": (
        "66fdef91e9739348df7a096aa384a5685f4e875584cce89386a7a47251c4d8e9", 45024),
}  # fmt: skip


def iceberg() -> str:
    """Iceberg 1.12.0 for Spark. For this Flink there is none: it keeps its own."""
    return _written("iceberg-1.12.0", _bumped("iceberg", "1.12.0", _ICEBERG, keep="{flink_minor}"))


def older_iceberg() -> str:
    """An Iceberg before the kit's, said to run with everything: for a plan, of which nothing is fetched."""
    found = re.search(r'^  iceberg: "([^"]+)"', text := _text(), re.MULTILINE)
    assert found
    return _written("iceberg-1.0.0", text.replace(found[1], "1.0.0"))


def delta() -> str:
    """Delta 4.3.1, from which 4.4.0 is an upgrade."""
    return _written("delta-4.3.1", _bumped("delta", "4.3.1", _DELTA))


def hadoop() -> str:
    """Hadoop 3.4.2, from which 3.5.0 is an upgrade of HDFS; most of its files are others."""
    text, version = _text(), "3.4.2"
    files: dict[str, list[str]] = {}
    for line in Path(__file__).with_name(f"hadoop-{version}.lock").read_text(encoding="utf-8").splitlines():
        layer, coordinate, sha256, size = line.split()
        locked = f'{{coordinate: "{coordinate}", sha256: "{sha256}", bytes: {size}, licence: NOASSERTION}}'
        files.setdefault(layer, []).append(f"      - {locked}\n")
    block = "".join(f"    {layer}:\n{''.join(lines)}" for layer, lines in files.items())
    text, lock = re.sub(
        r'^  hadoop: "[^"]+"', f'  hadoop: "{version}"', text, count=1, flags=re.MULTILINE
    ).split("\nlock:\n")
    lock, count = re.subn(
        r"^  hadoop:\n(    .*\n)+", f"  hadoop:\n{block}", lock, count=1, flags=re.MULTILINE
    )
    assert count == 1
    return _written(f"hadoop-{version}", f"{text}\nlock:\n{lock}")


def broken_trino() -> str:
    """The Trino of the kit without the plugin that its catalogs need: it starts, and ends."""
    text, line = _text(), "          plugin/iceberg: plugin/iceberg\n"
    assert line in text
    return _written("trino-broken", text.replace(line, ""))


def hive_client_tests(name: str) -> Manifest:
    """Hive's metastore without the kit's guard; in `<name>/` Hive's client tests and their runner."""
    bill = manifest.load(ROOT / "versions.yml")
    hive = bill.component("hive")
    [guard] = [layer for layer in hive.layers if layer.sources]
    tests = tuple(
        Artifact(Coordinate.parse(text.format(hive=hive.version)), sha256, size, "NOASSERTION")
        for text, (sha256, size) in _CLIENT_TESTS.items()
    )
    published = Layer(
        name="published", roots=tuple(item.coordinate for item in tests), closure=False, wheels=None,
        into=name, unpack={}, drop=(), expand=(), artifacts=tests,
    )  # fmt: skip
    runner = replace(
        guard, name="runner", into=name, sources=Sources.read(Path(__file__).with_name("hive_client_tests"))
    )
    # What is compiled is compiled against the layers above it.
    layers = (*(layer for layer in hive.layers if not layer.sources), published, runner)
    component = replace(hive, name=name, layers=layers)
    return replace(bill, components={name: component})


def _bumped(name: str, version: str, files: Mapping[str, tuple[str, int]], keep: str = "") -> str:
    text = _text()
    found = re.search(rf'^  {name}: "([^"]+)"', text, re.MULTILINE)
    assert found
    old = found[1]
    text = text.replace(found[0], f'  {name}: "{version}"', 1)
    if keep:
        text = text.replace(f"{keep}:{{{name}}}", f"{keep}:{old}")
    for artifact, (sha256, size) in files.items():
        locked = rf'({re.escape(artifact)}):{re.escape(old)}", sha256: "\w+", bytes: \d+'
        text, count = re.subn(locked, rf'\1:{version}", sha256: "{sha256}", bytes: {size}', text)
        assert count == 1, artifact
    return text


def _text() -> str:
    return (ROOT / "versions.yml").read_text(encoding="utf-8")


def _written(name: str, text: str) -> str:
    path = Path(BUILD, "bills", f"{name}.yml")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path.relative_to(ROOT))
