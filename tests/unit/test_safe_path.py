"""Root writes below a folder of another account, and follows none of its links."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.lakehouse import safe_path
from plugins.modules import lakehouse_config_files as config_files
from tests.unit.test_config_files import OWN, Apply, apply, mode

__all__ = ["apply"]

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="gives folders away")

ACCOUNT = pwd.getpwnam("daemon")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder of an account, beside one of root with a secret."""
    # pytest's own is closed to other accounts.
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "shadow").write_text("root:secret\n", encoding="utf-8")
    (tmp_path / "etc" / "shadow").chmod(0o600)
    made = tmp_path / "home"
    made.mkdir()
    return given(made)


def given(path: Path) -> Path:
    """Give a path to the account, links themselves."""
    os.chown(path, ACCOUNT.pw_uid, ACCOUNT.pw_gid, follow_symlinks=False)
    return path


def link(path: Path, target: Path | str) -> Path:
    path.symlink_to(target)
    return given(path)


def state(path: Path) -> dict[str, tuple[int, int, int]]:
    """Owner, group and mode of all that is below a folder, and of the folder."""
    found = {str(one): one.lstat() for one in (path, *path.rglob("*"))}
    return {name: (one.st_uid, one.st_gid, one.st_mode) for name, one in found.items()}


SSH = {"directory": True, "owner": "daemon", "mode": "0700"}


@pytest.mark.parametrize(
    "entry", [SSH, {"content": "a\n", "dest": "authorized_keys"}, {"link": "/x", "dest": "current"}]
)
def test_a_folder_that_is_a_link_is_refused_and_its_target_kept(
    home: Path, apply: Apply, entry: dict[str, Any]
) -> None:
    etc = home.parent / "etc"
    ssh, before = link(home / ".ssh", etc), state(etc)
    answer = apply(entry | {"dest": ssh / entry.get("dest", "")})
    assert answer["failed"]
    assert answer["msg"] == f"{ssh} is a symbolic link that daemon could have made; next: rm {ssh}"
    assert state(etc) == before
    assert (etc / "shadow").read_text(encoding="utf-8") == "root:secret\n"


def test_a_file_that_is_a_link_is_refused_and_nothing_of_it_shown(home: Path, apply: Apply) -> None:
    shadow = home.parent / "etc" / "shadow"
    path, before = link(home / "configuration.enc", shadow), state(shadow.parent)
    answer = apply({"dest": path, "content": "a\n", "owner": "daemon"}, _ansible_diff=True)
    assert answer["msg"] == f"{path} is a symbolic link that daemon could have made; next: rm {path}"
    assert "root:secret" not in str(answer)
    assert (state(shadow.parent), shadow.read_text(encoding="utf-8")) == (before, "root:secret\n")


def test_a_link_above_a_folder_of_root_counts_too(home: Path, apply: Apply) -> None:
    below = home / "a"
    below.mkdir()
    (below / "conf").symlink_to(home.parent / "etc")
    answer = apply({"dest": below / "conf" / "file", "content": "a\n"})
    assert answer["msg"].startswith(
        f"{below / 'conf'} is a symbolic link that root could have made; next: rm "
    )


def test_a_pipe_is_not_waited_for(home: Path, apply: Apply) -> None:
    os.mkfifo(home / "conf")
    given(home / "conf")
    answer = apply({"dest": home / "conf", "content": "a\n"})
    assert answer["msg"] == (f"{home}/conf is no file, and daemon may have made it; next: rm -r {home}/conf")


def test_a_file_that_an_account_has_open_is_replaced_not_given_away(home: Path, apply: Apply) -> None:
    path = home / "conf"
    path.write_text("a\n", encoding="utf-8")
    given(path)
    with path.open("a", encoding="utf-8") as kept_open:
        assert apply({"dest": path, "content": "a\n"})["changed"]
        kept_open.write("b\n")
    assert (path.read_text(encoding="utf-8"), path.stat().st_uid) == ("a\n", 0)
    assert not apply({"dest": path, "content": "a\n"})["changed"]


def test_what_is_no_link_is_written_below_the_folder_of_an_account(home: Path, apply: Apply) -> None:
    folder = {"dest": home / "work" / "local", "directory": True, "owner": "daemon", "mode": "0770"}
    entry = {"dest": home / "conf", "content": "a\n", "owner": "daemon", "mode": "0640"}
    assert apply(folder, entry)["files"] == [str(folder["dest"]), str(entry["dest"])]
    assert apply(folder, entry)["files"] == []
    assert (mode(home / "work" / "local"), mode(home / "conf")) == ("0770", "0640")
    assert (home / "work" / "local").owner() == (home / "conf").owner() == "daemon"


