"""docs/compose.md: its conftest.py and its test, run as another project's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from lakehouse import run
from lakehouse.local.compose.dotenv import Settings

PAGE = run.ROOT / "docs" / "compose.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PATIENCE = 300


def execute(folder: Path, variables: Mapping[str, str]) -> str:
    fixture, test = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    (folder / "conftest.py").write_text(fixture, encoding="utf-8")
    (folder / "test_mine.py").write_text(test, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder],
        cwd=folder, env={**os.environ, **variables, "LAKEHOUSE_KIT": str(run.ROOT)},
        capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    return done.stdout + done.stderr


@pytest.mark.cluster
def test_another_project_uses_the_page(everything: Settings, tmp_path: Path) -> None:
    assert "1 passed" in execute(tmp_path, everything.values)
