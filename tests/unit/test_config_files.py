"""Files, directories and links of a role: brought into the desired state at once, or left as they were."""

from __future__ import annotations

import errno
import grp
import json
import os
import pwd
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from plugins.module_utils.lakehouse import host_state
from plugins.modules import lakehouse_config_files as config_files

OWN = {"owner": pwd.getpwuid(os.getuid()).pw_name, "group": grp.getgrgid(os.getgid()).gr_name}
Apply = Callable[..., dict[str, Any]]


@pytest.fixture
def apply(capsys: pytest.CaptureFixture[str]) -> Apply:
    """Return a function that runs the module for some entries and returns its answer."""

    def run(*entries: dict[str, Any], **options: Any) -> dict[str, Any]:
        files = [OWN | entry | {"dest": str(entry["dest"])} for entry in entries]
        with patch_module_args({"files": files, **options}), pytest.raises(SystemExit):
            config_files.main()
        return dict(json.loads(capsys.readouterr().out))

    return run


def mode(path: Path) -> str:
    """Return the permission bits, in octal digits."""
    return f"{path.stat().st_mode & 0o7777:04o}"


class TestFile:
    """Text, owner and mode."""

    def test_it_is_written_once(self, tmp_path: Path, apply: Apply) -> None:
        path = tmp_path / "a.conf"
        entry = {"dest": path, "content": "a=1\n"}
        first, second = apply(entry), apply(entry)
        assert (first["changed"], first["files"]) == (True, [str(path)])
        assert (second["changed"], second["files"]) == (False, [])
        assert (path.read_text(encoding="utf-8"), mode(path)) == ("a=1\n", "0644")

    def test_another_text_replaces_the_file_and_leaves_nothing_else(
        self, tmp_path: Path, apply: Apply
    ) -> None:
        path = tmp_path / "a.conf"
        apply({"dest": path, "content": "old\n"})
        inode = path.stat().st_ino
        with path.open(encoding="utf-8") as reader:
            assert apply({"dest": path, "content": "new → 東京\n"})["changed"]
            assert reader.read() == "old\n"
        assert path.read_text(encoding="utf-8") == "new → 東京\n"
        assert path.stat().st_ino != inode
        assert list(tmp_path.iterdir()) == [path]

    def test_a_wrong_mode_is_mended_and_the_file_kept(self, tmp_path: Path, apply: Apply) -> None:
        path = tmp_path / "a.conf"
        entry = {"dest": path, "content": "a\n", "mode": "0640"}
        apply(entry)
        inode = path.stat().st_ino
        path.chmod(0o666)
        assert apply(entry)["changed"]
        assert (mode(path), path.stat().st_ino) == ("0640", inode)

    def test_check_mode_shows_the_difference_and_changes_nothing(self, tmp_path: Path, apply: Apply) -> None:
        path = tmp_path / "a.conf"
        path.write_text("old\n", encoding="utf-8")
        answer = apply({"dest": path, "content": "new\n"}, _ansible_check_mode=True, _ansible_diff=True)
        assert answer["changed"]
        assert [(diff["before"], diff["after"]) for diff in answer["diff"]] == [("old\n", "new\n")]
        assert path.read_text(encoding="utf-8") == "old\n"

    def test_broken_xml_never_replaces_the_old_file(self, tmp_path: Path, apply: Apply) -> None:
        path = tmp_path / "site.xml"
        apply({"dest": path, "content": "<configuration/>", "validate": "xml"})
        answer = apply({"dest": path, "content": "<configuration>", "validate": "xml"})
        assert answer["failed"]
        assert answer["msg"].startswith(f"{path}: the rendered file is not well-formed XML: ")
        assert path.read_text(encoding="utf-8") == "<configuration/>"
        assert list(tmp_path.iterdir()) == [path]

    def test_a_full_disk_is_one_line_and_leaves_the_old_file(
        self, tmp_path: Path, apply: Apply, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "a.conf"
        apply({"dest": path, "content": "old\n"})

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, "no space left")

        monkeypatch.setattr(Path, "replace", full)
        answer = apply({"dest": path, "content": "new\n"})
        assert answer["msg"] == f"{path}: no space left; next: df -h {tmp_path}, ls -ld {tmp_path}"
        assert path.read_text(encoding="utf-8") == "old\n"
        assert list(tmp_path.iterdir()) == [path]

    def test_a_mounted_file_is_written_in_place(
        self, tmp_path: Path, apply: Apply, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "hosts"
        path.write_text("old\n", encoding="utf-8")

        def busy(*_: object) -> None:
            raise OSError(errno.EBUSY, "mounted")

        monkeypatch.setattr(Path, "replace", busy)
        assert apply({"dest": path, "content": "new\n"})["changed"]
        assert path.read_text(encoding="utf-8") == "new\n"
        assert list(tmp_path.iterdir()) == [path]


class TestSecret:
    """Readable by its owner alone, and never shown."""

    def test_it_comes_apart_from_the_entries(self, tmp_path: Path, apply: Apply) -> None:
        path = tmp_path / "a.env"
        answer = apply({"dest": path, "secret": True}, secrets={str(path): "KEY=hush\n"}, _ansible_diff=True)
        assert answer["changed"]
        assert (path.read_text(encoding="utf-8"), mode(path)) == ("KEY=hush\n", "0600")
        assert "hush" not in json.dumps(answer)

    def test_another_secret_is_a_change(self, tmp_path: Path, apply: Apply) -> None:
        path = tmp_path / "a.env"
        answers = [
            apply({"dest": path, "secret": True}, secrets={str(path): text}) for text in ("a", "b", "b")
        ]
        assert [answer["changed"] for answer in answers] == [True, True, False]


class TestDirectory:
    """A directory with its parents."""

    def test_it_is_made_once_with_its_mode(self, tmp_path: Path, apply: Apply) -> None:
        path = tmp_path / "one" / "two"
        entry = {"dest": path, "directory": True, "mode": "0750"}
        assert [apply(entry)["changed"], apply(entry)["changed"]] == [True, False]
        assert mode(path) == "0750"

    def test_check_mode_makes_none(self, tmp_path: Path, apply: Apply) -> None:
        assert apply({"dest": tmp_path / "one", "directory": True}, _ansible_check_mode=True)["changed"]
        assert not list(tmp_path.iterdir())


class TestLink:
    """A symbolic link."""

    def test_it_is_moved_once(self, tmp_path: Path, apply: Apply) -> None:
        link = tmp_path / "current"
        for target in ("releases/1", "releases/2"):
            entry = {"dest": link, "link": target}
            assert [apply(entry)["changed"], apply(entry)["changed"]] == [True, False]
            assert str(link.readlink()) == target
        assert list(tmp_path.iterdir()) == [link]

    def test_the_same_path_written_otherwise_is_no_change(self, tmp_path: Path, apply: Apply) -> None:
        link = tmp_path / "conf"
        assert apply({"dest": link, "link": "/etc//spark/"})["changed"]
        assert not apply({"dest": link, "link": "/etc//spark/"})["changed"]


def test_entries_are_taken_in_order_and_only_changes_are_told(tmp_path: Path, apply: Apply) -> None:
    folder = tmp_path / "etc"
    entries = [{"dest": folder, "directory": True}, {"dest": folder / "a", "content": "a\n"}]
    assert apply(*entries)["files"] == [str(folder), str(folder / "a")]
    entries[1] = {"dest": folder / "a", "content": "b\n"}
    assert apply(*entries)["files"] == [str(folder / "a")]


def test_a_directory_may_hold_some_names_only(tmp_path: Path, apply: Apply) -> None:
    folder = tmp_path / "catalog"
    folder.mkdir()
    for name in ("kept", "old"):
        (folder / name).write_text("", encoding="utf-8")
    entry = {"dest": folder, "directory": True, "only": ["kept", "new"]}
    assert apply(entry)["changed"]
    assert [path.name for path in folder.iterdir()] == ["kept"]
    assert not apply(entry)["changed"]


class TestManifest:
    """What was put on the host is recorded, so that what another program has changed is seen."""

    def test_every_entry_is_an_item_and_no_text_is_in_it(self, tmp_path: Path, apply: Apply) -> None:
        kept, secret, folder, link, gone = (tmp_path / name for name in ("a", "b", "folder", "link", "gone"))
        manifest = tmp_path / "etc" / "manifest.json"
        folder.mkdir()
        entries = (
            {"dest": kept, "content": "a=1\n"},
            {"dest": secret, "secret": True},
            {"dest": folder, "directory": True, "mode": "750", "only": []},
            {"dest": link, "link": "folder"},
            {"dest": gone, "absent": True},
        )
        for changed in (True, False):
            result = apply(*entries, secrets={str(secret): "pw\n"}, manifest=str(manifest))
            assert result["changed"] is changed
        assert mode(manifest) == "0600"
        text = manifest.read_text(encoding="utf-8")
        assert "a=1" not in text
        assert "pw" not in text
        items = host_state.read(str(manifest))["items"]
        assert {key: item["kind"] for key, item in items.items()} == {
            str(kept): "file", str(secret): "file", str(folder): "directory", str(link): "link",
            str(gone): "absent",
        }  # fmt: skip
        assert list(host_state.differences(items.values())) == []

    def test_check_mode_leaves_it(self, tmp_path: Path, apply: Apply) -> None:
        manifest = tmp_path / "manifest.json"
        apply({"dest": tmp_path / "a", "content": "a\n"}, manifest=str(manifest), _ansible_check_mode=True)
        assert not manifest.exists()
