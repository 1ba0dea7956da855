"""This machine as a host of pyinfra, with a systemd whose units are files of a test."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import cast

import pytest

from lakehouse.maybe import Answer
from lakehouse.model.placement import Cluster
from lakehouse.remote.operations import Operation
from lakehouse.remote.probing import Session
from lakehouse.rolling.facts import Living
from tests.unit import patience

NAME = "@local"
# It prints the properties of a unit, and notes every other call.
_SYSTEMCTL = """#!/bin/sh
case $1 in
show) shift $(($# - 1))
  cat "{folder}/$1" 2>/dev/null || printf 'LoadState=not-found\\nActiveState=inactive\\nUnitFileState=\\n' ;;
*) echo "$@" >> "{folder}/calls" ;;
esac
"""


class LocalHost:
    """Operations run on this machine as root's would."""

    def __init__(self, folder: Path, session: Session) -> None:
        self._folder = folder
        self.living = Living(cast("Cluster", None), session)

    def unit(self, name: str, active: str, enabled: str = "enabled", *, reload: str = "no") -> None:
        """Let systemd have a unit in a state."""
        self._folder.joinpath(name).write_text(
            f"LoadState=loaded\nActiveState={active}\nUnitFileState={enabled}\nNeedDaemonReload={reload}\n",
            encoding="utf-8",
        )

    @property
    def calls(self) -> list[str]:
        """The calls of systemctl that were no questions."""
        path = self._folder / "calls"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def bring(self, operations: Sequence[Operation], *, check: bool = False) -> list[str]:
        """Run operations, and return those from which this machine differed."""
        answer: Answer[list[str]] = self.living.bring(NAME, operations, patience.SECONDS, check=check)
        assert answer.value is not None, answer.why
        return answer.value


@contextmanager
def opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalHost]:
    """Yield this machine as a host, whose systemd is in a folder."""
    folder.mkdir()
    programs = {"id": "#!/bin/sh\necho 0\n", "systemctl": _SYSTEMCTL.format(folder=folder)}
    for name, text in programs.items():
        path = folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    with closing(Session({NAME: {}})) as session:
        yield LocalHost(folder, session)
