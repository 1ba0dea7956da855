"""Commands of the documentation, which tests execute."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from lakehouse.run import ROOT

HISTORY = ROOT / "docs" / "catalog-history.md"
RUNBOOKS = ROOT / "docs" / "operations"
# Procedures that share a page: the page, and the heading in its order. Others are a page of their name.
SECTIONS = {
    "status": ("../monitoring", "Status"),
    "doctor": ("../monitoring", "Doctor"),
    "maintenance": ("hosts", "Maintenance"),
    "scale-out": ("hosts", "Add a host"),
    "decommission": ("hosts", "Decommission a host"),
    "dead-host": ("hosts", "Give up a dead host"),
}
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)
_CATALOG = re.compile(r"^\.venv/bin/lakehouse (catalog .*)$", re.MULTILINE)


def blocks(page: Path, heading: str = "") -> list[str]:
    """Return the blocks of a page, or of one of its sections, that are for a shell."""
    text = page.read_text(encoding="utf-8")
    if heading:
        text = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return _BLOCK.findall(text)


def runbook(name: str) -> list[str]:
    """Return the blocks of a procedure that are for a shell."""
    page, heading = SECTIONS.get(name, (name, ""))
    return blocks(RUNBOOKS / f"{page}.md", heading)


def catalog(page: Path) -> list[str]:
    """Return the commands about the history of the catalog on a page, without their remarks."""
    found = _CATALOG.findall("".join(blocks(page)))
    return [shlex.join(shlex.split(command, comments=True)) for command in found]
