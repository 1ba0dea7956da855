"""A next command works when it is pasted: it names the program with its path, and the inventory."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakehouse import cli
from lakehouse.next_command import PROGRAM, command

ROOTS = ("ops", "lakehouse", "plugins", "library")
# What people call it, in a text about it.
NAMES = {
    "lakehouse/validation/cluster.py": "lakehouse catalog",
    "lakehouse/catalog/restoring.py": "lakehouse catalog",
    "lakehouse/artifacts/lock.py": "lakehouse artifacts",
    # The lines of a file that are the kit's.
    "lakehouse/compose/names.py": "lakehouse compose",
    "plugins/action/lakehouse_hosts_file.py": "lakehouse nodes",
    "plugins/module_utils/lakehouse/preflight_names.py": "lakehouse nodes",
    "ops/catalog/merging.py": "lakehouse catalog",
    "ops/doctor/failures.py": "lakehouse doctor",
    "ops/sql/spark_rows.py": "lakehouse sql",
    "ops/sql/trino.py": "lakehouse sql",
}


def verbs() -> list[str]:
    [families] = [action for action in cli.parser()._actions if action.choices]
    return [str(one) for one in families.choices or ()]


def texts(tree: ast.AST) -> Iterator[ast.Constant]:
    """Give every text of a module that is no docstring."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node


@pytest.mark.parametrize("root", ROOTS)
def test_every_command_names_the_program_with_its_path(root: str) -> None:
    bare = re.compile(rf"(?<![\w/])lakehouse ({'|'.join(map(re.escape, verbs()))})\b")
    found = [
        f"{path}:{one.lineno}: {one.value}"
        for path in sorted(Path(root).rglob("*.py"))
        for one in texts(ast.parse(path.read_text(encoding="utf-8")))
        if (hit := bare.search(one.value)) and NAMES.get(str(path)) != hit[0]
    ]
    assert found == []


def test_a_command_is_pasted_as_it_is() -> None:
    assert command("restart all", "inventory/local") == f"{PROGRAM} restart all -i inventory/local"
    assert command("status", "my inventory") == f"{PROGRAM} status -i 'my inventory'"
    assert Path(PROGRAM).name == "lakehouse"
