"""A copy of the repository that a test changes as a contributor would."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import yaml

from lakehouse import run

# What a tree needs to be rendered and tested.
PARTS = (
    "backup", "clients", "compose", "dashboards", "docs", "inventory", "lakehouse", "pipeline", "playbooks",
    "plugins", "requirements", "roles", "scripts", "smoke", "suites", "templates", "tests",
)  # fmt: skip
FILES = (
    ".pre-commit-config.yaml", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md",
    "ansible.cfg", "pyproject.toml", "services.yml", "versions.yml",
)  # fmt: skip


def _is_copy(path: Path, original: Path) -> bool:
    return original.is_file() and path.read_bytes() == original.read_bytes()


class Tree:
    """A copy of the repository, and the programs of this one run on it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.of_service: set[str] = set()
        for part in PARTS:
            shutil.copytree(
                run.ROOT / part, root / part, symlinks=True, ignore=shutil.ignore_patterns("__pycache__")
            )
        for name in FILES:
            shutil.copy(run.ROOT / name, root / name)

    def insert(self, path: str, anchor: str, text: str) -> None:
        """Put text in front of a text that is there once, or at the end."""
        file = self.root / path
        old = file.read_text(encoding="utf-8")
        assert old.count(anchor) == 1 or not anchor, f"{path} has {old.count(anchor)} times {anchor!r}"
        file.write_text(old.replace(anchor, text + anchor) if anchor else old + text, encoding="utf-8")

    def contribute(self, folder: Path) -> set[str]:
        """Make the edits and add the files of a contribution; return the files that it touches.

        `edits.yml` has, for each edit, a file, a text, and the place that it goes `before` or `after`, or
        that it is `instead_of`; that is there once. Below `files` lies what is new.
        """
        for edit in yaml.safe_load((folder / "edits.yml").read_text(encoding="utf-8")):
            [place] = edit.keys() & {"before", "after", "instead_of"}
            file, anchor, text = self.root / edit["file"], edit[place], edit["text"]
            old = file.read_text(encoding="utf-8")
            assert old.count(anchor) == 1, f"{edit['file']} has {old.count(anchor)} times {anchor!r}"
            new = {"before": text + anchor, "after": anchor + text, "instead_of": text}[place]
            file.write_text(old.replace(anchor, new), encoding="utf-8")
        added = folder / "files"
        for path in sorted(added.rglob("*")):
            if path.is_file():
                self.write(str(path.relative_to(added)), path.read_text(encoding="utf-8"))
        return self.changed()

    def with_history(self) -> None:
        """Give the copy the commits of the repository."""
        for argv in (
            ["clone", "--quiet", "--bare", "--shared", str(run.ROOT), str(self.root / ".git")],
            ["-C", str(self.root), "config", "core.bare", "false"],
            ["-C", str(self.root), "reset", "--quiet"],
        ):
            subprocess.run(["git", *argv], check=True, capture_output=True)

    def changed(self) -> set[str]:
        """Return the files that the repository has otherwise, or not at all."""
        files = (path for path in self.root.rglob("*") if path.is_file() and not path.is_symlink())
        names = {str(path.relative_to(self.root)) for path in files if "__pycache__" not in path.parts}
        return {name for name in names if not _is_copy(self.root / name, run.ROOT / name)}

    def write(self, path: str, text: str) -> None:
        """Write a new file."""
        file = self.root / path
        assert not file.exists()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def call(self, program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run a program of our own Python environment, with the copy's package."""
        environment = os.environ | {
            "PYTHONPATH": str(self.root),
            "ANSIBLE_CONFIG": str(self.root / "ansible.cfg"),
            "ANSIBLE_NOCOLOR": "1",
        }
        argv = [run.program(program), *map(str, arguments)]
        return subprocess.run(
            argv, cwd=self.root, env=environment, capture_output=True, text=True, check=False
        )

    def play(self, name: str, *options: object) -> str:
        """Run a playbook on the tests' inventory and return what it prints."""
        done = self.call("ansible-playbook", "-i", "tests/inventory", f"playbooks/{name}.yml", *options)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
