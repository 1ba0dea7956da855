"""A number has its noun in the right form: no text says `1 units`."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugins.module_utils.lakehouse.counting import counted

ROOTS = ("lakehouse", "plugins", "suites/testbed")
# The word after a name that is a verb, or a unit of measure.
NO_NOUNS = re.compile(
    r"(is|has|was|does|says|gets|runs|belongs|holds|names|needs|exists|leaves|gives|takes|lacks|answers|starts|makes"
    r"|wants|keeps|shows|reads|stays|resolves|comes|knows|as|its|this|ps|ms|serves|writes|installs|listens|plays"
    r"|when|points|statistics|compares|refuses|stands|replaces|calls|changes|changed|describes|counts|sees|status|artifacts|playbooks|logs"
    r"|combines|seconds|side|versions|is|ends|passes|the|a|no)"
)
# Such a number is never one: limits, and a few.
LIMIT = re.compile(r"_?MOST_[A-Z_]+")
MANY = {
    "_DEEPEST",
    "SHORTEST",
    "len(CHECKS)",
    "len(numbers)",
    "cluster.replication",
    "count",
    "os.cpu_count()",
}


def wrong(tree: ast.AST) -> Iterator[str]:
    """Give each value of a text that is followed by a noun for several."""
    for node in ast.walk(tree):
        parts = node.values if isinstance(node, ast.JoinedStr) else []
        for value, after in itertools.pairwise(parts):
            if not (isinstance(value, ast.FormattedValue) and isinstance(after, ast.Constant)):
                continue
            found = re.match(r" (?:[a-z]+ )?([A-Za-z]+s)\b", str(after.value))
            first = re.match(r" ([A-Za-z]+)", str(after.value))
            name = ast.unparse(value.value)
            if not (found and first) or value.format_spec or name in MANY or LIMIT.fullmatch(name):
                continue
            if not (NO_NOUNS.fullmatch(found[1]) or NO_NOUNS.fullmatch(first[1])):
                yield f"{value.lineno}: {{{ast.unparse(value.value)}}}{after.value!s}"


@pytest.mark.parametrize("root", ROOTS)
def test_what_is_counted_has_the_form_of_its_number(root: str) -> None:
    paths = sorted(Path(root).rglob("*.py"))
    found = [
        f"{path}:{line}" for path in paths for line in wrong(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert found == [], "next: write counted(number, noun), or add a constant above 1 to MANY"


def test_one_is_one_and_the_rest_are_several() -> None:
    assert [counted(number, "unit") for number in (0, 1, 2)] == ["0 units", "1 unit", "2 units"]
    assert counted(1, "block lacks one", "blocks lack one") == "1 block lacks one"
    assert counted(2, "block lacks one", "blocks lack one") == "2 blocks lack one"
