"""Contents of a Delta table from its log: JSON commits, and checkpoints as Spark has read them.

Reference: https://github.com/delta-io/delta/blob/master/PROTOCOL.md (actions, checkpoints, column mapping).
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from lakehouse.catalog import partition_names
from lakehouse.census.contents import Contents, DataFile, number
from lakehouse.census.files import MOST_ENTRIES, DamagedError, Entry, Files
from lakehouse.census.metastore import Table
from plugins.module_utils.lakehouse.counting import counted
from plugins.module_utils.lakehouse.webhdfs import path_of

# More commits than these are replayed from the newest checkpoint.
MOST_COMMITS = 200
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?\.parquet")
# Fields of an added file, and of its statistics, that are stored in memory.
_ADD_FIELDS = ("path", "size", "modificationTime", "partitionValues", "deletionVector")
_STATISTICS = ("numRecords", "nullCount")
_PHYSICAL_NAME = "delta.columnMapping.physicalName"
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|/")

Action = Mapping[str, Any]


class CheckpointError(DamagedError):
    """The commits since the first one are not there, or too many: a checkpoint has to be read, by Spark."""

    def __init__(self, log: Log) -> None:
        super().__init__(f"{log.folder} needs its checkpoint {log.checkpoint}")
        self.log = log


@dataclass(frozen=True)
class Log:
    """The files of a Delta log by version; `checkpoint` is the version of the newest whole checkpoint."""

    folder: str
    commits: Mapping[int, Entry]
    checkpoint: int | None = None
    checkpoint_files: tuple[str, ...] = ()
    checkpoints: int = 0

    @property
    def newest(self) -> int:
        """The version of the table."""
        return max([*self.commits, *([] if self.checkpoint is None else [self.checkpoint])])

    @property
    def version(self) -> str:
        """What changes with each commit, and with a table that is made again."""
        entry = self.commits.get(self.newest)
        return f"{self.newest}:{entry.bytes}:{entry.modified}" if entry else str(self.newest)


@dataclass(frozen=True)
class Checkpoint:
    """The actions of the newest checkpoint of a log, with that log: a newer one may have another."""

    log: Log
    actions: Iterable[Action]


@dataclass
class _State:
    """What replayed actions leave: files by path and deletion vector."""

    protocol: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    files: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)

    def apply(self, actions: Iterable[Action]) -> None:
        for action in actions:
            if add := action.get("add"):
                self.files[_identity(add)] = _reduced(add)
                if len(self.files) > MOST_ENTRIES:
                    raise DamagedError(f"it has more than {MOST_ENTRIES} files")
            elif removed := action.get("remove"):
                self.files.pop(_identity(removed), None)
            self.protocol = action.get("protocol") or self.protocol
            self.metadata = action.get("metaData") or self.metadata


def log(table: Table, files: Files) -> Log:
    """Return the log of a table; DamagedError where it has none, UnavailableError."""
    folder = posixpath.join(table.location, "_delta_log")
    commits: dict[int, Entry] = {}
    parts: dict[int, dict[tuple[int, int], str]] = {}
    for entry in files.entries(folder) or ():
        name = posixpath.basename(entry.path)
        if match := _COMMIT.fullmatch(name):
            commits[int(match[1])] = entry
        elif match := _CHECKPOINT.fullmatch(name):
            parts.setdefault(int(match[1]), {})[int(match[2] or 1), int(match[3] or 1)] = entry.path
    whole = {version: _whole(paths) for version, paths in parts.items()}
    newest = max((version for version, paths in whole.items() if paths), default=None)
    if not commits and newest is None:
        raise DamagedError(f"{folder} has no commit")
    return Log(folder, commits, newest, whole[newest] if newest is not None else (), len(parts))


def _whole(parts: Mapping[tuple[int, int], str]) -> tuple[str, ...]:
    """Return the files of a checkpoint in one file, or of one in several if all are there."""
    for count in sorted({of for _, of in parts}):
        paths = tuple(parts.get((number, count), "") for number in range(1, min(count, len(parts)) + 1))
        if len(paths) == count and all(paths):
            return paths
    return ()


def collect(
    table: Table, known_log: Log, files: Files, checkpoint: Iterable[Action] | None = None
) -> Contents:
    """Return the contents of the newest version of a table; DamagedError, UnavailableError.

    CheckpointError where the actions of the newest checkpoint are needed, and not given.
    """
    state = _State()
    first = 0
    if checkpoint is not None and known_log.checkpoint is not None:
        state.apply(checkpoint)
        first = known_log.checkpoint + 1
    versions = range(first, known_log.newest + 1)
    missing = next((version for version in versions if version not in known_log.commits), None)
    if checkpoint is None and known_log.checkpoint is not None and (
        missing is not None or len(versions) > MOST_COMMITS
    ):  # fmt: skip
        raise CheckpointError(known_log)
    if missing is not None:
        raise DamagedError(f"{known_log.folder} has no commit {missing}")
    for version in versions:
        entry = known_log.commits[version]
        content = files.read(entry.path)
        if len(content) != entry.bytes:
            raise DamagedError(f"{entry.path} has {counted(len(content), 'byte')}, {entry.bytes} are listed")
        state.apply(_actions(entry.path, content))
    try:
        return _contents(table, known_log, state)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise DamagedError(f"{known_log.folder} is damaged: {str(error) or type(error).__name__}") from None


def _actions(path: str, content: bytes) -> list[Action]:
    try:
        actions = [json.loads(line) for line in content.splitlines() if line.strip()]
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{path} is damaged: {error}") from None
    if not actions or not all(_is_action(action) for action in actions):
        raise DamagedError(f"{path} is damaged: it has no action, or one that is no object")
    return actions


def _is_action(action: Any) -> bool:
    return isinstance(action, dict) and all(isinstance(value, dict | None) for value in action.values())


def _reduced(add: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an added file without minima and maxima of its columns, which are most of its bytes."""
    statistics = _statistics(add.get("stats"))
    fields = {name: add[name] for name in _ADD_FIELDS if name in add}
    return {**fields, "stats": {name: statistics[name] for name in _STATISTICS if name in statistics}}


