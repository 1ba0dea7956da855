"""What root reads below a folder of a service's account is read as that account, and bounded."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakehouse.model.inventory import Host
from lakehouse.status import questions, reading
from tests.unit import patience

OWNER = "nobody"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="root becomes the account")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a folder of another account, with `state/`, beside a file that root alone may read."""
    # Not pytest's own, which root alone enters.
    home = Path(tempfile.mkdtemp(prefix="lakehouse-account-"))
    home.chmod(0o755)
    (home / "secret").write_text("of root alone", encoding="utf-8")
    (home / "secret").chmod(0o600)
    (home / "state").mkdir(mode=0o700)
    os.chown(home / "state", pwd.getpwnam(OWNER).pw_uid, -1)
    yield home
    shutil.rmtree(home)


def read(monkeypatch: pytest.MonkeyPatch, folder: Path) -> str:
    monkeypatch.setattr(questions, "KEEPER", OWNER)
    command = ["sh", "-c", questions.last_backup(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=patience.SECONDS)
    return done.stdout


@needs_root
def test_the_result_of_the_last_run_is_read(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    assert read(monkeypatch, folder) == ""
    (folder / "state" / "last.json").write_text("{}", encoding="utf-8")
    (folder / "state" / "last.json").chmod(0o644)
    assert read(monkeypatch, folder) == "{}"


@needs_root
def test_a_link_shows_nothing_that_its_maker_may_not_read(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    (folder / "state" / "last.json").symlink_to(folder / "secret")
    assert read(monkeypatch, folder) == ""


@needs_root
def test_a_file_without_an_end_has_one(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "state" / "last.json").symlink_to("/dev/zero")
    assert len(read(monkeypatch, folder)) == questions._FILE_BYTES


def test_the_last_commit_is_read_as_the_one_who_makes_it() -> None:
    names = {
        "lakehouse_catalog_enabled": True, "lakehouse_catalog_dir": "/c", "lakehouse_users": {"hive": "hms"},
    }  # fmt: skip
    command = questions.commits(Host("db1", "10.0.0.1", frozenset({"postgresql"}), names))
    assert command is not None
    assert "-u hms -- sh -c" in command


@pytest.mark.parametrize("text", ['{"good": "x", "why": ""}', '{"good": [], "why": ""}', "{", "[]", "1"])
def test_a_result_of_another_kind_is_no_answer(text: str) -> None:
    with pytest.raises((ValueError, TypeError, LookupError)):
        reading.parse_commit(text)
