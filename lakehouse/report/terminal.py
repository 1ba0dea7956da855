"""The report for the terminal, and for the log of a CI job."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lakehouse.report import engines, matrix, tables, text
from lakehouse.report.matrix import Cell
from lakehouse.report.model import NONE, Report, Status
from plugins.module_utils.lakehouse.counting import counted

_STYLES = {
    Status.PASSED: "green",
    Status.FAILED: "bold red",
    Status.ERROR: "bold red",
    Status.SKIPPED: "yellow",
}
_WORDS = {Status.PASSED: "ok", Status.FAILED: "FAILED", Status.ERROR: "ERROR", Status.SKIPPED: "skipped"}
# A log has no width of its own, and a line of it is never to be broken.
_LOG_WIDTH = 250
# Phases in an excerpt: those of every deploy, and none of a test that a user does not run.
_PHASES = ("converge", "data", "smoke", "matrix")


def show(report: Report, page: Path, console: Console) -> None:
    """Print operations by format, replicas by node, the addresses, the matrix, and the verdict at the end."""
    for table in (_operations(report), _engines(report), _replicas(report), _addresses(report)):
        _print(table, console)
    if cells := _cells(report):
        console.print(Text(cells), soft_wrap=True)
    for problem in report.problems:
        console.print(Text(f"  {problem}", style="red"), soft_wrap=True)
    for warning in report.warnings:
        console.print(Text(f"  {warning}", style="yellow"), soft_wrap=True)
    console.print(Text(_verdict(report), style="bold green" if report.passed else "bold red"), soft_wrap=True)
    console.print(Text(str(page)), soft_wrap=True)


def excerpt(report: Report) -> str:
    """Return the lines of a run that say most: how long a deploy's phases took, the matrix, the verdict."""
    lines = [f"<== {phase.name} {phase.seconds:.1f} s" for phase in report.phases if phase.name in _PHASES]
    return "\n".join([*lines, *filter(None, [_cells(report)]), _verdict(report)]) + "\n"


def _cells(report: Report) -> str:
    looks = engines.arrange(report.cases).counts
    return engines.line(looks) if looks else ""


def _print(table: Table, console: Console) -> None:
    if not table.row_count:
        return
    if console.is_terminal:
        table.box = box.SIMPLE_HEAD
        console.print(table)
        return
    table.box = None
    table.pad_edge = False
    plain = Console(width=_LOG_WIDTH, color_system=None, file=console.file)
    with plain.capture() as capture:
        plain.print(table)
    for line in capture.get().splitlines():
        console.print(Text(line.rstrip()), soft_wrap=True)
    console.print()


def _operations(report: Report) -> Table:
    """One row per engine and operation, one column per format."""
    cases = engines.apart(report.cases)
    arranged = (matrix.of_tables(cases), matrix.of_services(cases))
    cells = [cell for group in arranged for cell in group.cells]
    formats = list(dict.fromkeys(cell.format for cell in cells))
    table = Table("engine", "operation", *("cluster" if name == NONE else name for name in formats))
    by_row: dict[tuple[str, str], dict[str, Cell]] = {}
    for cell in cells:
        by_row.setdefault((cell.engine, cell.operation), {})[cell.format] = cell
    for (engine, operation), row in by_row.items():
        row_cells = (row.get(name) for name in formats)
        table.add_row(Text(engine), Text(operation), *(_outcome(cell) for cell in row_cells))
    return table


def _outcome(cell: Cell | None) -> Text:
    if cell is None:
        return Text("")
    return Text(f"{_WORDS[cell.status]:<7} {text.seconds(cell.seconds):>7}", style=_STYLES[cell.status])


def _engines(report: Report) -> Table:
    """One row per engine and format of the matrix: how its cells look, queries, proofs and limits."""
    arranged = engines.arrange(report.cases)
    looks = arranged.counts
    table = Table("engine", "format")
    for heading in (*looks, "TPC-H", "proofs", "limits", "seconds"):
        table.add_column(heading, justify="right")
    kinds = (arranged.cells, arranged.answers, arranged.proofs)
    rows = dict.fromkeys(row for kind in kinds for row in kind.rows if row not in arranged.strangers)
    for row in rows:
        cells, answers, proofs = ([cell for cell in kind.cells if cell.row == row] for kind in kinds)
        look_counts = engines.counts(cells)
        numbers = [look_counts.get(name, 0) for name in looks]
        numbers += [engines.unlimited(answers), engines.unlimited(proofs), engines.limits(proofs)]
        spent = sum(cell.seconds for cell in (*cells, *answers, *proofs))
        failed = any(cell.status.bad for cell in (*cells, *answers, *proofs))
        table.add_row(
            *(Text("" if name == NONE else name, style="bold red" if failed else "") for name in row),
            *(str(number or "") for number in numbers),
            f"{spent:.1f}",
        )
    return table


def _replicas(report: Report) -> Table:
    """One row per table, one column per node that holds a replica."""
    nodes = tables.nodes(report.tables, (host.name for host in report.cluster.hosts))
    table = Table("table", "format")
    for heading in ("files", "blocks", "size", "replicas", *nodes):
        table.add_column(heading, justify="right")
    for row in report.tables:
        table.add_row(
            Text(row.name),
            Text(row.format),
            str(row.files),
            str(row.blocks),
            text.size(row.bytes),
            Text(
                f"{row.replicas_min} of {row.replicas_expected}",
                style="bold red" if row.shortage else "green",
            ),
            *(str(row.nodes.get(node, 0)) for node in nodes),
        )
    return table


def _addresses(report: Report) -> Table:
    table = Table("service", "address", "http")
    for address in report.cluster.addresses:
        http = "" if address.http == address.url else address.http
        table.add_row(address.service, Text(address.url), Text(http))
    return table


def _verdict(report: Report) -> str:
    counts = [f"{report.count(status)} {status}" for status in reversed(Status) if report.count(status)]
    counts += [f"{report.absent} absent"] if report.absent else []
    short = sum(bool(table.shortage) for table in report.tables)
    replicas = (
        f"{short} of {counted(len(report.tables), 'table lacks replicas', 'tables lack replicas')}"
        if short
        else f"{counted(len(report.tables), 'table fully replicated', 'tables fully replicated')}"
    )
    verdict = "VERIFIED" if report.passed else "NOT VERIFIED"
    warned = f"; {counted(len(report.warnings), 'warning')}" if report.warnings else ""
    return f"{verdict}: {report.cluster.name}: {', '.join(counts) or 'no tests'}; {replicas}{warned}"
