"""The hook that looks at a commit's subject keeps the rule that CONTRIBUTING.md states."""

from __future__ import annotations

import re

import pytest
import yaml

from lakehouse.run import ROOT

CONFIG = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
[REFUSED] = [hook["entry"] for repo in CONFIG["repos"] for hook in repo["hooks"] if hook["id"] == "subject"]


@pytest.mark.parametrize(
    ("message", "refused"),
    [
        ("A daemon comes back after a stray signal", False),
        ("x" * 72, False),
        ("x" * 73, True),
        ("Short\n\n" + "A line of the body may be longer. " * 4, False),
        ("wip", True),
        ("WIP: ports", True),
        ("Work in progress on ports", True),
        ("Wipe the disks of a node that left", False),
    ],
)
def test_a_subject_is_short_and_says_something(message: str, refused: bool) -> None:
    assert bool(re.search(REFUSED, message)) is refused
