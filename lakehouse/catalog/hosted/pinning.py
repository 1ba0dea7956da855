"""Write what named commits need of tables to HDFS, where upkeep reads it."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from lakehouse.catalog import exchange, files, pins
from lakehouse.catalog.hosted.layout import Settings
from lakehouse.catalog.names import Name
from lakehouse.catalog.references import MAIN
from lakehouse.catalog.snapshot_reader import SnapshotReader
from lakehouse.catalog.store import Entry, Store
from lakehouse.errors import LakehouseError
from plugins.module_utils.lakehouse.webhdfs import WebHdfs, WebHdfsError

# Beside the repository: names of commits, and what they need, which does not change while the names do not.
_CACHE = "pins.json"


def publish(settings: Settings, store: Store, hdfs: WebHdfs) -> None:
    """Write the document of the commits that have a name now, and of the one that is served.

    Where HDFS refuses it, that of an earlier time stays: upkeep removes nothing once it is old.
    """
    why, tables = "", dict[str, Any]()
    try:
        tables = _tables(settings, store)
    except LakehouseError as error:
        # A commit that is damaged, or of another version of the kit.
        why = error.message
    content, place = pins.document(tables, why, time.time()), pins.path(settings.root)
    with suppress(WebHdfsError):
        hdfs.write(f"{place}.new", io.BytesIO(content), len(content))
        hdfs.call("PUT", "SETPERMISSION", f"{place}.new", permission="644")
        hdfs.call("PUT", "RENAME", f"{place}.new", destination=place, renameoptions="OVERWRITE")


def _tables(settings: Settings, store: Store) -> dict[str, Any]:
    """Return the tables of the document; LakehouseError for a commit that cannot be read."""
    numbers, cache = sorted({entry.id for entry in _named(settings, store)}), Path(settings.folder) / _CACHE
    with suppress(OSError, ValueError, LookupError, TypeError):
        document = json.loads(cache.read_bytes())
        if document["commits"] == numbers:
            return dict(document["tables"])
    tables = pins.collect(
        (entry.time, (document for _, document in SnapshotReader(store, entry.tree).tables_in(Name())))
        for entry in map(store.commit, numbers)
    )
    files.write(cache, json.dumps({"commits": numbers, "tables": tables}))
    return tables


def _named(settings: Settings, store: Store) -> Iterator[Entry]:
    """Yield the commits of tags and of branches other than main, and the one that is served."""
    for name, number in exchange.names(store).items():
        if name != f"heads/{MAIN}":
            yield store.commit(number)
    if settings.past_commit != "HEAD":
        with suppress(LakehouseError):
            yield store.resolve(settings.past_commit)
