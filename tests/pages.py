"""Commands of the documentation, which tests execute."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from lakehouse.run import ROOT

HISTORY = ROOT / "docs" / "catalog-history.md"
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)
_CATALOG = re.compile(r"^\.venv/bin/lakehouse (catalog .*)$", re.MULTILINE)


def catalog(page: Path) -> list[str]:
    """Return the commands about the history of the catalog on a page, without their remarks."""
    text = "".join(_BLOCK.findall(page.read_text(encoding="utf-8")))
    return [shlex.join(shlex.split(found, comments=True)) for found in _CATALOG.findall(text)]
