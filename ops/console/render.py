"""The pages as HTML, in the look of the report. Pure: what was seen in, text out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from lakehouse.report import tables as replicas
from lakehouse.report import text
from ops.console import view as model
from ops.console.view import Count, Counted, View
from ops.console.watch import Seen
from ops.status import judge, screen
from ops.status.model import Placed, Status
from plugins.module_utils.lakehouse.fsck import File

# A page with more is slow to read for people and browsers.
MOST_TABLES, MOST_FILES = 1000, 2000
_MARKS = {"OK": "✓", "DEGRADED": "!", "DOWN": "✗"}
# What has a section of its own.
_APART = {"HDFS", "Tables"}


@dataclass(frozen=True)
class Page:
    """A page, and whether there is what it was asked for."""

    text: str
    found: bool


def index(views: Seen[View], counts: Seen[Count], now: float) -> str:
    """Return the page of the cluster: everything that comes from outside is escaped."""
    status = views.value.status
    counted = counts.value.value or ()
    largest = sorted(range(len(counted)), key=lambda place: -counted[place].table.bytes)[:MOST_TABLES]
    engines = {name.capitalize() for name in status.engines}
    return _render(
        "index.html.j2",
        views,
        counts,
        now,
        services=list(_services(status)),
        areas=[row for row in screen.areas(status) if row[0] not in _APART | engines],
        tables=[counted[place].table for place in sorted(largest)],
        more=len(counted) - len(largest),
        uncounted=_uncounted(views.value, counted),
        nodes=_nodes(status, counted),
        low={"memory": judge.MEMORY_SHARE, "disk": judge.DISK_SHARE},
        marks=_MARKS,
        LIVE=model.LIVE,
        DEAD=model.DEAD,
    )


def table(views: Seen[View], counts: Seen[Count], name: str, now: float) -> Page:
    """Return the page of a table's files, or of a folder's that is none's."""
    counted = counts.value.value or ()
    found = next((one for one in counted if one.table.name == name), None)
    page = _render(
        "table.html.j2",
        views,
        counts,
        now,
        name=name,
        found=found,
        uncounted=name in _uncounted(views.value, counted),
        listed=[_file(file) for file in found.files[:MOST_FILES]] if found else [],
        more=max(0, len(found.files) - MOST_FILES) if found else 0,
        nodes=_nodes(views.value.status, [found] if found else []),
    )
    # What could not be looked up may be there.
    return Page(page, found is not None or not counts.value.known or name in _uncounted(views.value, counted))


def _render(template: str, views: Seen[View], counts: Seen[Count], now: float, **more: Any) -> str:
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
            **more,
        )
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=ChoiceLoader([PackageLoader("ops.console"), PackageLoader("lakehouse.report")]),
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


def _uncounted(view: View, counted: Iterable[Counted]) -> list[str]:
    """Return the tables that came after the files were asked for."""
    known = {one.table.name for one in counted}
    return sorted(table.name for table in view.tables.value or () if table.path and table.name not in known)


def _nodes(status: Status, counted: Iterable[Counted]) -> list[str]:
    return replicas.nodes((one.table for one in counted), (machine.name for machine in status.machines))


def _services(status: Status) -> Iterator[tuple[tuple[str, ...], list[Placed]]]:
    """Give the status's row of each service, and where it is placed."""
    for row in screen.services(status):
        yield row, [placed for placed in status.services if placed.service == row[0]]


def _file(file: File) -> tuple[File, int, list[str]]:
    """Return a file, the replicas of its block with the fewest, and who holds any of them."""
    least = min((len(set(block.datanodes)) for block in file.blocks), default=0)
    return file, least, sorted({node for block in file.blocks for node in block.datanodes})
