"""Render the pages as HTML, in the style of the report. Pure: snapshots in, text out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from lakehouse.console import view as model
from lakehouse.console.view import Count, TableFiles, View
from lakehouse.console.watch import Snapshot
from lakehouse.monitoring import panels
from lakehouse.report import tables as replicas
from lakehouse.report import text
from lakehouse.status import judge, screen
from lakehouse.status.model import Placed, Status
from plugins.module_utils.lakehouse.fsck import File

# Limits that keep a page fast.
MOST_TABLES, MOST_FILES = 1000, 2000
_MARKS = {"OK": "✓", "DEGRADED": "!", "DOWN": "✗"}
# Areas with their own section.
_APART = {"HDFS", "Tables"}


@dataclass(frozen=True)
class Page:
    """A page, and whether its object exists."""

    text: str
    exists: bool


def index(views: Snapshot[View], counts: Snapshot[Count], now: float) -> str:
    """Return the page of the cluster; values are escaped."""
    status = views.value.status
    table_files = counts.value.value or ()
    by_size = sorted(range(len(table_files)), key=lambda position: -table_files[position].table.bytes)
    largest = sorted(by_size[:MOST_TABLES])
    engines = {name.capitalize() for name in status.engines}
    return _render(
        "index.html.j2",
        views,
        counts,
        now,
        services=list(_services(status)),
        areas=[row for row in screen.areas(status) if row[0] not in _APART | engines],
        tables=[table_files[position].table for position in largest],
        hidden=len(table_files) - len(largest),
        uncounted=_uncounted(views.value, table_files),
        nodes=_nodes(status, table_files),
        low={"memory": judge.MEMORY_SHARE, "disk": judge.DISK_SHARE},
        marks=_MARKS,
        LIVE=model.LIVE,
        DEAD=model.DEAD,
    )


def table(views: Snapshot[View], counts: Snapshot[Count], name: str, now: float) -> Page:
    """Return the page with the files of a table, or of a folder outside of all tables."""
    table_files = counts.value.value or ()
    shown_table = next((row for row in table_files if row.table.name == name), None)
    page = _render(
        "table.html.j2",
        views,
        counts,
        now,
        name=name,
        shown_table=shown_table,
        uncounted=name in _uncounted(views.value, table_files),
        files=[_file(file) for file in shown_table.files[:MOST_FILES]] if shown_table else [],
        hidden=max(0, len(shown_table.files) - MOST_FILES) if shown_table else 0,
        nodes=_nodes(views.value.status, [shown_table] if shown_table else []),
    )
    # A table that is not counted yet may exist.
    return Page(
        page,
        shown_table is not None or not counts.value.known or name in _uncounted(views.value, table_files),
    )


def metrics(views: Snapshot[View], counts: Snapshot[Count], now: float) -> str:
    """Return the page of plots, which a script fills."""
    return _render("metrics.html.j2", views, counts, now, sections=panels.sections())


def _render(template: str, views: Snapshot[View], counts: Snapshot[Count], now: float, **context: Any) -> str:
    return (
        _environment()
        .get_template(template)
        .render(
            view=views.value,
            status=views.value.status,
            ending=views.value.ending,
            views=views,
            counts=counts,
            stale={"view": views.stale(now), "files": counts.stale(now)},
            now=now,
            **context,
        )
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=ChoiceLoader([PackageLoader("lakehouse.console"), PackageLoader("lakehouse.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "age": screen.age,
        "clock": screen.clock,
        "size": text.size,
        "word": screen.word,
    }
    return environment


def _uncounted(view: View, table_files: Iterable[TableFiles]) -> list[str]:
    """Return the tables that were created after the files were counted."""
    names = {row.table.name for row in table_files}
    return sorted(table.name for table in view.tables.value or () if table.path and table.name not in names)


def _nodes(status: Status, table_files: Iterable[TableFiles]) -> list[str]:
    return replicas.nodes((row.table for row in table_files), (machine.name for machine in status.machines))


def _services(status: Status) -> Iterator[tuple[tuple[str, ...], list[Placed]]]:
    """Yield the status's row of each service, and its placements."""
    for row in screen.services(status):
        yield row, [placed for placed in status.services if placed.service == row[0]]


def _file(file: File) -> tuple[File, int, list[str]]:
    """Return a file, the fewest replicas of one of its blocks, and the DataNodes that hold them."""
    least = min((len(set(block.datanodes)) for block in file.blocks), default=0)
    return file, least, sorted({node for block in file.blocks for node in block.datanodes})
