"""No unit test depends on how busy the machine is: none measures time, and each waits for long enough."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakehouse.dev.drills import long_tests
from lakehouse.run import ROOT
from tests.unit import patience

FILES = sorted(set((ROOT / "tests" / "unit").glob("*.py")) - {Path(patience.__file__)})
CLOCKS = {"monotonic", "perf_counter"}
# Whose first argument is a limit; others name it `timeout`, and `wait_for` names it `seconds`.
WAITS = {"wait", "join", "settimeout"}


def impatient(source: str) -> list[str]:
    """Return the lines of a file of tests that assert a time, or give up too early; drills may do both."""
    drills = long_tests(source)
    found = [node for node in _outside(ast.parse(source), drills) if _is_bound(node)]
    return [f"{node.lineno}: {ast.unparse(node)}" for node in found]


def _outside(tree: ast.AST, drills: dict[str, str]) -> Iterator[ast.stmt | ast.expr]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef) and node.name in drills:
            continue
        if isinstance(node, ast.stmt | ast.expr):
            yield node
        yield from _outside(node, drills)


def _is_bound(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        # How long something took is a difference; that a wait has an end is none.
        return any(isinstance(part, ast.BinOp) and _reads_clock(part) for part in ast.walk(node.test))
    if isinstance(node, ast.Call):
        names = {"timeout", "seconds"} if _name(node) == "wait_for" else {"timeout"}
        limits = [word.value for word in node.keywords if word.arg in names]
        if _name(node) in WAITS:
            limits += node.args[:1]
        return any(
            isinstance(limit, ast.Constant)
            and isinstance(limit.value, int | float)
            and 1 <= limit.value < patience.SECONDS
            for limit in limits
        )
    return False


def _reads_clock(node: ast.BinOp) -> bool:
    return isinstance(node.op, ast.Sub) and any(
        isinstance(part, ast.Call) and _name(part) in CLOCKS for part in ast.walk(node)
    )


def _name(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def test_no_test_depends_on_the_time_that_something_takes() -> None:
    found = {path.name: impatient(path.read_text(encoding="utf-8")) for path in FILES}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "line",
    [
        "assert time.monotonic() - began < 1.0",
        "assert 0 < (monotonic() - began) * 9",
        "subprocess.run([], timeout=20)",
        "thread.join(timeout=5)",
        "assert ready.wait(5)",
        "Barrier(2, timeout=10)",
        "wait_for(beat, seconds=30)",
    ],
)
def test_a_time_is_found(line: str) -> None:
    assert impatient(f"def test_it():\n    {line}\n")


@pytest.mark.parametrize(
    "line",
    [
        "assert time.monotonic() < until",
        "assert not looked.wait(0.2)",
        "subprocess.run([], timeout=patience.SECONDS)",
        "client.call('x', seconds=5)",
        "process.wait()",
    ],
)
def test_a_wait_that_ends_is_none(line: str) -> None:
    assert not impatient(f"def test_it():\n    {line}\n")
