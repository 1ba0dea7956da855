"""What a node has is what was built: the real action plugin and module, with a folder as the node."""

from __future__ import annotations

import json
import mmap
import os
import shutil
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleActionFail

from lakehouse.artifacts import manifest, releases
from lakehouse.artifacts.cache import Cache
from lakehouse.run import ROOT
from plugins.action.lakehouse_release import ActionModule
from plugins.module_utils.lakehouse import host_state
from plugins.modules import lakehouse_release as release
from tests.unit import patience
from tests.unit.test_releases import FILES, LAYERS, bill_of

MODULE = Path(release.__file__)


# As Ansible does it: what modules share is one package with Ansible's own.
RUN = (
    "import runpy, sys, ansible.module_utils as shared;"
    f"shared.__path__.append({str(ROOT / 'plugins' / 'module_utils')!r});"
    "runpy.run_path(sys.argv.pop(), run_name='__main__')"
)


class Node(ActionModule):
    """An action whose node is this computer; what is transferred arrives as `line` lets it through."""

    def __init__(self, root: Path, way: Path) -> None:
        shell = SimpleNamespace(join_path=os.path.join, tmpdir=str(way))
        arguments = {"component": "app", "root": str(root)}
        task = SimpleNamespace(
            args=arguments, check_mode=False, async_val=0, action="lakehouse_release", diff=False
        )
        super().__init__(task, SimpleNamespace(_shell=shell), SimpleNamespace(), None, None, None)
        self.way = way
        self.sent = 0
        self.damaged: set[int] = set()

    def _make_tmp_path(self, *_: Any) -> str:
        return str(self.way)

    def _transfer_file(self, local: str, remote: str) -> str:
        self.sent += 1
        shutil.copyfile(local, remote)
        if self.sent in self.damaged:
            with Path(remote).open("r+b") as stream:
                stream.seek(600)
                stream.write(b"X")
        return remote

    def _low_level_execute_command(self, cmd: str, *_: Any, **__: Any) -> dict[str, Any]:
        done = subprocess.run(["sh", "-c", cmd], capture_output=True, text=True, check=False)
        return {"rc": done.returncode, "stdout": done.stdout}

    def _execute_module(self, *_: Any, module_args: dict[str, Any], **__: Any) -> dict[str, Any]:
        told = module_args | {"_ansible_check_mode": self._task.check_mode}
        given = json.dumps({"ANSIBLE_MODULE_ARGS": told})
        done = subprocess.run(
            [sys.executable, "-c", RUN, MODULE], input=given, capture_output=True, text=True, check=False
        )
        return dict(json.loads(done.stdout))


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    bill, cache = bill_of(tmp_path, FILES, LAYERS)
    monkeypatch.setattr(manifest, "load", lambda _, **__: bill)
    monkeypatch.setenv("LAKEHOUSE_CACHE", str(cache.root))
    way = tmp_path / "way"
    way.mkdir()
    return Node(tmp_path / "app", way)


def test_an_archive_that_was_altered_on_its_way_is_not_unpacked(node: Node, tmp_path: Path) -> None:
    node.damaged = {1, 2}
    with pytest.raises(AnsibleActionFail, match=r"app: what arrived is not what was sent, twice; next: "):
        node.run()
    assert not (tmp_path / "app" / "releases").exists()


def test_it_is_sent_once_more(node: Node, tmp_path: Path) -> None:
    node.damaged = {1}
    assert node.run()["changed"]
    assert (tmp_path / "app" / "current" / "sbin" / "start").read_bytes() == b"#!/bin/sh\n"
    assert node.sent == 2
    assert not node.run()["changed"]
    assert node.sent == 2


def missing(path: Path) -> None:
    path.unlink()


def truncated(path: Path) -> None:
    path.write_bytes(b"")


def unlisted(path: Path) -> None:
    """A release that an earlier kit has unpacked, and that lacks a file."""
    (path.parents[1] / host_state.RELEASE_LIST).unlink()
    path.unlink()


