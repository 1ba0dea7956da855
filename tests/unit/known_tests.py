"""The tests of the repository by name, for pages and tables that say which of them hold something."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from lakehouse.dev.drills import long_tests
from lakehouse.run import ROOT


@cache
def functions() -> frozenset[str]:
    """Every test function of the repository."""
    paths = [path for top in ("suites", "smoke", "tests") for path in (ROOT / top).rglob("*.py")]
    texts = (path.read_text(encoding="utf-8") for path in paths)
    return frozenset(name for text in texts for name in re.findall(r"def (test_\w+)\(", text))


@cache
def drills(path: Path) -> Mapping[str, bool]:
    """The test functions of a file by name, and whether they are left to `make drills`."""
    text = path.read_text(encoding="utf-8")
    long = long_tests(text)
    return {name: name in long for name in re.findall(r"^ *def (test_\w+)\(", text, re.MULTILINE)}