def test_a_link_of_root_among_folders_of_root_is_followed(tmp_path: Path, apply: Apply) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    (tmp_path / "data").symlink_to("disk")
    assert apply({"dest": tmp_path / "data" / "a", "content": "a\n"})["changed"]
    assert apply({"dest": tmp_path / "data", "directory": True, "owner": "daemon"})["changed"]
    assert disk.owner() == "daemon"


@pytest.mark.parametrize(("owner", "refused"), [("daemon", True), ("root", False)])
def test_in_a_sticky_folder_the_links_of_others_are_refused(
    tmp_path: Path, apply: Apply, owner: str, refused: bool
) -> None:
    sticky = tmp_path / "catalogs"
    sticky.mkdir()
    sticky.chmod(0o1777)
    (tmp_path / "other").write_text("old\n", encoding="utf-8")
    path = sticky / "hive.yaml"
    path.symlink_to(tmp_path / "other")
    if owner == "daemon":
        given(path)
    answer = apply({"dest": path, "content": "new\n"})
    assert bool(answer.get("failed")) is refused
    assert (tmp_path / "other").read_text(encoding="utf-8") == "old\n"


def test_links_that_lead_to_each_other_end(tmp_path: Path, apply: Apply) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert "too many symbolic links" in apply({"dest": tmp_path / "a" / "file", "content": "a\n"})["msg"]


def test_an_account_that_does_not_exist_is_one_line(tmp_path: Path, apply: Apply) -> None:
    answer = apply({"dest": tmp_path / "a", "content": "a\n", "owner": "nobody-of-tests"})
    assert answer["msg"].startswith(f"{tmp_path}/a: there is no user nobody-of-tests; next: ")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_renamed_meanwhile_leads_nowhere_else(home: Path) -> None:
    work = home / "work"
    work.mkdir()
    with safe_path.opened(str(work / "conf")) as place:
        work.rename(home / "moved")
        link(work, home.parent / "etc")
        safe_path.replace(place, "a\n", {"owner": OWN["owner"], "group": OWN["group"], "mode": "0644"})
    assert (home / "moved" / "conf").read_text(encoding="utf-8") == "a\n"
    assert [path.name for path in (home.parent / "etc").iterdir()] == ["shadow"]


# -- What another account had --


@pytest.fixture
def repository(home: Path) -> dict[str, Any]:
    """An entry for the folder of an earlier release: files and folders of `daemon`, for `bin`."""
    folder = home / "archive"
    (folder / "17-1" / "0001").mkdir(parents=True)
    (folder / "17-1" / "0001" / "segment").write_text("wal\n", encoding="utf-8")
    for path in (folder, *folder.rglob("*")):
        given(path)
    return {"dest": folder, "directory": True, "owner": "bin", "mode": "0700", "taken_from": "daemon"}


def test_what_another_account_had_is_taken_over_once(repository: dict[str, Any], apply: Apply) -> None:
    folder = repository["dest"]
    assert [apply(repository)["changed"], apply(repository)["changed"]] == [True, False]
    assert {path.owner() for path in (folder, *folder.rglob("*"))} == {"bin"}
    assert (folder / "17-1" / "0001" / "segment").read_text(encoding="utf-8") == "wal\n"


def test_what_is_linked_into_it_is_not_given_away(repository: dict[str, Any], apply: Apply) -> None:
    etc, folder = repository["dest"].parents[1] / "etc", repository["dest"] / "17-1"
    before = state(etc)
    link(folder / "etc", etc)
    link(folder / "soft", etc / "shadow")
    os.link(etc / "shadow", folder / "hard")
    apply(repository)
    assert state(etc) == before


def test_an_interruption_is_completed(repository: dict[str, Any], apply: Apply) -> None:
    os.chown(repository["dest"] / "17-1", 0, 0)
    assert apply(repository)["changed"]
    assert (repository["dest"] / "17-1").owner() == "bin"


def test_a_folder_that_was_given_changes_once(repository: dict[str, Any], apply: Apply) -> None:
    assert apply(repository)["changed"]
    assert not apply(repository)["changed"]


# -- sshd is asked before it reads a file --


@pytest.mark.parametrize(
    ("code", "message"), [(0, None), (255, "sshd refuses the rendered file: line: line 2: Bad")]
)
def test_sshd_has_the_say_over_its_file(
    tmp_path: Path, apply: Apply, monkeypatch: pytest.MonkeyPatch, code: int, message: str | None
) -> None:
    sshd = tmp_path / "sshd"
    sshd.write_text(f'#!/bin/sh\ngrep -q Match "$3" || exit 9\necho "$3: line 2: Bad" >&2\nexit {code}\n')
    sshd.chmod(0o755)
    monkeypatch.setattr(config_files, "SSHD", str(sshd))
    path = tmp_path / "lakehouse.conf"
    answer = apply({"dest": path, "content": "Match all\n", "validate": "sshd"})
    assert path.exists() is (message is None)
    if message:
        assert answer["msg"] == f"{path}: {message}; next: sshd -t"
