"""Collect the units of one table: the function that executors run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from lakehouse.census import contents, delta, hive, iceberg, model, parquet
from lakehouse.census.contents import Contents, DataFile, TableName
from lakehouse.census.files import DamagedError, Files, MissingError
from lakehouse.census.metastore import Table
from lakehouse.census.model import MetadataType, MetadataUnit
from plugins.module_utils.lakehouse.counting import counted

# A change of what is collected makes every table a changed one.
LAYOUT = 2
FORMATS = ("iceberg", "delta", "hive")
# Threads that read footers, which mostly wait, and the files of a batch.
_THREADS, _BATCH_FILES = 4, 100
# The last bytes of a file that are read at once: most footers are shorter.
_TAIL_BYTES = 32 << 10
_REASON_LETTERS = 300
# What is wrong with a table whose metadata is not what it should be.
_OF_ONE_TABLE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)


@dataclass(frozen=True)
class Outcome:
    """The result of collecting a table: unchanged, failed for a reason, or its units.

    `log` is that of a Delta table whose checkpoint has to be read first; `unavailable` is why the file
    system does not answer.
    """

    name: TableName
    version: str = ""
    units: tuple[MetadataUnit, ...] = ()
    unchanged: bool = False
    failed: str = ""
    log: delta.Log | None = None
    unavailable: str = ""


def collect(
    table: Table,
    files: Files,
    level: MetadataType,
    known_version: str = "",
    checkpoint: delta.Checkpoint | None = None,
) -> Outcome:
    """Return the units of a table, unless it still has the known version; a fault is part of the outcome.

    UnavailableError where the file system does not answer.
    """
    try:
        state, read = _open(table, files, checkpoint)
        version = _version(table, level, state)
        if version == known_version:
            return Outcome(table.name, version, unchanged=True)
        table_contents = read()
        if level == model.ROW_GROUP:
            table_contents = _with_footers(table_contents, files)
        if table_contents.facts.get("unreadable_files"):
            # No version matches: the next run reads the files again.
            version = ""
        units = contents.units(table_contents, level, version)
    except delta.CheckpointError as error:
        return Outcome(table.name, failed=_reason(error), log=error.log)
    except (DamagedError, *_OF_ONE_TABLE) as error:
        return Outcome(table.name, failed=_reason(error))
    return Outcome(table.name, version, tuple(units))


def _open(
    table: Table, files: Files, checkpoint: delta.Checkpoint | None
) -> tuple[str, Callable[[], Contents]]:
    """Return the version of a table, found with few requests, and a function that reads its contents.

    DamagedError where there is none.
    """
    if not all(map(model.fits, (table.name.database, table.name.table))):
        raise DamagedError("its name is longer than a folder's of HDFS may be")
    if table.format == "iceberg":
        return iceberg.version(table), lambda: iceberg.collect(table, files)
    if table.format == "delta":
        log = checkpoint.log if checkpoint else delta.log(table, files)
        actions = checkpoint.actions if checkpoint else None
        return log.version, lambda: delta.collect(table, log, files, actions)
    listing = hive.listing(table, files)
    return hive.version(table, listing), lambda: hive.contents(table, listing)


def _version(table: Table, level: MetadataType, state: str) -> str:
    """Return what differs when a table, its owner or what is collected of it does."""
    row = (LAYOUT, level, table.format, table.owner, table.location, state)
    return hashlib.sha256(json.dumps(row).encode()).hexdigest()[:32]


def _with_footers(table_contents: Contents, files: Files) -> Contents:
    """Return the contents with rows and row groups of Parquet files whose metadata is in their footers alone.

    A file that is not there, or has no footer, keeps none and counts in the facts. DamagedError where HDFS
    refuses a file: it may be a DataNode that is down, and the next run has to read it again.
    """
    waiting = [
        file for file in table_contents.files
        if file.format == "parquet" and not file.row_groups and file.content == "data"
    ]  # fmt: skip
    if not waiting or table_contents.table_type == "ICEBERG":
        return table_contents
    read: dict[str, DataFile | str] = {}
    count = contents.UnitCount()
    with ThreadPoolExecutor(_THREADS) as pool:
        # In batches, so that too many row groups end the requests.
        for start in range(0, len(waiting), _BATCH_FILES):
            batch = waiting[start : start + _BATCH_FILES]
            footers = pool.map(lambda file: _footer(file, files), batch)
            for file, result in zip(batch, footers, strict=True):
                read[file.path] = result
                count.add([result if isinstance(result, DataFile) else file])
    faults = [(path, footer) for path, footer in read.items() if isinstance(footer, str)]
    facts = {**table_contents.facts, "unreadable_files": len(faults)}
    if faults:
        path, reason = faults[0]
        facts["unreadable_file"] = f"{path}: {reason}"[:_REASON_LETTERS]
    listed = [
        footer if isinstance(footer := read.get(file.path), DataFile) else file
        for file in table_contents.files
    ]
    return replace(table_contents, files=listed, facts=facts)


def _footer(file: DataFile, files: Files) -> DataFile | str:
    """Return a file with its row groups, or why it has no footer; DamagedError where HDFS refuses it."""
    try:
        tail = _part(file, files, min(file.bytes, _TAIL_BYTES))
        length = parquet.footer_length(tail) + parquet.TAIL_BYTES
        if length > file.bytes:
            raise parquet.FooterError("its footer is longer than the file")
        if length > len(tail):
            tail = _part(file, files, length)
        groups = parquet.row_groups(tail[-length : -parquet.TAIL_BYTES])
    except (MissingError, ValueError) as error:
        return _reason(error)
    rows = [group.rows or 0 for group in groups]
    return replace(file, row_groups=groups, rows=sum(rows) if file.rows is None else file.rows)


def _part(file: DataFile, files: Files, length: int) -> bytes:
    """Return the last bytes of a file; FooterError for fewer."""
    tail = files.part(file.path, file.bytes - length, length)
    if len(tail) != length:
        raise parquet.FooterError(f"{counted(len(tail), 'byte')} of its last {length} were received")
    return tail


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:_REASON_LETTERS] or type(error).__name__
