"""Which configuration keys Trino knows, read from its classes: `python -m lakehouse.dev.trinokeys`.

Trino declares a key by the annotation `@Config` on a setter. The keys of the server and of every connector
in the release are written to `lakehouse/validation/trino_keys.yml`, so that a misspelt key is refused
before a service that would not start again is stopped. To be run when the version of Trino changes.
"""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import yaml

from lakehouse import artifacts
from lakehouse.artifacts import manifest, releases
from lakehouse.run import ROOT

TARGET = ROOT / "lakehouse" / "validation" / "trino_keys.yml"
HEADER = (
    "# Written by `python -m lakehouse.dev.trinokeys` from the classes of the release; do not edit.\n---\n"
)
# What a catalog calls its connector, and the plugin that brings it.
CONNECTORS = {
    "blackhole": "blackhole",
    "delta_lake": "delta-lake",
    "hive": "hive",
    "iceberg": "iceberg",
    "jmx": "jmx",
    "mariadb": "mariadb",
    "memory": "memory",
    "mysql": "mysql",
    "postgresql": "postgresql",
    "sqlserver": "sqlserver",
    "tpcds": "tpcds",
    "tpch": "tpch",
}
# The keys that are read now, and those that are still accepted.
ANNOTATIONS = (b"Lio/airlift/configuration/Config;", b"Lio/airlift/configuration/LegacyConfig;")
# Of an entry in a class file's constant pool: how many bytes follow its tag.
_SIZES = {
    3: 4,
    4: 4,
    5: 8,
    6: 8,
    7: 2,
    8: 2,
    9: 4,
    10: 4,
    11: 4,
    12: 4,
    15: 3,
    16: 2,
    17: 4,
    18: 4,
    19: 2,
    20: 2,
}
_TEXT, _WIDE = 1, (5, 6)


class _Reader:
    """Numbers from the bytes of a class file, in their order."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def number(self, size: int) -> int:
        value = int.from_bytes(self.data[self.at : self.at + size], "big")
        self.at += size
        return value

    def take(self, size: int) -> bytes:
        value = self.data[self.at : self.at + size]
        self.at += size
        return value


def keys_of_class(data: bytes) -> set[str]:
    """The keys that the setters of one compiled class declare; the format is chapter 4 of the JVM's book."""
    if not any(name in data for name in ANNOTATIONS):
        return set()
    reader = _Reader(data[8:])
    texts = _constant_texts(reader)
    reader.take(6)
    reader.take(2 * reader.number(2))
    keys: set[str] = set()
    for _ in ("fields", "methods"):
        for _ in range(reader.number(2)):
            reader.take(6)
            for name, body in _attributes(reader, texts):
                if name == b"RuntimeVisibleAnnotations":
                    keys |= set(_annotated(_Reader(body), texts))
    return keys


def _constant_texts(reader: _Reader) -> dict[int, bytes]:
    texts = {}
    count, index = reader.number(2), 1
    while index < count:
        tag = reader.number(1)
        if tag == _TEXT:
            texts[index] = reader.take(reader.number(2))
        else:
            reader.take(_SIZES[tag])
        index += 2 if tag in _WIDE else 1
    return texts


def _attributes(reader: _Reader, texts: dict[int, bytes]) -> Iterator[tuple[bytes, bytes]]:
    for _ in range(reader.number(2)):
        name = texts[reader.number(2)]
        yield name, reader.take(reader.number(4))


def _annotated(reader: _Reader, texts: dict[int, bytes]) -> Iterator[str]:
    for _ in range(reader.number(2)):
        wanted = texts[reader.number(2)] in ANNOTATIONS
        for _ in range(reader.number(2)):
            reader.take(2)
            yield from (text.decode() for text in _element(reader, texts) if wanted)


def _element(reader: _Reader, texts: dict[int, bytes]) -> Iterator[bytes]:
    """Read an element's value; yields what it says where it is text."""
    tag = chr(reader.number(1))
    if tag == "e":
        reader.take(4)
    elif tag == "@":
        reader.take(2)
        for _ in range(reader.number(2)):
            reader.take(2)
            list(_element(reader, texts))
    elif tag == "[":
        for _ in range(reader.number(2)):
            yield from _element(reader, texts)
    else:
        index = reader.number(2)
        if tag == "s":
            yield texts[index]


def keys_of_jar(data: bytes) -> set[str]:
    """The keys that the classes of a jar declare."""
    with zipfile.ZipFile(io.BytesIO(data)) as jar:
        return {
            key
            for info in jar.infolist()
            if info.filename.endswith("Config.class")
            for key in keys_of_class(jar.read(info))
        }


def keys_of_release(archive: Path) -> dict[str, set[str]]:
    """The keys by plugin (the folder's name), and those of the server itself under `server`."""
    known: dict[str, set[str]] = {}
    found: dict[str, set[str]] = {}
    with tarfile.open(archive) as tar:
        for info in tar:
            path = PurePosixPath(info.name)
            if path.suffix != ".jar" or path.parts[0] not in ("lib", "plugin"):
                continue
            if info.islnk():
                known[info.name] = known[info.linkname]
            else:
                stream = tar.extractfile(info)
                assert stream is not None  # noqa: S101 (it is a regular file)
                known[info.name] = keys_of_jar(stream.read())
            owner = "server" if path.parts[0] == "lib" else path.parts[1]
            found.setdefault(owner, set()).update(known[info.name])
    return found


def main() -> None:
    """Write the file."""
    bill = manifest.load(ROOT / "versions.yml")
    archive = releases.verified(bill, "trino", artifacts.cache_dir())
    found = keys_of_release(archive)
    shared = set.intersection(*(found[folder] for folder in CONNECTORS.values()))
    data = {
        "version": bill.versions["trino"],
        "server": sorted(found["server"]),
        "catalogs": sorted(shared),
        "connectors": {name: sorted(found[folder] - shared) for name, folder in CONNECTORS.items()},
    }
    TARGET.write_text(HEADER + yaml.dump(data, Dumper=_Dumper, sort_keys=False), encoding="utf-8")


class _Dumper(yaml.SafeDumper):
    """Lists indented as the repository's YAML has them."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, False)


if __name__ == "__main__":
    main()
