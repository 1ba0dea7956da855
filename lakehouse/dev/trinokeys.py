"""Which configuration keys Trino knows, read from its classes: `python -m lakehouse.dev.trinokeys`.

Trino declares a key by the annotation `@Config` on a setter. The keys of the server and of every connector
in the release are written to `lakehouse/validation/keys/trino.txt`, so that a misspelt key is refused
before a service that would not start again is stopped. To be run when the version of Trino changes.
"""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from lakehouse import artifacts
from lakehouse.artifacts import manifest, releases
from lakehouse.dev import keyfiles
from lakehouse.dev.classfiles import Reader, constant_texts
from lakehouse.run import ROOT
from lakehouse.validation import keylists, trino

PROGRAM = "lakehouse.dev.trinokeys"
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


def keys_of_class(data: bytes) -> set[str]:
    """The keys that the setters of one compiled class declare; the format is chapter 4 of the JVM's book."""
    if not any(name in data for name in ANNOTATIONS):
        return set()
    reader = Reader(data[8:])
    texts, _ = constant_texts(reader)
    reader.take(6)
    reader.take(2 * reader.number(2))
    keys: set[str] = set()
    for _ in ("fields", "methods"):
        for _ in range(reader.number(2)):
            reader.take(6)
            for name, body in _attributes(reader, texts):
                if name == b"RuntimeVisibleAnnotations":
                    keys |= set(_annotated(Reader(body), texts))
    return keys


def _attributes(reader: Reader, texts: dict[int, bytes]) -> Iterator[tuple[bytes, bytes]]:
    for _ in range(reader.number(2)):
        name = texts[reader.number(2)]
        yield name, reader.take(reader.number(4))


def _annotated(reader: Reader, texts: dict[int, bytes]) -> Iterator[str]:
    for _ in range(reader.number(2)):
        is_annotated = texts[reader.number(2)] in ANNOTATIONS
        for _ in range(reader.number(2)):
            reader.take(2)
            yield from (text.decode() for text in _element(reader, texts) if is_annotated)


def _element(reader: Reader, texts: dict[int, bytes]) -> Iterator[bytes]:
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
    """Return the keys by plugin (the folder's name), and those of the server itself under `server`."""
    keys_by_jar: dict[str, set[str]] = {}
    keys_by_owner: dict[str, set[str]] = {}
    with tarfile.open(archive) as tar:
        for info in tar:
            path = PurePosixPath(info.name)
            if path.suffix != ".jar" or path.parts[0] not in ("lib", "plugin"):
                continue
            if info.islnk():
                keys_by_jar[info.name] = keys_by_jar[info.linkname]
            else:
                stream = tar.extractfile(info)
                assert stream is not None  # noqa: S101 (it is a regular file)
                keys_by_jar[info.name] = keys_of_jar(stream.read())
            owner = "server" if path.parts[0] == "lib" else path.parts[1]
            keys_by_owner.setdefault(owner, set()).update(keys_by_jar[info.name])
    return keys_by_owner


def extracted(bill: manifest.Manifest, archive: Path) -> dict[str, list[str]]:
    """Return the contents of the list of keys."""
    keys = keys_of_release(archive)
    shared = set.intersection(*(keys[folder] for folder in CONNECTORS.values()))
    return {
        keylists.VERSION: [bill.versions["trino"]],
        "server": sorted(keys["server"]),
        "catalogs": sorted(shared),
        **{trino.CONNECTOR + name: sorted(keys[folder] - shared) for name, folder in CONNECTORS.items()},
    }


def main() -> None:
    """Write the file."""
    bill = manifest.load(ROOT / "versions.yml")
    archive = releases.verified(bill, "trino", artifacts.cache_dir())
    keyfiles.write("trino", PROGRAM, extracted(bill, archive))


if __name__ == "__main__":
    main()