@pytest.mark.parametrize("damage", [missing, truncated, unlisted])
def test_a_file_that_a_release_lacks_comes_back(
    node: Node, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    current = tmp_path / "app" / "current"
    file, other = current / "sbin" / "start", current / "NOTICE"
    node.run()
    link, kept = current.lstat().st_ino, other.stat().st_ino
    damage(file.resolve())
    node._task.check_mode = True
    assert node.run(task_vars={})["changed"]
    assert file.exists() is (damage is truncated)
    node._task.check_mode = False
    assert node.run()["changed"]
    assert file.read_bytes() == b"#!/bin/sh\n"
    assert other.stat().st_ino == kept, "what was right has stayed"
    assert current.lstat().st_ino != link, "daemons of it restart"
    assert not node.run()["changed"]
    assert node.sent == 2


def test_a_release_of_an_earlier_kit_gets_its_list_and_no_daemon_restarts(node: Node, tmp_path: Path) -> None:
    current = tmp_path / "app" / "current"
    node.run()
    link = current.lstat().st_ino
    (current / host_state.RELEASE_LIST).unlink()
    assert node.run()["changed"]
    assert (current / host_state.RELEASE_LIST).read_text(encoding="utf-8").splitlines()
    assert current.lstat().st_ino == link
    assert not node.run()["changed"]


def test_what_a_release_has_besides_is_left_alone(node: Node, tmp_path: Path) -> None:
    node.run()
    (tmp_path / "app" / "current" / "cache.pyc").write_bytes(b"cached")
    assert not node.run()["changed"]
    assert node.sent == 1


def test_the_release_in_use_is_in_the_manifest(node: Node, tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.json"
    node._task.args["manifest"] = str(manifest)
    node.run()
    items = host_state.read(str(manifest))["items"].values()
    assert {item["kind"] for item in items} == {"link", "release"}
    assert list(host_state.differences(items)) == []
    (tmp_path / "app" / "current" / "sbin" / "start").unlink()
    [line] = host_state.differences(items)
    assert line.endswith("lacks sbin/start, or has another size")


def test_a_bad_archive_is_built_again_and_arrives_good(node: Node, tmp_path: Path) -> None:
    cache = Path(os.environ["LAKEHOUSE_CACHE"])
    bill = manifest.load(tmp_path)
    archive = releases.archive(bill.component("app"), Cache(cache))
    archive.parent.mkdir()
    archive.write_bytes(b"not a tar at all")
    assert node.run()["changed"]
    assert (tmp_path / "app" / "current" / "NOTICE").read_bytes() == b"notice"
    assert node.sent == 1


def archive_of(tmp_path: Path) -> str:
    content = tmp_path / "file"
    content.write_bytes(b"content")
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        tar.add(content, "file")
    return str(tmp_path / "a.tar")


def test_the_half_of_a_killed_run_is_thrown_away(tmp_path: Path) -> None:
    target = tmp_path / "releases" / "1-abc"
    half = target.with_name("1-abc.partial")
    half.mkdir(parents=True)
    (half / "half").touch()
    assert release.install(archive_of(tmp_path), target) == []
    assert sorted(path.name for path in target.iterdir()) == [host_state.RELEASE_LIST, "file"]
    assert not half.exists()


def test_two_control_machines_install_one_after_the_other(tmp_path: Path) -> None:
    archive, target = archive_of(tmp_path), tmp_path / "releases" / "1-abc"
    did: list[list[str] | None] = []
    both = [threading.Thread(target=lambda: did.append(release.install(archive, target))) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join(patience.SECONDS)
    assert sorted(one is None for one in did) == [False, True]


def test_an_archive_that_cannot_be_unpacked_leaves_no_release(tmp_path: Path) -> None:
    bad = tmp_path / "bad.tar"
    bad.write_bytes(b"not a tar at all" * 100)
    target = tmp_path / "releases" / "1-abc"
    with pytest.raises(subprocess.CalledProcessError):
        release.install(str(bad), target)
    assert not target.exists()


class TestSupersededReleases:
    """What an upgrade leaves behind goes, but for the last one and what runs."""

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        """Return a component's folder with four releases, the second of which is current."""
        for age, name in enumerate(("4-d", "3-c", "2-b", "1-a")):
            folder = tmp_path / "releases" / name
            folder.mkdir(parents=True)
            (folder / "app.jar").write_bytes(b"content")
            os.utime(folder, (1_000_000 - age, 1_000_000 - age))
        (tmp_path / "releases" / "5-e.partial").mkdir()
        (tmp_path / "current").symlink_to("releases/3-c")
        return tmp_path

    @pytest.mark.parametrize(
        ("keep", "left"),
        [(0, ["3-c"]), (1, ["3-c"]), (2, ["3-c", "4-d"]), (9, ["1-a", "2-b", "3-c", "4-d"])],
    )
    def test_the_current_and_the_newest_stay(self, root: Path, keep: int, left: list[str]) -> None:
        release.clear(root, keep)
        assert sorted(path.name for path in root.glob("releases/*-?")) == left
        assert (root / "releases" / "5-e.partial").exists()

    @pytest.mark.parametrize("mapped", [False, True])
    def test_what_a_process_has_open_stays(self, root: Path, mapped: bool) -> None:
        with (root / "releases" / "2-b" / "app.jar").open("rb") as jar, ExitStack() as stack:
            if mapped:
                stack.enter_context(mmap.mmap(jar.fileno(), 0, prot=mmap.PROT_READ))
                jar.close()
            assert release.clear(root, 1) == ["4-d", "1-a"]
        assert release.clear(root, 1) == ["2-b"]


def test_a_release_lies_beside_the_one_in_use_until_it_is_switched(node: Node, tmp_path: Path) -> None:
    root = tmp_path / "app"
    node.run()
    used = root.joinpath("current").readlink()
    root.joinpath("releases", "0-old").mkdir()
    root.joinpath("current").unlink()
    root.joinpath("current").symlink_to("releases/0-old")
    node._task.args["switch"] = False
    assert not node.run()["changed"]
    assert root.joinpath("current").readlink() == Path("releases/0-old")
    node._task.args["switch"] = True
    assert node.run()["changed"]
    assert root.joinpath("current").readlink() == used
    node._task.args["pinned"] = {"app": "0-old"}
    assert node.run()["changed"]
    assert root.joinpath("current").readlink() == Path("releases/0-old")
    assert node.sent == 1


def test_the_release_that_was_in_use_outlives_one_that_went_back(node: Node, tmp_path: Path) -> None:
    """Three switches: what did not serve is newer than what it was taken back to."""
    root = tmp_path / "app"
    node.run()
    for name in ("0-used", "0-bad", "0-used"):
        root.joinpath("releases", name).mkdir(exist_ok=True)
        node._task.args["pinned"] = {"app": name}
        assert node.run()["changed"]
    node._task.args["pinned"] = {}
    assert node.run()["removed"] == ["0-bad"]
    assert root.joinpath("releases", "0-used").is_dir()


def test_a_look_tells_a_switch_to_a_release_that_is_there(node: Node, tmp_path: Path) -> None:
    root = tmp_path / "app"
    node.run()
    used = root.joinpath("current").readlink()
    root.joinpath("releases", "0-old").mkdir()
    node._task.args["pinned"], node._task.check_mode = {"app": "0-old"}, True
    assert node.run(task_vars={})["changed"]
    assert root.joinpath("current").readlink() == used
    node._task.args["pinned"] = {}
    assert not node.run(task_vars={})["changed"]


def test_a_pinned_release_that_is_gone_is_one_line(node: Node) -> None:
    node._task.args["pinned"] = {"app": "9-gone", "other": "1-a"}
    with pytest.raises(AnsibleActionFail, match=r"app: 9-gone is not there any more; next: ls .*/releases"):
        node.run()
    assert node.sent == 0


def test_a_host_that_keeps_its_version_is_refused_another(node: Node, tmp_path: Path) -> None:
    root = tmp_path / "app"
    node._task.args["keeps_version"] = True
    assert node.run()["changed"], "a host without one gets it"
    [used] = [path.name for path in root.joinpath("releases").iterdir() if path.is_dir()]
    version = used.rpartition("-")[0]
    for other, refused in ((f"{version}-other", False), ("0-old", True)):
        root.joinpath("releases", other).mkdir()
        root.joinpath("current").unlink()
        root.joinpath("current").symlink_to(f"releases/{other}")
        if refused:
            with pytest.raises(
                AnsibleActionFail, match=r"app is 0 here, .* next: .venv/bin/lakehouse upgrade app, or "
            ):
                node.run()
        else:
            assert node.run()["changed"]
        current = root.joinpath("current").readlink().name
        assert current == (other if refused else used)
