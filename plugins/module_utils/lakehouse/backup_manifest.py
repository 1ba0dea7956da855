"""What a backup says of itself, checked field by field wherever it is read.

The host that keeps backups writes it, and its checksum lies beside it: to every other machine it is text of a
stranger. A name becomes a path, a word of a shell or of SQL only after it has passed here. Standard library
only: this runs on the nodes and on the control machine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

NAME = re.compile(r"\d{8}T\d{6}Z")
# Of a manifest, of the list of files and of the catalog; a million files take a third of it.
MOST_BYTES = 1 << 30
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
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SHOWN = 60
# Before the path of a place. Hadoop's Path reads neither %XX nor a question mark in it.
_AUTHORITY = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:(?://[^/]*)?(?=/|$)")
# As far as a year has four digits.
_LAST_SECOND = 253402300800
Kind = Any


class ManifestError(ValueError):
    """A field that is not what it has to be, in one line."""


def parse(text: str | bytes, what: str) -> Any:
    """Return what a text of JSON holds; ManifestError for one that is too long, too deep or no JSON."""
    if len(text) > MOST_BYTES:
        raise ManifestError(f"{what} is longer than {MOST_BYTES >> 20} MiB")
    try:
        return json.loads(text)
    except RecursionError:
        raise ManifestError(f"{what} is nested too deeply") from None
    except ValueError as error:
        raise ManifestError(f"{what} is no JSON: {printable(str(error))}") from None


def manifest(document: Any) -> dict[str, Any]:
    """Return a manifest; ManifestError with the first field that is wrong."""
    return dict(_checked(document, _MANIFEST, "the manifest"))


def verified(document: Any) -> dict[str, Any]:
    """Return what `verify` answers: problems, or the manifest of a good backup."""
    found = _judged(document)
    return found if found["problems"] else dict(_checked(found, _MANIFEST, "the manifest"))


def verified_part(document: Any) -> dict[str, Any]:
    """Return what `verify` answers of a table or a database: problems, or what it has."""
    found = _judged(document)
    return found if found["problems"] else dict(_checked(found, _CHOSEN, "the answer"))


def _judged(document: Any) -> dict[str, Any]:
    return dict(_checked(document, {"name": NAME, "problems": [_text]}, "the answer"))


def room(document: Any) -> dict[str, Any]:
    """Return what `verify --room` answers beside it: bytes, of which those that HDFS lacks may be unknown."""
    return dict(_checked(document, {"room": _count, "lacking": _optional(_count)}, "the answer"))


def listed(document: Any) -> list[dict[str, Any]]:
    """Return what `list` answers: names, the oldest first, each with what is known to be damaged."""
    return list(_checked(document, [{"name": NAME, "problems": [_text]}], "the answer"))


def damage(document: Any) -> dict[str, Any]:
    """Return what a verification has noted; an earlier release noted the files alone."""
    if isinstance(document, list):
        document = {"files": document, "problems": [problem(path) for path in document]}
    return dict(_checked(document, {"files": [relative], "problems": [_text]}, "the damage"))


def problem(path: Any) -> str:
    """Return the line about a damaged file of a copy."""
    return f"files/{path} is not as it was written"


def brought(document: Any) -> dict[str, Any]:
    """Return what `reconcile` answers."""
    kinds = {"written": _count, "bytes": _count, "aside": _count, "place": _line}
    return dict(_checked(document, kinds, "the answer"))


def compared(document: Any) -> dict[str, Any]:
    """Return what `compare` answers."""
    return dict(_checked(document, {"differences": [_text]}, "the answer"))


def last(document: Any) -> dict[str, Any]:
    """Return what came of the last backup."""
    kinds = {
        "good": _any_of(re.compile(""), NAME),
        "why": _text,
        "began": _time,
        "damaged": _optional([NAME]),
    }
    return dict(_checked(document, kinds, "the last backup"))


def database(document: Any) -> dict[str, Any]:
    """Return what PostgreSQL's host says of its part of a backup."""
    return dict(_checked(document, _DATABASE, "PostgreSQL's part"))


def backups(document: Any) -> list[dict[str, Any]]:
    """Return what PostgreSQL's host says of the backups in its repository."""
    return list(_checked(document, [{"label": _LABEL}], "PostgreSQL's repository"))


def entry(document: Any) -> dict[str, Any]:
    """Return a line of the list of files."""
    return dict(_checked(document, _ENTRY, "the list of files"))


