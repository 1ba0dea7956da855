"""Commits of a Delta table from the files of its log.

Reference: https://github.com/delta-io/delta/blob/master/PROTOCOL.md (commitInfo, add, remove).
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from lakehouse.census.contents import number
from lakehouse.census.files import DamagedError
from lakehouse.timeline import commits
from lakehouse.timeline.commits import MOST_COMMITS, MOST_FILES, Commit, File, Files, Seen
from lakehouse.timeline.source import Table
from lakehouse.timeline.tree import Entry, Tree
from plugins.module_utils.lakehouse.webhdfs import path_of

_COMMIT = re.compile(r"(\d{20})\.json")
# Of one commit.
_MOST_BYTES = 64 << 20
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|/")
_NUMBERS = (
    "numFiles", "numOutputRows", "numOutputBytes", "numAddedFiles", "numRemovedFiles", "numDeletedRows",
    "numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted", "numTargetFilesAdded",
    "numTargetFilesRemoved",
)  # fmt: skip
# A folder that has changed so short a time before it was listed may change again in the same millisecond.
_UNSETTLED_MS = 2000


def look(table: Table, tree: Tree, state: str, now_ms: int) -> Seen:
    """Return the commits since the version of the last look; DamagedError, UnavailableError."""
    folder = posixpath.join(table.location, "_delta_log")
    previous = json.loads(state) if state else {}
    entry = tree.status(folder)
    if entry is None:
        raise DamagedError(f"{folder} is not there")
    settled = entry.modified if entry.modified < now_ms - _UNSETTLED_MS else 0
    if settled and settled == previous.get("modified"):
        return Seen(state)
    listed = {int(match[1]): file for file in tree.names(folder) if (match := _COMMIT.fullmatch(file.name))}
    last = int(previous.get("version", -1))
    versions = sorted(version for version in listed if version > last)[-MOST_COMMITS:]
    if not listed and not previous:
        raise DamagedError(f"{folder} has no commit")
    new_commits, fault = [], ""
    # The files of a table are those of all its commits; a checkpoint is a file of Parquet, which is not read.
    has_files = bool(previous.get("files", True)) and versions[:1] in ([last + 1], [])
    if not has_files:
        fault = f"its log begins with version {versions[0]}: its commits are kept without files"
    for version in versions:
        file = listed[version]
        try:
            actions = list(_actions(tree.read(f"{folder}/{file.name}", _MOST_BYTES)))
            new_commits.append(_commit(table, actions, file, has_files=has_files))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            has_files, fault = False, f"{file.name} is damaged: {str(error) or type(error).__name__}"
            new_commits.append(Commit(str(version), "unknown", file.modified, file.owner))
    next_state = {"version": versions[-1] if versions else last, "modified": settled, "files": has_files}
    return Seen(json.dumps(next_state), new_commits, fault=fault)


def _commit(table: Table, actions: Sequence[Mapping[str, Any]], entry: Entry, *, has_files: bool) -> Commit:
    information: Mapping[str, Any] = next((row["commitInfo"] for row in actions if "commitInfo" in row), {})
    time_ms = information.get("inCommitTimestamp") or information.get("timestamp") or entry.modified
    metrics = information.get("operationMetrics") or {}
    transaction: Mapping[str, Any] = next((row["txn"] for row in actions if "txn" in row), {})
    facts: dict[str, Any] = dict(commits.numbers(metrics, _NUMBERS))
    facts |= commits.own_facts(_tags(information))
    if transaction:
        facts["query"] = commits.short(f"{transaction.get('appId')}:{transaction.get('version')}")
    return Commit(
        id=str(int(entry.name.removesuffix(".json"))),
        action=str(information.get("operation") or "write").lower(),
        time_ms=number(time_ms, "timestamp"),
        author=entry.owner,
        engine=str(information.get("engineInfo") or ""),
        facts=facts,
        files=_files(table, actions) if has_files else None,
    )


def _tags(information: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a writer has given as userMetadata, where that is an object."""
    try:
        tags = json.loads(information.get("userMetadata") or "{}")
    except (ValueError, TypeError, RecursionError):
        return {}
    return tags if isinstance(tags, dict) else {}


def _actions(content: bytes) -> Iterator[Mapping[str, Any]]:
    for line in content.splitlines():
        if line.strip():
            action = json.loads(line)
            if not isinstance(action, dict):
                raise ValueError("a line is no object")
            yield action


def _files(table: Table, actions: Sequence[Mapping[str, Any]]) -> Files:
    added = [_file(table, row["add"]) for row in actions if "add" in row]
    removed = [_path(table, str(row["remove"]["path"])) for row in actions if "remove" in row]
    if len(added) + len(removed) > MOST_FILES:
        raise ValueError(f"it changes more than {MOST_FILES} files")
    return Files(added, removed)


def _file(table: Table, add: Mapping[str, Any]) -> File:
    try:
        rows = json.loads(add.get("stats") or "{}").get("numRecords")
    except (ValueError, TypeError, AttributeError, RecursionError):
        rows = None
    values = add.get("partitionValues") or {}
    return File(
        _path(table, str(add["path"])),
        number(add["size"], "size"),
        rows if isinstance(rows, int) else None,
        "/".join(f"{name}={values[name]}" for name in values),
    )


def _path(table: Table, path: str) -> str:
    """Return the path of a file: in the log it is a URI, relative to the table or not."""
    plain = unquote(path)
    uri = plain if _ABSOLUTE.match(plain) else posixpath.join(table.location, plain)
    return path_of(uri) or uri
