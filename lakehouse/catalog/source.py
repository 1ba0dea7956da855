"""Where a catalog is read: a database that psql asks, and HDFS, which knows the versions of Delta tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass

from lakehouse.catalog import build, query
from lakehouse.catalog.build import Base, Built
from lakehouse.catalog.reading import Stream
from lakehouse.catalog.store import Writer
from lakehouse.errors import LakehouseError
from plugins.module_utils.lakehouse.counting import counted

# NameNodes answer a listing in milliseconds; so many are asked for at once.
_AT_ONCE = 8
_VERSION = re.compile(r"(\d{20})\.(?:json|checkpoint\b.*)")
# psql's complaints, which begin no row.
_COMPLAINT = b"psql:"

# Runs a script for psql in the metastore's database, and gives what it prints.
Ask = Callable[[str], AbstractContextManager[Iterator[bytes]]]


@dataclass(frozen=True)
class Source:
    """A cluster's name, what asks its database, and what looks up versions of its Delta tables."""

    cluster: str
    ask: Ask
    versions: build.Versions


def read(ask: Ask, writer: Writer, base: Base | None, versions: build.Versions) -> Built:
    """Return the catalog as it is now; LakehouseError where it cannot be read to its end.

    Tables that have not changed since `base` are taken over from it.
    """
    try:
        return _read(ask, writer, base, versions)
    except build.StaleError:
        return _read(ask, writer, None, versions)


def _read(ask: Ask, writer: Writer, base: Base | None, versions: build.Versions) -> Built:
    with ask(query.script(base.marks if base else None)) as lines:
        return build.build(Stream(lines), writer, base, versions)


def rows(stream: Iterable[bytes], complaints: list[str]) -> Iterator[bytes]:
    """Give the rows that psql prints; its complaints go to the list."""
    for line in stream:
        if line.startswith(_COMPLAINT):
            complaints.append(" ".join(line.decode(errors="replace").split()))
        else:
            yield line


def listed_versions(names: Callable[[str], Iterable[str]]) -> build.Versions:
    """Return what looks up versions of Delta tables by the names of files in their `_delta_log`."""

    def ask(places: Collection[str]) -> Mapping[str, str]:
        if not places:
            return {}
        try:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                logs = pool.map(lambda place: names(f"{place}/_delta_log"), places)
                found = dict(zip(places, map(newest, logs), strict=True))
        except LakehouseError as error:
            # Unknown is not another version than the last.
            raise LakehouseError(
                f"the versions of {counted(len(places), 'Delta table')} cannot be had: {error.message}",
                error.next_command,
            ) from error
        return {place: version for place, version in found.items() if version}

    return ask


def newest(names: Iterable[str]) -> str | None:
    """Return the version that the files of a `_delta_log` end with; None where there is none."""
    found = [int(match[1]) for name in names if (match := _VERSION.fullmatch(name))]
    return str(max(found)) if found else None
