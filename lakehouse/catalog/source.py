"""The sources of a catalog: the database, read by psql, and HDFS for the versions of Delta tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from lakehouse.catalog import build, query
from lakehouse.catalog.build import Base, Built
from lakehouse.catalog.psql import Ask
from lakehouse.catalog.reading import Stream
from lakehouse.catalog.store import Writer
from lakehouse.errors import LakehouseError
from plugins.module_utils.lakehouse.counting import counted

# Parallel listings; a NameNode answers each in milliseconds.
_AT_ONCE = 8
_VERSION = re.compile(r"(\d{20})\.(?:json|checkpoint\b.*)")


@dataclass(frozen=True)
class Source:
    """A cluster's name, the function that queries its database, and the one for versions of Delta tables."""

    cluster: str
    ask: Ask
    versions: build.Versions


def read(ask: Ask, writer: Writer, base: Base | None, versions: build.Versions) -> Built:
    """Return the current catalog; LakehouseError if it cannot be read completely.

    Tables that have not changed since `base` are copied from it.
    """
    try:
        return _read(ask, writer, base, versions)
    except build.StaleError:
        return _read(ask, writer, None, versions)


def _read(ask: Ask, writer: Writer, base: Base | None, versions: build.Versions) -> Built:
    with ask(query.script(base.marks if base else None)) as lines:
        return build.build(Stream(lines), writer, base, versions)


def listed_versions(names: Callable[[str], Iterable[str]]) -> build.Versions:
    """Return a function that derives the versions of Delta tables from the file names in `_delta_log`."""

    def look_up(places: Collection[str]) -> Mapping[str, str]:
        if not places:
            return {}
        try:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                logs = pool.map(lambda place: names(f"{place}/_delta_log"), places)
                versions = dict(zip(places, map(newest, logs), strict=True))
        except LakehouseError as error:
            # Without a version, the commit would record a change that did not happen.
            raise LakehouseError(
                f"the versions of {counted(len(places), 'Delta table')} cannot be had: {error.message}",
                error.next_command,
            ) from error
        return {place: version for place, version in versions.items() if version}

    return look_up


def newest(names: Iterable[str]) -> str | None:
    """Return the newest version among the files of a `_delta_log`; None without any."""
    versions = [int(match[1]) for name in names if (match := _VERSION.fullmatch(name))]
    return str(max(versions)) if versions else None
