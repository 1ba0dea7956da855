"""The report as a self-contained HTML file."""

from __future__ import annotations

from dataclasses import dataclass

from jinja2 import Environment, PackageLoader, StrictUndefined

from lakehouse.phases import PASSED, Phase
from lakehouse.report import engines, matrix, picture, tables, text
from lakehouse.report.matrix import Cell
from lakehouse.report.model import NONE, Report, Status

# A bar is never so short that it cannot be seen, in percent of the whole.
_LEAST_BAR = 0.4
# From here on tenths of a second say nothing.
_LONG = 99.95
_MARKS = {Status.PASSED: "✓", Status.FAILED: "✗", Status.ERROR: "✗", Status.SKIPPED: "∅"}


@dataclass(frozen=True)
class Bar:
    """A phase on the common time axis; offset and width are in percent of it."""

    phase: Phase
    offset: float
    width: float
    ok: bool


def render(report: Report, census: str = "") -> str:
    """Return `index.html`: everything that comes from outside is escaped, nothing is loaded from anywhere.

    It leads to the page `census`, if there is one.
    """
    cases = engines.apart(report.cases)
    of_tables, of_services = matrix.of_tables(cases), matrix.of_services(cases)
    cells = [*of_tables.cells, *of_services.cells]
    arranged = engines.arrange(report.cases)
    return (
        environment()
        .get_template("index.html.j2")
        .render(
            report=report,
            census=census,
            Status=Status,
            of_tables=of_tables,
            of_services=of_services,
            cells=cells,
            anchors={cell: f"evidence-{number}" for number, cell in enumerate(cells, 1)},
            nodes=tables.nodes(report.tables, (host.name for host in report.cluster.hosts)),
            picture=picture.draw(report.cluster),
            bars=_bars(report.phases),
            total=_total(report.phases),
            engines=arranged,
            counts=arranged.counts,
        )
    )


def render_matrix(report: Report) -> str:
    """Return `matrix.html`: every engine, format and operation, with statement, seconds and evidence."""
    arranged = engines.arrange(report.cases)
    cells = [*arranged.cells.cells, *arranged.answers.cells, *arranged.proofs.cells]
    return (
        environment()
        .get_template("matrix.html.j2")
        .render(
            report=report,
            Status=Status,
            engines=arranged,
            NONE=NONE,
            shared=arranged.shared,
            members=_members(arranged),
            counts=arranged.counts,
            shown=engines.shown,
            marks=engines.MARKS | {"skipped": "∅", "failed": "✗"},
            words=engines.WORDS,
            cells=cells,
            anchors={cell: f"evidence-{number}" for number, cell in enumerate(cells, 1)},
        )
    )


def _members(arranged: engines.Engines) -> list[str]:
    """Return the engines of the proofs that involve several, a column each."""
    shared = arranged.shared
    names = [cell.engine for cell in arranged.proofs.cells if (cell.operation, cell.format) in shared]
    return list(dict.fromkeys(names))


def environment() -> Environment:
    """Return the template environment of the reports."""
    templates = Environment(
        loader=PackageLoader("lakehouse.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {
        "seconds": text.seconds,
        "size": text.size,
        "label": _label,
        "few": lambda value: f"{value:.1f}" if value < _LONG else f"{value:.0f}",
        "mark": _MARKS.__getitem__,
    }
    return templates


def _bars(phases: tuple[Phase, ...]) -> list[Bar]:
    total = _total(phases) or 1.0
    return [
        Bar(
            phase=phase,
            offset=round(100 * (phase.started - phases[0].started) / total, 2),
            width=round(max(_LEAST_BAR, 100 * phase.seconds / total), 2),
            ok=phase.status == PASSED,
        )
        for phase in phases
    ]


def _total(phases: tuple[Phase, ...]) -> float:
    """Seconds from the start of the first phase to the end of the last."""
    if not phases:
        return 0.0
    return max(phase.started + phase.seconds for phase in phases) - phases[0].started


def _label(cell: Cell | tuple[str, str]) -> str:
    engine, table_format = (cell.engine, cell.format) if isinstance(cell, Cell) else cell
    return " · ".join(name for name in (engine, table_format) if name != NONE) or "cluster"
