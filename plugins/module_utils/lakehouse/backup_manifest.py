"""What a backup says of itself, checked field by field wherever it is read.

The host that keeps backups writes it, and its checksum lies beside it: to every other machine it is text of a
stranger. Standard library only: this runs on the nodes and on the control machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from plugins.module_utils.lakehouse.checked_document import (
    DocumentError,
    Kind,
    Optional,
    any_of,
    checked,
    count,
    flag,
    line,
    mapping,
    number,
    relative,
    shown,
    string,
    text,
    time,
    unchecked,
)

NAME = re.compile(r"\d{8}T\d{6}Z")
# Of a row of the catalog: a table of 100,000 columns takes a third of it.
LINE_BYTES = 32 << 20
_LABEL = re.compile(r"\d{8}-\d{6}F(?:_\d{8}-\d{6}[DI])?")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_PART = re.compile(r"(?:namenode/)?[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_IDENTITY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_VERSION = re.compile(r"\d[\w.+~: ()-]{0,99}")
_POSITION = re.compile(r"[0-9A-F]{1,8}/[0-9A-F]{1,8}")
_PERMISSION = re.compile(r"[0-7]{3,4}")
_FORMAT = re.compile(r"iceberg|delta|hive|view")
_KIND = re.compile(r"text|whole|real|time")
_IMAGE = re.compile(r"namenode/fsimage_(\d{1,20})")


def manifest(document: Any) -> dict[str, Any]:
    """Return a manifest; DocumentError with the first field that is wrong."""
    return dict(checked(document, _MANIFEST, "the manifest"))


def verified(document: Any) -> dict[str, Any]:
    """Return what `verify` answers: problems, or the manifest of a good backup."""
    answer = _judged(document)
    return answer if answer["problems"] else dict(checked(answer, _MANIFEST, "the manifest"))


def verified_part(document: Any) -> dict[str, Any]:
    """Return what `verify` answers of a table or a database: problems, or what it has."""
    answer = _judged(document)
    return answer if answer["problems"] else dict(checked(answer, _CHOSEN, "the answer"))


def _judged(document: Any) -> dict[str, Any]:
    return dict(checked(document, {"name": NAME, "problems": [text]}, "the answer"))


def room(document: Any) -> dict[str, Any]:
    """Return what `verify --room` answers beside it: bytes, of which those that HDFS lacks may be unknown."""
    return dict(checked(document, {"room": count, "lacking": Optional(count)}, "the answer"))


def listed(document: Any) -> list[dict[str, Any]]:
    """Return what `list` answers: names, the oldest first, each with what is known to be damaged."""
    return list(checked(document, [{"name": NAME, "problems": [text]}], "the answer"))


def damage(document: Any) -> dict[str, Any]:
    """Return what a verification has noted; an earlier release noted the files alone."""
    if isinstance(document, list):
        document = {"files": document, "problems": [problem(path) for path in document]}
    return dict(checked(document, {"files": [relative], "problems": [text]}, "the damage"))


def problem(path: Any) -> str:
    """Return the line about a damaged file of a copy."""
    return f"files/{path} is not as it was written"


def brought(document: Any) -> dict[str, Any]:
    """Return what `reconcile` answers."""
    kinds = {"written": count, "bytes": count, "aside": count, "place": line}
    return dict(checked(document, kinds, "the answer"))


def compared(document: Any) -> dict[str, Any]:
    """Return what `compare` answers."""
    return dict(checked(document, {"differences": [text]}, "the answer"))


def last(document: Any) -> dict[str, Any]:
    """Return what came of the last backup."""
    kinds = {
        "good": any_of(re.compile(""), NAME),
        "why": text,
        "began": time,
        "damaged": Optional([NAME]),
    }
    return dict(checked(document, kinds, "the last backup"))


def database(document: Any) -> dict[str, Any]:
    """Return what PostgreSQL's host says of its part of a backup."""
    return dict(checked(document, _DATABASE, "PostgreSQL's part"))


def backups(document: Any) -> list[dict[str, Any]]:
    """Return what PostgreSQL's host says of the backups in its repository."""
    return list(checked(document, [{"label": _LABEL}], "PostgreSQL's repository"))


def entry(document: Any) -> dict[str, Any]:
    """Return a line of the list of files."""
    return dict(checked(document, _ENTRY, "the list of files"))


