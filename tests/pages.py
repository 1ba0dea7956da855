"""Commands of the documentation, which tests execute."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from lakehouse.run import ROOT

HISTORY = ROOT / "docs" / "catalog-history.md"
RUNBOOKS = ROOT / "docs" / "operations"
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)
_CATALOG = re.compile(r"^\.venv/bin/lakehouse (catalog .*)$", re.MULTILINE)


def blocks(page: Path) -> list[str]:
    """Return the texts of a page that are for a shell."""
    return _BLOCK.findall(page.read_text(encoding="utf-8"))


def catalog(page: Path) -> list[str]:
    """Return the commands about the history of the catalog on a page, without their remarks."""
    found = _CATALOG.findall("".join(blocks(page)))
    return [shlex.join(shlex.split(command, comments=True)) for command in found]
