"""Commits of an Iceberg table from its metadata file, and their files from its manifests.

Reference: https://iceberg.apache.org/spec/ (snapshots, snapshot log, manifests).
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lakehouse.catalog import avro, readable
from lakehouse.census.contents import number
from lakehouse.census.files import DamagedError
from lakehouse.census.iceberg import CONTENTS, SpecField, avro_name, partition_specs, snapshot_time
from lakehouse.timeline import commits
from lakehouse.timeline.commits import MOST_COMMITS, MOST_FILES, Commit, File, Files, Seen
from lakehouse.timeline.source import Table
from lakehouse.timeline.tree import Tree
from plugins.module_utils.lakehouse.webhdfs import path_of

_EVERY = ("manifest_path",), ("partition_spec_id",), ("added_snapshot_id",)
_ENTRY = (
    ("status",), ("snapshot_id",), ("data_file", "content"), ("data_file", "file_path"),
    ("data_file", "record_count"), ("data_file", "file_size_in_bytes"),
)  # fmt: skip
_ADDED, _DELETED = 1, 2
_NUMBERS = (
    "added-data-files", "deleted-data-files", "added-records", "deleted-records", "added-delete-files",
    "total-records", "total-data-files", "total-files-size",
)  # fmt: skip
# Property of a snapshot -> engine; each has the id of a query or a job.
_ENGINES = {"trino_query_id": "trino", "flink.job-id": "flink", "spark.app.id": "spark"}


@dataclass(frozen=True)
class _Event:
    """A snapshot that was made, or that became the current one at another time than it was made."""

    snapshot: Mapping[str, Any]
    time_ms: int
    is_current: bool

    @property
    def id(self) -> str:
        snapshot_id = str(self.snapshot["snapshot-id"])
        return (
            snapshot_id if self.time_ms == snapshot_time(self.snapshot) else f"{snapshot_id}@{self.time_ms}"
        )


def look(table: Table, tree: Tree, state: str) -> Seen:
    """Return the commits since the metadata file of the last look; DamagedError, UnavailableError."""
    place = table.parameters.get("metadata_location", "")
    if not place:
        raise DamagedError("its parameter metadata_location is not set")
    previous = json.loads(state) if state else {}
    if previous.get("place") == place:
        return Seen(state)
    try:
        metadata = readable.parse_metadata(tree.read(place))
        return _seen(table, tree, place, metadata, previous)
    except avro.DamagedAvroError as error:
        raise DamagedError(f"a manifest of {place} is damaged: {error}") from None
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise DamagedError(f"{place} is damaged: {str(error) or type(error).__name__}") from None


def _seen(
    table: Table, tree: Tree, place: str, metadata: Mapping[str, Any], previous: Mapping[str, Any]
) -> Seen:
    events, previous_ids = _events(metadata), set(previous.get("events") or ())
    new = [event for event in events if event.id not in previous_ids][-MOST_COMMITS:]
    last = next((event for event in reversed(new) if event.is_current), None)
    new_commits, parent = list[Commit](), previous.get("current")
    is_chain, fault = bool(previous), ""
    for event in new:
        files = None
        if event.is_current:
            is_chain = is_chain and event.snapshot.get("parent-snapshot-id") == parent
            parent = event.snapshot["snapshot-id"]
        if is_chain or event is last:
            try:
                files = _files(event, metadata, tree, whole=not is_chain) if event.is_current else Files()
            except DamagedError as error:
                is_chain, fault = False, str(error)
        new_commits.append(_commit(event, tree, files))
    if not new and previous:
        # A change of the schema, of properties or of branches makes no snapshot.
        updated = number(metadata.get("last-updated-ms") or 0, "last-updated-ms")
        new_commits.append(Commit(posixpath.basename(place), "alter", updated, table.owner, files=Files()))
    event_ids = [event.id for event in events][-MOST_COMMITS:]
    next_state = {"place": place, "current": parent if new else previous.get("current"), "events": event_ids}
    return Seen(json.dumps(next_state), new_commits, fault=fault)


def _events(metadata: Mapping[str, Any]) -> list[_Event]:
    """Return what has happened to the snapshots of a table, the oldest first."""
    snapshots = {row["snapshot-id"]: row for row in metadata.get("snapshots") or ()}
    entries = [
        (number(row["timestamp-ms"], "timestamp-ms"), row["snapshot-id"])
        for row in metadata.get("snapshot-log") or ()
        if row["snapshot-id"] in snapshots
    ]
    current = {(time_ms, snapshot) for time_ms, snapshot in entries}
    events = [_Event(snapshots[snapshot], time_ms, is_current=True) for time_ms, snapshot in entries]
    events += [
        _Event(row, snapshot_time(row), is_current=False)
        for key, row in snapshots.items()
        if (snapshot_time(row), key) not in current
    ]
    return sorted(events, key=lambda event: (event.time_ms, event.snapshot.get("sequence-number") or 0))


def _commit(event: _Event, tree: Tree, files: Files | None) -> Commit:
    summary = event.snapshot.get("summary") or {}
    query = next(((name, summary[name]) for name in _ENGINES if summary.get(name)), None)
    engine = str(summary.get("engine-name") or (_ENGINES[query[0]] if query else ""))
    action = str(summary.get("operation") or "append")
    if "@" in event.id:
        action = "set current"
    facts: dict[str, Any] = {**commits.numbers(summary, _NUMBERS), **commits.own_facts(summary)}
    if query:
        facts["query"] = commits.short(query[1])
    if not event.is_current:
        facts["branch"] = True
    author = tree.owner(str(event.snapshot.get("manifest-list") or ""))
    return Commit(event.id, action, event.time_ms, author, engine, facts, files)


def _files(event: _Event, metadata: Mapping[str, Any], tree: Tree, *, whole: bool) -> Files:
    """Return the files that a snapshot has added and removed, or all that it has; DamagedError."""
    specs, snapshot = partition_specs(metadata), event.snapshot["snapshot-id"]
    added, removed = list[File](), list[str]()
    for manifest, spec_id, added_by in _manifests(event.snapshot, tree):
        if not whole and added_by != snapshot:
            continue
        if (spec := specs.get(spec_id)) is None:
            raise DamagedError(f"{manifest} has the unknown partition spec {spec_id}")
        for status, owner, file in _entries(manifest, spec, tree):
            if whole and status != _DELETED:
                added.append(file)
            elif not whole and (added_by if owner is None else owner) == snapshot:
                if status == _ADDED:
                    added.append(file)
                elif status == _DELETED:
                    removed.append(file.path)
            if len(added) + len(removed) > MOST_FILES:
                raise DamagedError(f"it has more than {MOST_FILES} files: its commits are kept without files")
    return Files(added, removed, whole)


def _manifests(snapshot: Mapping[str, Any], tree: Tree) -> Iterator[tuple[str, int, Any]]:
    if manifest_list := snapshot.get("manifest-list"):
        for path, spec, added_by in avro.read(tree.read(str(manifest_list)), _EVERY):
            yield str(path), int(spec or 0), added_by
    else:
        # Old writers of format 1 list the manifests directly.
        yield from ((str(path), 0, snapshot["snapshot-id"]) for path in snapshot.get("manifests") or ())


def _entries(path: str, spec: tuple[SpecField, ...], tree: Tree) -> Iterator[tuple[int, int | None, File]]:
    fields = [("data_file", "partition", avro_name(field.name)) for field in spec]
    for row in avro.read(tree.read(path), [*_ENTRY, *fields], fields):
        status, owner, content, file_path, rows, size, *values = row
        partition = "/".join(
            f"{field.name}={field.text(value)}" for field, value in zip(spec, values, strict=True)
        )
        yield status, owner, File(
            path_of(str(file_path)) or str(file_path),
            number(size, "file_size_in_bytes"),
            number(rows, "record_count"),
            partition,
            CONTENTS.get(int(content or 0), "data"),
        )  # fmt: skip