def catalog(document: Any) -> dict[str, Any]:
    """Return the catalog of a backup."""
    return dict(checked(document, _CATALOG, "the catalog"))


def catalog_row(document: Any) -> tuple[str, dict[str, Any]]:
    """Return the kind of a row of the catalog, and the row."""
    if not isinstance(document, dict) or len(document) != 1 or not document.keys() <= _ROWS.keys():
        raise DocumentError("the catalog: a row is neither a database, a table nor a partition")
    [(kind, row)] = document.items()
    return kind, dict(checked(row, _ROWS[kind], f"the catalog: {kind}"))


def image(parts: Mapping[str, str]) -> tuple[dict[str, str], int]:
    """Return the digests of the NameNode's files by name, and the transaction of its image."""
    numbers = [int(match[1]) for part in parts if (match := _IMAGE.fullmatch(part))]
    if len(numbers) != 1:
        raise DocumentError(f"the manifest: parts: {len(numbers)} images of the NameNode and not one")
    files = {part.removeprefix("namenode/"): digest for part, digest in parts.items() if "/" in part}
    return files, numbers[0]


def _column(value: Any, where: str) -> list[str]:
    if not isinstance(value, list) or len(value) != 2:  # noqa: PLR2004 -- a name and a kind
        raise DocumentError(f"{where}: {shown(value)} is no column")
    return [line(value[0], where), checked(value[1], _KIND, where)]


_TABLE: dict[str, Kind] = {
    "database": line,
    "name": line,
    "format": _FORMAT,
    "location": line,
    "metadata": line,
    "version": Optional(number),
    "state": line,
    "rows": Optional(count),
    "checksum": Optional(number),
    "columns": [_column],
    "unknown": text,
}
_DATABASE: dict[str, Kind] = {
    "label": _LABEL,
    "restore_point": NAME,
    "lsn": Optional(_POSITION),
    "at": time,
    "bytes": count,
    "version": Optional(_VERSION),
}
_MANIFEST: dict[str, Kind] = {
    "name": NAME,
    "cluster": _IDENTITY,
    "began": Optional(time),
    "ended": Optional(time),
    "took": Optional(mapping(re.compile(r"[a-z ]{1,40}"), time)),
    "database": _DATABASE,
    "hdfs": {"at": time, "root": Optional(line), "snapshot": Optional(NAME)},
    "bytes": count,
    "fetched": Optional(count),
    "files": Optional(count),
    "tables": [_TABLE],
    "parts": mapping(_PART, _DIGEST),
}
_ENTRY: dict[str, Kind] = {
    "path": relative,
    "directory": flag,
    "owner": line,
    "group": line,
    "permission": _PERMISSION,
    "length": count,
    "modified": count,
    "replication": count,
    "file_id": count,
    "acl": [line],
    "sha256": any_of(re.compile(""), _DIGEST),
}
_STORAGE: dict[str, Kind] = {
    "location": Optional(line),
    "input": Optional(string),
    "output": Optional(string),
    "compressed": flag,
    "subfolders": flag,
    "buckets": number,
    "columns": [{"name": string, "type": string, "comment": Optional(string)}],
    "bucketed": [string],
    "parameters": unchecked,
    "serde": Optional({"parameters": unchecked}),
}
_PARTITION: dict[str, Kind] = {
    "values": Optional([string]),
    "parameters": unchecked,
    "storage": _STORAGE,
}
_CATALOG_ROW: dict[str, Kind] = {
    "database": line,
    "name": line,
    "type": line,
    "parameters": unchecked,
    "keys": [{"name": string, "type": string, "comment": Optional(string)}],
    "storage": Optional(_STORAGE),
}
_CATALOG_TABLE: dict[str, Kind] = {**_CATALOG_ROW, "partitions": [_PARTITION]}
_HOME: dict[str, Kind] = {"name": line, "location": line, "parameters": unchecked}
_CATALOG: dict[str, Kind] = {"databases": [_HOME], "tables": [_CATALOG_TABLE]}
_ROWS: dict[str, Kind] = {
    "database": _HOME,
    "table": _CATALOG_ROW,
    "partition": {"database": line, "table": line, **_PARTITION},
}
_CHOSEN: dict[str, Kind] = {
    "name": NAME,
    "cluster": _IDENTITY,
    "tables": [_TABLE],
    "entries": [_CATALOG_TABLE],
    "databases": [_HOME],
    "room": {"copy": count, "lacking": count},
}