def catalog(document: Any) -> dict[str, Any]:
    """Return the catalog of a backup."""
    return dict(_checked(document, _CATALOG, "the catalog"))


def catalog_row(document: Any) -> tuple[str, dict[str, Any]]:
    """Return the kind of a row of the catalog, and the row."""
    if not isinstance(document, dict) or len(document) != 1 or not document.keys() <= _ROWS.keys():
        raise ManifestError("the catalog: a row is neither a database, a table nor a partition")
    [(kind, row)] = document.items()
    return kind, dict(_checked(row, _ROWS[kind], f"the catalog: {kind}"))


def image(parts: Mapping[str, str]) -> tuple[dict[str, str], int]:
    """Return the digests of the NameNode's files by name, and the transaction of its image."""
    numbers = [int(found[1]) for part in parts if (found := _IMAGE.fullmatch(part))]
    if len(numbers) != 1:
        raise ManifestError(f"the manifest: parts: {len(numbers)} images of the NameNode and not one")
    own = {part.removeprefix("namenode/"): known for part, known in parts.items() if "/" in part}
    return own, numbers[0]


def printable(text: str) -> str:
    """Return a text that moves no cursor: control characters are replaced."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


# -- Kinds: a pattern, a function of a value, a list of one, a mapping of several --


def _checked(value: Any, kind: Kind, where: str) -> Any:
    """Return a value of a kind; ManifestError with where it is for any other."""
    if isinstance(kind, re.Pattern):
        if not isinstance(value, str) or not kind.fullmatch(value):
            raise ManifestError(f"{where}: {shown(value)} is not allowed there")
        return value
    if isinstance(kind, list):
        if not isinstance(value, list):
            raise ManifestError(f"{where}: {shown(value)} is no list")
        return [_checked(one, kind[0], f"{where}: {number}") for number, one in enumerate(value)]
    if isinstance(kind, dict):
        if not isinstance(value, dict):
            raise ManifestError(f"{where}: {shown(value)} is no object")
        absent = [key for key in kind if key not in value and not isinstance(kind[key], _Optional)]
        if absent:
            raise ManifestError(f"{where}: {absent[0]} is missing")
        known = {key: _checked(value[key], kind[key], f"{where}: {key}") for key in kind if key in value}
        return {**value, **known}
    return kind(value, where)


class _Optional:
    """A field that may be missing or null."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def __call__(self, value: Any, where: str) -> Any:
        return None if value is None else _checked(value, self.kind, where)


_optional = _Optional


def _any_of(*patterns: re.Pattern[str]) -> Callable[[Any, str], str]:
    def check(value: Any, where: str) -> str:
        if not isinstance(value, str) or not any(one.fullmatch(value) for one in patterns):
            raise ManifestError(f"{where}: {shown(value)} is not allowed there")
        return value

    return check


