"""What a host's shell is asked about files, and what it answers where nothing is to be done."""

from __future__ import annotations

import getpass
import grp
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from plugins.action import lakehouse_config_files as config_files

MINE = {"owner": getpass.getuser(), "group": grp.getgrgid(os.getgid()).gr_name}


@pytest.fixture
def entries(tmp_path: Path) -> list[dict[str, Any]]:
    """A folder, a file with a blank in its name, a link, and a secret, as they should be."""
    folder, file, link = tmp_path / "conf", tmp_path / "conf" / "a file", tmp_path / "link"
    folder.mkdir(mode=0o750)
    file.write_text("text ä\n", encoding="utf-8")
    file.chmod(0o640)
    link.symlink_to("conf")
    secret = tmp_path / "secret"
    secret.write_text("pw\n", encoding="utf-8")
    secret.chmod(0o600)
    return [
        {"dest": str(folder), "directory": True, "mode": "0750", "only": ["a file"], **MINE},
        {"dest": str(file), "content": "text ä\n", "mode": "0640", **MINE},
        {"dest": str(link), "link": "conf", **MINE},
        {"dest": str(secret), "content": "pw\n", "secret": True, **MINE},
    ]


def nothing_to_do(entries: list[dict[str, Any]], record: str | None = None) -> bool:
    done = subprocess.run(
        ["sh", "-c", config_files.question(entries, record)],
        input=config_files.digests(entries), capture_output=True, text=True, check=False,
    )  # fmt: skip
    for line in config_files.digests(entries).splitlines():
        assert line.split()[0] not in done.args[-1] + done.stdout + done.stderr, "it is secret"
    return done.returncode == 0 and sorted(done.stdout.splitlines()) == config_files.expected(entries)


def test_what_is_as_it_should_be_needs_no_module(entries: list[dict[str, Any]]) -> None:
    assert nothing_to_do(entries)


@pytest.mark.parametrize(
    "fault", ["text", "mode", "target", "stray file", "missing file", "other owner", "another secret"]
)
def test_what_differs_is_left_to_the_module(entries: list[dict[str, Any]], fault: str) -> None:
    folder, file, link, secret = (Path(entry["dest"]) for entry in entries)
    match fault:
        case "text":
            file.write_text("other\n", encoding="utf-8")
        case "mode":
            file.chmod(0o600)
        case "target":
            link.unlink()
            link.symlink_to("elsewhere")
        case "stray file":
            (folder / "stray").touch()
        case "missing file":
            file.unlink()
        case "another secret":
            secret.write_text("another\n", encoding="utf-8")
        case "other owner":
            entries[1]["owner"] = "nobody-else"
    assert not nothing_to_do(entries)


@pytest.mark.parametrize("fault", ["no record", "another digest", "a file that is gone"])
def test_what_is_not_recorded_is_left_to_the_module(
    entries: list[dict[str, Any]], tmp_path: Path, fault: str
) -> None:
    record = tmp_path / "record"
    lines = "".join(sorted(config_files.digests(entries).splitlines(keepends=True)))
    record.write_text(lines, encoding="utf-8")
    assert nothing_to_do(entries, str(record))
    match fault:
        case "no record":
            record.unlink()
        case "another digest":
            record.write_text(lines.replace(lines[:4], "0000"), encoding="utf-8")
        case "a file that is gone":
            record.write_text(f"{lines}{'f' * 64}  {tmp_path}/gone\n", encoding="utf-8")
    assert not nothing_to_do(entries, str(record))
