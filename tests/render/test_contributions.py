"""A contribution needs the files that CONTRIBUTING.md names for it, and no test of the kit wants another."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lakehouse import run
from tests import contributions
from tests.trees import Tree


@pytest.fixture(scope="module", params=sorted(contributions.MOST_FILES))
def contributed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """The kit with a contribution."""
    tree = Tree(tmp_path_factory.mktemp(request.param) / request.param)
    tree.contribute(contributions.FOLDER / request.param)
    return tree


def named_on_the_page(contribution: str) -> set[str]:
    """Return the files that CONTRIBUTING.md names for a contribution."""
    page = (run.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = page.partition("## Larger changes, and their files\n")[2].partition("\n## ")[0]
    [entry] = [entry for entry in section.split("\n- ") if f"(tests/contributions/{contribution})" in entry]
    new = f"tests/contributions/{contribution}/files/"
    return {name.removeprefix(new) for name in re.findall(r"`([\w./]+\.\w+)`", entry)}


def test_a_contribution_needs_the_files_of_the_page(contributed: Tree) -> None:
    touched = contributed.changed()
    assert touched == named_on_the_page(contributed.root.name)
    assert len(touched) <= contributions.MOST_FILES[contributed.root.name]


def test_its_inventories_are_valid_and_rendered(contributed: Tree, tmp_path: Path) -> None:
    contributed.play("validate")
    contributed.play("render", "-e", f"lakehouse_render_dir={tmp_path}")
    assert {path.name for path in tmp_path.iterdir()} >= {"alpha1", "beta2", "gamma3"}
