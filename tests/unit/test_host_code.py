"""A program of a host comes with all that it imports of the kit, and with nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lakehouse import host_code
from lakehouse.run import ROOT

PACKAGES = ["backup", "lakehouse.catalog.hosted", "lakehouse.census", "lakehouse.upkeep"]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_of_the_package_is_there(package: str) -> None:
    folder = package.replace(".", "/")
    assert {f"{folder}/{path.name}" for path in (ROOT / folder).glob("*.py")} <= set(
        host_code.modules(package)
    )


def test_a_program_starts_where_nothing_else_of_the_kit_is(tmp_path: Path) -> None:
    for path in host_code.modules("backup"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes((ROOT / path).read_bytes())
    help_text = subprocess.run(
        [sys.executable, "-m", "backup", "--help"], cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert help_text.startswith("usage: ")


@pytest.mark.parametrize("package", PACKAGES)
def test_nothing_of_the_control_machine_is_there(package: str) -> None:
    """Hosts have Debian's Python, and what a release has: not Ansible, click or pyinfra."""
    texts = ((ROOT / path).read_text(encoding="utf-8") for path in host_code.modules(package))
    imported = {match[1] for text in texts for match in re.finditer(r"(?m)^\s*(?:from|import) (\w+)", text)}
    assert "json" in imported
    assert imported.isdisjoint({"ansible", "click", "docker", "pyinfra", "yaml"})


def test_the_folders_are_those_of_the_modules() -> None:
    utilities = "plugins/module_utils"
    assert host_code.folders("backup") == ("backup", "plugins", utilities, f"{utilities}/lakehouse")
