"""The results of a complete verified run: its output in the README, its seconds in the numbers."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from lakehouse import run
from lakehouse.dev import drills, numbers
from lakehouse.errors import LakehouseError
from lakehouse.report import EXCERPT

README = run.ROOT / "README.md"
_BLOCK = re.compile(r"(<!-- output:start[^\n]*-->\n```text\n)(.*?)(```\n<!-- output:end -->)", re.DOTALL)
_PHASE = re.compile(r"^<== (\w+) ([\d.]+) s\n", re.MULTILINE)


def output(readme: str) -> str:
    """Return the output in a README; LakehouseError if it has no place for it."""
    if not (match := _BLOCK.search(readme)):
        raise LakehouseError("README.md has no place for the output", "git checkout README.md")
    return match[2]


def with_output(readme: str, excerpt: str) -> str:
    """Return the README with the excerpt of a run, without its seconds, which `numbers.yml` alone holds.

    LakehouseError if the run lacks a promised line.
    """
    for needed in ("<== converge ", "<== matrix ", "the matrix: ", "VERIFIED: "):
        if not re.search(rf"^{needed}", excerpt, re.MULTILINE):
            raise LakehouseError(f"the last run has no line {needed.strip()!r}", "make test")
    output(readme)
    excerpt_shown = "".join(line for line in excerpt.splitlines(keepends=True) if not _PHASE.match(line))
    return _BLOCK.sub(lambda match: match[1] + excerpt_shown + match[3], readme)


def phases(excerpt: str) -> dict[str, float]:
    """Return the seconds of a run's phases by the keys of `numbers.yml`."""
    return {f"run {name}": float(seconds) for name, seconds in _PHASE.findall(excerpt)}


def main(path: Path = run.BUILD / "report" / EXCERPT) -> int:
    """Write the README again, and what the run took into the numbers."""
    try:
        excerpt = path.read_text(encoding="utf-8")
        README.write_text(with_output(README.read_text(encoding="utf-8"), excerpt), encoding="utf-8")
        numbers.record(phases(excerpt), drills.circumstances())
    except FileNotFoundError:
        sys.stderr.write(f"{LakehouseError(f'{path} is missing: nothing has run', 'make test')}\n")
        return 1
    except LakehouseError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
