"""The tests of the repository by name, for pages and tables that say which of them hold something."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from lakehouse.run import ROOT

_MARK = "pytest.mark.longdrill"


@cache
def functions() -> frozenset[str]:
    """Every test function of the repository."""
    paths = [path for top in ("matrix", "smoke", "tests") for path in (ROOT / top).rglob("*.py")]
    texts = (path.read_text(encoding="utf-8") for path in paths)
    return frozenset(name for text in texts for name in re.findall(r"def (test_\w+)\(", text))


@cache
def drills(path: Path) -> Mapping[str, bool]:
    """The test functions of a file by name, and whether they are left to `make drills`."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    everything = _drill(node for node in body if isinstance(node, ast.Assign))
    found = {}
    for node in body:
        group = isinstance(node, ast.ClassDef) and _drill(node.decorator_list)
        for one in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(one, ast.FunctionDef) and one.name.startswith("test_"):
                found[one.name] = everything or group or _drill(one.decorator_list)
    return found


def _drill(marks: Iterable[ast.AST]) -> bool:
    return any(_MARK in ast.unparse(mark) for mark in marks)
