"""The report of the tables as a page for a browser: sizes, growth and findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lakehouse.census.growth import Size
from lakehouse.census.report import MOST_FINDINGS
from lakehouse.report.page import environment
from lakehouse.tables import census_program
from lakehouse.tables.census_program import Program

# Of the plot, in units of its coordinate system.
_WIDTH, _HEIGHT = 1160, 180
# Group of a report -> title of its bars.
_GROUPS = {"formats": "Format", "versions": "Version", "databases": "Database", "owners": "Owner"}


@dataclass(frozen=True)
class Plot:
    """The bytes of all tables over time: points from 0 at the left and the top, and the ends of both axes."""

    points: tuple[tuple[float, float], ...]
    first: datetime
    last: datetime
    most: int
    width: int = _WIDTH
    height: int = _HEIGHT


def render(program: Program, report: Mapping[str, Any]) -> str:
    """Return the page: everything that comes from outside is escaped, nothing is loaded from anywhere."""
    sizes = [Size(**row) for row in report["history"]]
    return (
        environment()
        .get_template("census.html.j2")
        .render(
            cluster=program.cluster.variable("lakehouse_cluster"),
            groups={title: report[name] for name, title in _GROUPS.items()},
            tables=sum(row["table_count"] for row in report["formats"]),
            files=sum(row["files"] for row in report["formats"]),
            bytes=sum(row["size_bytes"] for row in report["formats"]),
            free_bytes=sizes[-1].free_bytes if sizes else None,
            growth=census_program.growth(report),
            plot=plot(sizes) if len(sizes) > 1 else None,
            findings=report["findings"],
            most=MOST_FINDINGS,
        )
    )


def plot(sizes: Sequence[Size]) -> Plot:
    """Place the sizes of two or more runs, the oldest first."""
    first, last = sizes[0].measured_at, sizes[-1].measured_at
    most = max(size.size_bytes for size in sizes)
    return Plot(
        tuple(
            (
                round(_WIDTH * (size.measured_at - first) / max(1, last - first), 1),
                round(_HEIGHT * (1 - size.size_bytes / max(1, most)), 1),
            )
            for size in sizes
        ),
        _time(first),
        _time(last),
        most,
    )


def _time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
