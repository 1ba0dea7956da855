"""The proof of a run: `summary.json`, `junit.xml`, `index.html`, and a table on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from lakehouse import phases
from lakehouse.errors import LakehouseError
from lakehouse.report import cluster, engines, junit, page, summary, tables, terminal
from lakehouse.report.model import Report

SMOKE = "smoke-junit.xml"
EXCERPT = "excerpt.txt"
# The page of the tables, which `lakehouse deploy` writes.
CENSUS = "census.html"

__all__ = ["CENSUS", "EXCERPT", "build", "write"]


def build(build_dir: Path, versions: Mapping[str, str], console: Console | None = None) -> int:
    """Write the report's files into `report/` of the build folder and print the tables.

    The files are `summary.json`, `junit.xml`, `index.html`, `excerpt.txt` and, if the matrix has run,
    `matrix.html`; `index.html` leads to CENSUS, if it is there. Reads `endpoints.json` and, in `report/`,
    `tables.json`, every `*-junit.xml`, of which `smoke-junit.xml` must be there, and `phases.json`, which may
    be missing: then nothing was timed.
    `versions` are shown as they are.
    Returns 0 if everything passed, else 1. Raises LakehouseError when one of the files is missing or broken,
    or the report cannot be written.
    """
    folder = build_dir / "report"
    smoke = folder / SMOKE
    if not smoke.exists():
        raise LakehouseError(f"{smoke} is missing: the smoke suite has not run", "make smoke")
    suites = [junit.read(path) for path in (smoke, *sorted(set(folder.glob("*-junit.xml")) - {smoke}))]
    report = Report(
        cluster=cluster.read(build_dir / "endpoints.json"),
        versions=dict(versions),
        phases=phases.read(folder / "phases.json"),
        cases=tuple(case for suite in suites for case in suite.cases),
        tables=tables.read(folder / "tables.json"),
        generated=datetime.now(UTC),
    )
    write(folder / "summary.json", summary.render(report))
    write(folder / "junit.xml", junit.merged(suites, report.tables))
    write(folder / "index.html", page.render(report, CENSUS if (folder / CENSUS).exists() else ""))
    write(folder / EXCERPT, terminal.excerpt(report))
    if engines.arrange(report.cases):
        write(folder / "matrix.html", page.render_matrix(report))
    else:
        (folder / "matrix.html").unlink(missing_ok=True)
    terminal.show(report, folder / "index.html", console or Console())
    return 1 if report.problems else 0


def write(path: Path, text: str) -> None:
    """Replace a file of the report; LakehouseError if it cannot be written."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise LakehouseError(f"{path} cannot be written: {error.strerror}") from None