def _identity(action: Mapping[str, Any]) -> tuple[str, str]:
    vector = action.get("deletionVector")
    if not isinstance(vector, dict):
        return str(action.get("path")), ""
    identity = (vector.get("storageType"), vector.get("pathOrInlineDv"), vector.get("offset"))
    return str(action.get("path")), ":".join(map(str, identity))


def _contents(table: Table, known_log: Log, state: _State) -> Contents:
    if not state.metadata:
        raise DamagedError(f"{known_log.folder} has no metadata")
    schema = json.loads(state.metadata.get("schemaString") or "{}")
    names = {
        str((column.get("metadata") or {}).get(_PHYSICAL_NAME) or column["name"]): str(column["name"])
        for column in schema.get("fields") or ()
    }
    keys = [str(name) for name in state.metadata.get("partitionColumns") or ()]
    listed = [_file(table, add, names, keys) for add in state.files.values()]
    newest = known_log.commits.get(known_log.newest)
    facts = {
        "format": "delta",
        "format_version": number(state.protocol.get("minReaderVersion") or 1, "minReaderVersion"),
        "table_version": known_log.newest,
        "log_files": len(known_log.commits),
        "checkpoints": known_log.checkpoints,
        "deletion_vectors": sum(bool(vector) for _, vector in state.files),
        "last_commit": newest.modified if newest else None,
    }
    return Contents(
        name=table.name,
        table_type="DELTA",
        location=table.location,
        owner=table.owner,
        schema=json.dumps(schema, separators=(",", ":")),
        partition_keys=dict.fromkeys(keys, "identity"),
        modified=newest.modified if newest else None,
        files=sorted(listed, key=lambda file: file.path),
        facts=facts,
    )


def _file(table: Table, add: Mapping[str, Any], names: Mapping[str, str], keys: Sequence[str]) -> DataFile:
    by_name = {
        names.get(str(key), str(key)): value for key, value in (add.get("partitionValues") or {}).items()
    }
    statistics = add["stats"]
    rows = _rows(statistics.get("numRecords"), add.get("deletionVector") or {})
    modified = add.get("modificationTime")
    return DataFile(
        path=_path(table.location, str(add["path"])),
        bytes=number(add["size"], "size"),
        partition=tuple((key, _value(by_name.get(key))) for key in keys),
        rows=rows,
        format="parquet",
        modified=None if modified is None else number(modified, "modificationTime"),
        columns_statistics=_columns_statistics(statistics, names),
    )


def _rows(rows: Any, vector: Mapping[str, Any]) -> int | None:
    """Return the rows of a file without those that its deletion vector deletes; None if unknown."""
    if rows is None:
        return None
    return number(number(rows, "numRecords") - number(vector.get("cardinality") or 0, "cardinality"), "rows")


def _value(value: Any) -> str:
    """Return the text of a value of a partition; in the log, an empty one is NULL."""
    return partition_names.NOTHING if value in {None, ""} else str(value)


def _path(location: str, path: str) -> str:
    """Return the path of a file: in the log it is a URI, relative to the table or not."""
    plain = unquote(path)
    uri = plain if _ABSOLUTE.match(plain) else posixpath.join(location, plain)
    return path_of(uri) or uri


def _statistics(text: Any) -> Mapping[str, Any]:
    """Return the statistics of a file; empty where its writer has left none, or none that can be read."""
    try:
        statistics = json.loads(text) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        return {}
    return statistics if isinstance(statistics, dict) else {}


def _columns_statistics(statistics: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, str]:
    """Return the number of nulls by column, as JSON; minima and maxima are cell values, which stay out."""
    counts = statistics.get("nullCount")
    return {
        names.get(column, column): json.dumps({"nullsCount": count})
        for column, count in (counts.items() if isinstance(counts, dict) else ())
        if isinstance(count, int)
    }
