"""Look at the subjects of the newest commits: `python -m lakehouse.dev.subjects`, a part of `make lint`.

The hook of `.pre-commit-config.yaml` refuses such a message, but only where it is installed.
"""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import yaml

from lakehouse.errors import LakehouseError
from lakehouse.run import ROOT

# Of what is older, no rebase is worth its while.
NEWEST = 20


def refused(message: str) -> bool:
    """Return whether the hook refuses a commit's message."""
    return bool(re.search(_pattern(), message))


@cache
def _pattern() -> str:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    [pattern] = [hook["entry"] for repo in hooks for hook in repo["hooks"] if hook["id"] == "subject"]
    return str(pattern)


def newest(repository: Path) -> list[str]:
    """Return hash and subject of the newest commits; none without a git history, as in an archive."""
    argv = ["git", "log", f"--max-count={NEWEST}", "--no-merges", "--format=%h %s"]
    process = subprocess.run(argv, cwd=repository, capture_output=True, text=True, check=False)
    return process.stdout.splitlines()


def main(repository: Path = ROOT) -> int:
    """Print the subjects that break the rule; return 1 if there is one."""
    lines = [line for line in newest(repository) if refused(line.partition(" ")[2])]
    for line in lines:
        fault = f"the subject of {line!r} is no sentence of at most 72 letters that says what changes"
        sys.stderr.write(f"{LakehouseError(fault, 'git commit --amend, or git rebase -i')}\n")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