def _of_names(keys: re.Pattern[str], kind: Kind) -> Callable[[Any, str], dict[str, Any]]:
    def check(value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ManifestError(f"{where}: {shown(value)} is no object")
        return {
            str(_checked(key, keys, where)): _checked(one, kind, f"{where}: {key}")
            for key, one in value.items()
        }

    return check


def _count(value: Any, where: str) -> int:
    if type(value) is not int or value < 0:
        raise ManifestError(f"{where}: {shown(value)} is no whole number of at least 0")
    return value


def _number(value: Any, where: str) -> int:
    if type(value) is not int:
        raise ManifestError(f"{where}: {shown(value)} is no whole number")
    return value


def _time(value: Any, where: str) -> float:
    if type(value) not in {int, float} or not 0 <= value < _LAST_SECOND:
        raise ManifestError(f"{where}: {shown(value)} is no time")
    return float(value)


def _flag(value: Any, where: str) -> bool:
    if type(value) is not bool:
        raise ManifestError(f"{where}: {shown(value)} is neither true nor false")
    return value


def _string(value: Any, where: str) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise ManifestError(f"{where}: {shown(value)} is no text")
    return value


def _text(value: Any, where: str) -> str:
    """A text that is shown to a person."""
    return printable(_string(value, where))


def _line(value: Any, where: str) -> str:
    """A name or a place: an engine lets its users choose most of it, but no control characters."""
    if _CONTROL.search(_string(value, where)):
        raise ManifestError(f"{where}: {shown(value)} has control characters")
    return str(value)


def path(uri: str) -> str:
    """Return the path of a place in HDFS, with a scheme or without: no letter of it stands for another."""
    return _AUTHORITY.sub("", uri).rstrip("/")


def relative(value: Any, where: str) -> str:
    """Return a path below the root of a copy, empty for the root; ManifestError for one that leads out."""
    path = _string(value, where)
    if path and any(part in {"", ".", ".."} for part in path.split("/")):
        raise ManifestError(f"{where}: {shown(value)} is no path below the root")
    return path


def _column(value: Any, where: str) -> list[str]:
    if not isinstance(value, list) or len(value) != 2:  # noqa: PLR2004 -- a name and a kind
        raise ManifestError(f"{where}: {shown(value)} is no column")
    return [_line(value[0], where), _checked(value[1], _KIND, where)]


def _object(value: Any, where: str) -> dict[str, Any]:
    return dict(_checked(value, {}, where))


def shown(value: Any) -> str:
    """Return the beginning of a value on one line, for a person who is told that it is wrong."""
    text = repr(value) if isinstance(value, (str, int, float, bool, type(None))) else type(value).__name__
    return printable(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


_TABLE: dict[str, Kind] = {
    "database": _line,
    "name": _line,
    "format": _FORMAT,
    "location": _line,
    "metadata": _line,
    "version": _optional(_number),
    "state": _line,
    "rows": _optional(_count),
    "checksum": _optional(_number),
    "columns": [_column],
    "unknown": _text,
}
_DATABASE: dict[str, Kind] = {
    "label": _LABEL,
    "restore_point": NAME,
    "lsn": _optional(_POSITION),
    "at": _time,
    "bytes": _count,
    "version": _optional(_VERSION),
}
_MANIFEST: dict[str, Kind] = {
    "name": NAME,
    "cluster": _IDENTITY,
    "began": _optional(_time),
    "ended": _optional(_time),
    "took": _optional(_of_names(re.compile(r"[a-z ]{1,40}"), _time)),
    "database": _DATABASE,
    "hdfs": {"at": _time, "root": _optional(_line), "snapshot": _optional(NAME)},
    "bytes": _count,
    "fetched": _optional(_count),
    "files": _optional(_count),
    "tables": [_TABLE],
    "parts": _of_names(_PART, _DIGEST),
}
_ENTRY: dict[str, Kind] = {
    "path": relative,
    "directory": _flag,
    "owner": _line,
    "group": _line,
    "permission": _PERMISSION,
    "length": _count,
    "modified": _count,
    "replication": _count,
    "file_id": _count,
    "acl": [_line],
    "sha256": _any_of(re.compile(""), _DIGEST),
}
_STORAGE: dict[str, Kind] = {
    "location": _optional(_line),
    "input": _optional(_string),
    "output": _optional(_string),
    "compressed": _flag,
    "subfolders": _flag,
    "buckets": _number,
    "columns": [{"name": _string, "type": _string, "comment": _optional(_string)}],
    "bucketed": [_string],
    "parameters": _object,
    "serde": _optional({"parameters": _object}),
}
_PARTITION: dict[str, Kind] = {
    "values": _optional([_string]),
    "parameters": _object,
    "storage": _STORAGE,
}
_CATALOG_ROW: dict[str, Kind] = {
    "database": _line,
    "name": _line,
    "type": _line,
    "parameters": _object,
    "keys": [{"name": _string, "type": _string, "comment": _optional(_string)}],
    "storage": _optional(_STORAGE),
}
_CATALOG_TABLE: dict[str, Kind] = {**_CATALOG_ROW, "partitions": [_PARTITION]}
_HOME: dict[str, Kind] = {"name": _line, "location": _line, "parameters": _object}
_CATALOG: dict[str, Kind] = {"databases": [_HOME], "tables": [_CATALOG_TABLE]}
_ROWS: dict[str, Kind] = {
    "database": _HOME,
    "table": _CATALOG_ROW,
    "partition": {"database": _line, "table": _line, **_PARTITION},
}
_CHOSEN: dict[str, Kind] = {
    "name": NAME,
    "cluster": _IDENTITY,
    "tables": [_TABLE],
    "entries": [_CATALOG_TABLE],
    "databases": [_HOME],
    "room": {"copy": _count, "lacking": _count},
}
