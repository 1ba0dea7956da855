"""Draw the share of delayed flights by day: SVG on stdout, of CSV on stdin with date, flights, delayed ones.

.venv/bin/lakehouse sql --engine trino --csv 'SELECT ...' | .venv/bin/python -m pipeline.plot > delays.svg
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator
from datetime import date

# Of a day, of the whole picture below and above the bars, and left of them.
_STEP, _HEIGHT, _MARGIN = 2, 200, 40


def svg(days: Iterable[tuple[date, int, int]]) -> str:
    """Return the picture of days, each with its flights and how many of them were delayed."""
    rows = list(days)
    width, height = len(rows) * _STEP + 2 * _MARGIN, _HEIGHT + 2 * _MARGIN
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">'
    return "\n".join([head, *_lines(rows, width), "</svg>\n"])


def _lines(rows: list[tuple[date, int, int]], width: int) -> Iterator[str]:
    bottom = _MARGIN + _HEIGHT
    yield f'<rect width="{width}" height="{bottom + _MARGIN}" fill="white"/>'
    yield f'<text x="{_MARGIN}" y="24" font-size="14">Delayed flights from New York, share by day</text>'
    for percent in (0, 25, 50, 75):
        y = bottom - _HEIGHT * percent // 100
        yield f'<path d="M{_MARGIN} {y}H{width - _MARGIN}" stroke="lightgray"/>'
        yield f'<text x="4" y="{y + 4}" font-size="11">{percent} %</text>'
    for number, (day, flights, delayed) in enumerate(rows):
        x, bar = _MARGIN + number * _STEP, _HEIGHT * delayed // max(1, flights)
        yield f'<rect x="{x}" y="{bottom - bar}" width="{_STEP}" height="{bar}" fill="steelblue"/>'
        if day.day == 1:
            yield f'<text x="{x}" y="{bottom + 16}" font-size="11">{day:%b}</text>'


if __name__ == "__main__":
    table = list(csv.reader(sys.stdin))[1:]
    sys.stdout.write(svg((date.fromisoformat(day), int(total), int(late)) for day, total, late in table))
