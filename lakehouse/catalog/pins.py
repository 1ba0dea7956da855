"""What commits with a tag or a branch need of tables: a document in HDFS beside the root of all tables.

The host of the history writes it, since no other host reads the repository; upkeep reads it. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lakehouse.catalog.documents import Document, location
from plugins.module_utils.lakehouse.webhdfs import path_of

_HOUR = 3600
# Clocks differ, and a commit reads the versions of files some seconds after the metastore.
_MARGIN_SECONDS = _HOUR
# Of which upkeep removes files.
_FORMATS = ("iceberg", "delta")


@dataclass(frozen=True)
class Pin:
    """What commits need of the table in a folder: Iceberg's metadata files by path, and what they name.

    `since` is when the oldest of these commits was made, in seconds since 1970: files of a Delta table that
    were removed later are needed.
    """

    metadata: frozenset[str] = frozenset()
    since: int = 0


@dataclass(frozen=True)
class Pins:
    """The pins of all tables by folder; `unknown` is why they are not known."""

    tables: Mapping[str, Pin]
    unknown: str = ""

    def of(self, folder: str) -> Pin:
        """Return the pin of the table in a folder, by URI or path."""
        return self.tables.get(path_of(folder) or folder, Pin())

    def hours(self, folder: str, now: float) -> int:
        """Return how many hours back removed files of the Delta table in a folder are needed; 0 for none."""
        since = self.of(folder).since
        return int((now - since + _MARGIN_SECONDS) // _HOUR) + 1 if since else 0


def path(root: str) -> str:
    """Return the path of the document for the folder above all tables."""
    return f"/{root.strip('/').replace('/', '-')}-pins.json"


def collect(commits: Iterable[tuple[int, Iterable[Document]]]) -> dict[str, Any]:
    """Return the tables of the document from commits: the time of each, and the documents of its tables."""
    pins: dict[str, Pin] = {}
    for time, documents in commits:
        for folder, data in _states(documents):
            pin = pins.get(folder, Pin(since=time))
            files = {path_of(str(data["metadata"])) or ""} if data.get("metadata") else set()
            pins[folder] = Pin(pin.metadata | files, min(pin.since, time))
    return {
        folder: {"metadata": sorted(pin.metadata), "since": pin.since} for folder, pin in sorted(pins.items())
    }


def _states(documents: Iterable[Document]) -> Iterator[tuple[str, Document]]:
    for document in documents:
        data, place = document.get("data") or {}, location(document)
        if data.get("format") in _FORMATS and place and (folder := path_of(place)):
            yield folder, data


def parse(content: bytes, now: float, most_hours: float) -> Pins:
    """Return the pins of a document that is at most so old; otherwise, and for a damaged one, why not."""
    try:
        document = json.loads(content)
        if why := document["why"]:
            return Pins({}, f"the pins of the catalog's history are unknown: {str(why)[:200]}")
        age = (now - document["time"]) / _HOUR
        if age > most_hours:
            return Pins({}, f"the pins of the catalog's history are {age:.0f} hours old")
        return Pins({folder: _pin(row) for folder, row in document["tables"].items()})
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        return Pins(
            {}, f"the pins of the catalog's history are damaged: {' '.join(str(error).split())[:100]}"
        )


def document(tables: Mapping[str, Any], why: str, time: float) -> bytes:
    """Return the document of tables, or of the reason why they are unknown."""
    return json.dumps({"time": int(time), "why": why, "tables": tables}).encode()


def _pin(row: Mapping[str, Any]) -> Pin:
    return Pin(frozenset(map(str, row["metadata"])), int(row["since"]))
