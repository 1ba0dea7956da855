"""The manifest of a host: each kind of item is compared, and what was put there is recorded once."""

from __future__ import annotations

import getpass
import grp
import hashlib
import json
import os
import shlex
import subprocess
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from ansible.module_utils.testing import patch_module_args

from lakehouse.remote.host_manifest import script
from plugins.module_utils.lakehouse import host_manifest, host_state
from plugins.module_utils.lakehouse.host_comparison import compared
from plugins.modules import lakehouse_accounts, lakehouse_kernel, lakehouse_manifest

MINE = {"owner": getpass.getuser(), "group": grp.getgrgid(os.getgid()).gr_name}
Item = dict[str, Any]
# A fifth of what Linux takes: a host has other commands, too.
LONGEST_ARGUMENT = 128 * 1024 // 5
Change = Callable[[Path], object]
Program = Callable[[str, str], None]


def differences(*items: Item) -> list[str]:
    return list(host_state.differences(items))


def _written(path: Path) -> None:
    path.write_text("other\n", encoding="utf-8")


def _link(path: Path) -> None:
    path.unlink()
    path.symlink_to("elsewhere")


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.fixture
def file(tmp_path: Path) -> Item:
    path = tmp_path / "a file"
    path.write_text("text\n", encoding="utf-8")
    path.chmod(0o640)
    return {"kind": "file", "path": str(path), "mode": "0640", **MINE, **host_state.fingerprint(b"text\n")}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (_written, "has other content"),
        (lambda path: path.chmod(0o666), "mode is 0666 in place of 0640"),
        (lambda path: path.chmod(0o4640), "mode is 4640 in place of 0640"),
        (Path.unlink, "is not there"),
        (_link, "is no file"),
        (_pipe, "is no file"),
    ],
    ids=["content", "mode", "setuid", "gone", "link", "pipe"],
)
def test_a_file(file: Item, change: Change, fault: str) -> None:
    assert differences(file) == []
    change(Path(file["path"]))
    assert differences(file) == [f"{file['path']} {fault}"]


def test_owner_and_group_are_compared_by_name(file: Item) -> None:
    assert differences(file | {"owner": "another", "group": "others"}) == [
        f"{file['path']} owner is {MINE['owner']} in place of another",
        f"{file['path']} group is {MINE['group']} in place of others",
    ]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda path: (path / "stray").touch(), "has stray, which the kit does not write"),
        (lambda path: (path / "kept").unlink(), "lacks kept"),
        (lambda path: path.chmod(0o777), "mode is 0777 in place of 0750"),
        (lambda path: ((path / "kept").unlink(), path.rmdir(), path.touch()), "is no directory"),
    ],
    ids=["stray", "gone", "mode", "file"],
)
def test_a_directory(tmp_path: Path, change: Change, fault: str) -> None:
    path = tmp_path / "folder"
    path.mkdir(mode=0o750)
    (path / "kept").touch()
    item = {"kind": "directory", "path": str(path), "mode": "0750", "only": ["kept"], **MINE}
    assert differences(item) == []
    change(path)
    assert differences(item) == [f"{path} {fault}"]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (_link, "leads to elsewhere in place of target"),
        (lambda path: (path.unlink(), path.touch()), "is no link"),
        (Path.unlink, "is no link"),
    ],
    ids=["target", "file", "gone"],
)
def test_a_link(tmp_path: Path, change: Change, fault: str) -> None:
    path = tmp_path / "link"
    path.symlink_to("target")
    item = {"kind": "link", "path": str(path), "target": "target"}
    assert differences(item) == []
    change(path)
    assert differences(item) == [f"{path} {fault}"]


def test_what_was_removed_stays_away(tmp_path: Path) -> None:
    item = {"kind": "absent", "path": str(tmp_path / "old")}
    assert differences(item) == []
    (tmp_path / "old").symlink_to("nowhere")
    assert differences(item) == [f"{tmp_path / 'old'} is there, and the kit has removed it"]


def test_a_release(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    for name in ("a.jar", "b c.jar"):
        (tmp_path / "jars" / name).write_text(name, encoding="utf-8")
    item = {"kind": "release", "path": str(tmp_path)}
    lines = "".join(f"{line}\n" for line in host_state.listed(tmp_path))
    assert differences(item) == [f"release {tmp_path} has no list of its files (.lakehouse-files)"]
    (tmp_path / host_state.RELEASE_LIST).write_text(lines, encoding="utf-8")
    (tmp_path / "cache.pyc").touch()
    assert differences(item) == []
    (tmp_path / "jars" / "a.jar").write_text("longer", encoding="utf-8")
    (tmp_path / "jars" / "b c.jar").unlink()
    assert differences(item) == [f"release {tmp_path} lacks jars/a.jar and 1 more, or has another size"]
    assert differences(item | {"path": "/none"}) == ["release /none is not there"]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Put a shell script before the programs of the system."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def write(name: str, script: str) -> None:
        (folder / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (folder / name).chmod(0o755)

    return write


def test_a_package(program: Program) -> None:
    # A line for each architecture.
    program("dpkg-query", 'case "$*" in *" there") echo installed; echo installed;; *) exit 1;; esac')
    missing = {"kind": "package", "name": "gone"}
    assert differences({"kind": "package", "name": "there"}, missing) == ["package gone is not installed"]


def test_an_account() -> None:
    mine = {"kind": "account", "name": MINE["owner"], "group": MINE["group"]}
    assert differences(mine) == []
    [group] = [entry.gr_name for entry in grp.getgrall() if entry.gr_name == "games"]
    assert differences(mine | {"group": group}) == [f"account {MINE['owner']} is not in the group {group}"]
    [line] = differences(mine | {"name": "nosuchaccount"})
    assert line.startswith("account nosuchaccount lacks its entry")


def test_a_parameter_of_the_kernel() -> None:
    item = {"kind": "kernel", "name": "kernel.ostype", "value": "Linux"}
    assert differences(item) == []
    assert differences(item | {"value": "Other"}) == ["parameter kernel.ostype is Linux in place of Other"]


@pytest.mark.parametrize(
    ("script", "fault"),
    [
        ("echo t", None),
        ("echo f", "is not as the kit has set it"),
        ("echo 'ERROR:  division by zero' >&2; exit 3", "is not as the kit has set it"),
        ("echo 'no server' >&2; exit 2", "cannot be compared: no server"),
    ],
    ids=["right", "another answer", "no", "no server"],
)
def test_a_query(program: Program, script: str, fault: str | None) -> None:
    program("runuser", script)
    digest = hashlib.sha256(b"t").hexdigest()
    item = {"kind": "sql", "name": "role x", "port": "5432", "database": "d", "user": "u", "sql": "select 1"}
    expected = [] if fault is None else [f"PostgreSQL: role x {fault}"]
    assert differences(item | {"sha256": digest}) == expected


@pytest.fixture
def namenode() -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the address of a server that answers by the operation, and its answers."""
    answers: dict[str, Any] = {
        "GETFILESTATUS": {"FileStatus": {"owner": "hive", "group": "lakehouse", "permission": "775"}},
        "GETACLSTATUS": {"AclStatus": {"entries": ["user:ann:r-x", "group::r-x"]}},
        "GETSNAPSHOTTABLEDIRECTORYLIST": {
            "SnapshottableDirectoryList": [{"parentFullPath": "/", "dirStatus": {"pathSuffix": "lake"}}]
        },
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = answers[parse_qs(urlsplit(self.path).query).get("op", ["jmx"])[0]]
            self.send_response(200 if body else 404)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", answers
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_directory_of_hdfs(namenode: tuple[str, dict[str, Any]]) -> None:
    url, answers = namenode
    item = {
        "kind": "hdfs", "url": url, "user": "hdfs", "path": "/lake", "owner": "hive", "group": "lakehouse",
        "mode": "775", "readers": ["ann"], "snapshots": True,
    }  # fmt: skip
    assert differences(item) == []
    answers["GETFILESTATUS"]["FileStatus"]["permission"] = "777"
    answers["GETACLSTATUS"]["AclStatus"]["entries"] = []
    answers["GETSNAPSHOTTABLEDIRECTORYLIST"] = {"SnapshottableDirectoryList": None}
    assert differences(item) == [
        "hdfs:/lake mode is 777 in place of 775",
        "hdfs:/lake is open to no reader in place of ann",
        "hdfs:/lake takes no snapshots",
    ]
    answers["GETFILESTATUS"] = None
    assert differences(item) == ["hdfs:/lake is not there"]


def test_hosts_that_the_namenode_has_to_know(tmp_path: Path, namenode: tuple[str, dict[str, Any]]) -> None:
    url, answers = namenode
    path = tmp_path / "datanodes.json"
    path.write_text('[{"hostName": "n1"}, {"hostName": "n2"}]', encoding="utf-8")
    answers["jmx"] = {"beans": [{"LiveNodes": '{"n1:9866": {}}', "DeadNodes": '{"n2:9866": {}}'}]}
    item = {"kind": "datanodes", "name": str(path), "hosts": ["n1", "n2"], "url": url}
    assert differences(item) == []
    answers["jmx"]["beans"][0]["DeadNodes"] = "{}"
    assert differences(item) == [f"DataNodes of {path} is not read for n2"]
    path.write_text('[{"hostName": "n1"}]', encoding="utf-8")
    assert f"DataNodes of {path} lacks n2" in differences(item)


def test_a_server_that_does_not_answer_is_asked_once() -> None:
    items = [
        {"kind": "hdfs", "url": "http://127.0.0.1:1", "user": "hdfs", "path": f"/{place}"} for place in "abc"
    ]
    [line] = differences(*items)
    assert line.startswith("hdfs:/a cannot be compared")


class TestRecord:
    """Modules add items, and a run of all roles begins and completes the manifest."""

    def test_a_complete_manifest_has_the_inputs_until_something_else_is_put(
        self, tmp_path: Path, file: Item
    ) -> None:
        path = str(tmp_path / "etc" / "manifest.json")
        host_manifest.begin(path, "run")
        host_manifest.record(path, [file])
        assert not host_manifest.complete(path, "another run", "inputs")
        assert host_manifest.complete(path, "run", "inputs")
        assert host_state.read(path)["inputs"] == "inputs"
        host_manifest.record(path, [file])
        assert host_state.read(path)["inputs"] == "inputs"
        host_manifest.record(path, [file | {"mode": "0600"}])
        assert host_state.read(path)["inputs"] == ""

    def test_what_a_run_of_all_roles_no_longer_puts_is_dropped_at_its_end(
        self, tmp_path: Path, file: Item
    ) -> None:
        path, link = str(tmp_path / "manifest.json"), {"kind": "link", "path": "/none", "target": "x"}
        unit = {"kind": "unit", "name": "trino", "files": ["/etc/trino"], "listens": [], "ready": [{"a": 1}]}
        host_manifest.begin(path, "first")
        host_manifest.record(path, [file, link, unit])
        host_manifest.complete(path, "first", "inputs")
        host_manifest.begin(path, "second")
        host_manifest.record(path, [file, unit | {"ready": []}])
        items = host_state.read(path)["items"]
        assert items.keys() == {file["path"], "/none", "unit trino"}, "a run that fails loses nothing"
        assert items["unit trino"]["ready"] == []
        host_manifest.complete(path, "second", "inputs")
        assert host_state.read(path)["items"].keys() == {file["path"], "unit trino"}

    def test_a_later_item_takes_the_place_of_one_with_its_name(self, tmp_path: Path, file: Item) -> None:
        path = str(tmp_path / "manifest.json")
        host_manifest.record(path, [file])
        host_manifest.record(path, [{"kind": "absent", "path": file["path"]}])
        [item] = host_state.read(path)["items"].values()
        assert item["kind"] == "absent"

    def test_of_a_unit_two_tasks_know_the_files_and_the_answers(self, tmp_path: Path) -> None:
        path = str(tmp_path / "manifest.json")
        unit = {"kind": "unit", "name": "trino", "enabled": True, "files": [], "listens": [], "ready": []}
        host_manifest.record(path, [unit | {"files": ["/etc/trino"]}])
        host_manifest.record(path, [unit | {"ready": [{"kind": "http"}]}])
        [item] = host_state.read(path)["items"].values()
        assert (item["files"], item["ready"]) == (["/etc/trino"], [{"kind": "http"}])

    def test_a_unit_that_is_switched_off_is_recorded_so_by_a_run_with_tags(self, tmp_path: Path) -> None:
        path = str(tmp_path / "manifest.json")
        unit = {"kind": "unit", "name": "x", "files": [], "listens": [], "ready": []}
        host_manifest.record(path, [unit | {"enabled": True, "ready": [{"kind": "http"}]}])
        host_manifest.record(path, [unit | {"enabled": False}])
        [item] = host_state.read(path)["items"].values()
        assert item["enabled"] is False

    def test_a_release_takes_the_place_of_the_one_before(self, tmp_path: Path) -> None:
        path = str(tmp_path / "manifest.json")
        old, new, sibling = (
            {"kind": "release", "path": f"/opt/{name}"} for name in ("x/releases/1", "x/releases/2", "xy/1")
        )
        host_manifest.record(path, [old, sibling])
        host_manifest.record(path, [new], instead_of="/opt/x/")
        assert host_state.read(path)["items"].keys() == {"release /opt/x/releases/2", "release /opt/xy/1"}

    def test_two_runs_at_once_leave_no_complete_manifest(self, tmp_path: Path, file: Item) -> None:
        path = str(tmp_path / "manifest.json")
        host_manifest.begin(path, "one")
        host_manifest.record(path, [file])
        host_manifest.record(path, [file | {"sha256": "of another run"}])
        assert not host_manifest.complete(path, "one", "inputs")
        assert host_state.read(path)["inputs"] == ""

    def test_a_run_in_which_no_role_has_run_completes_nothing(self, tmp_path: Path) -> None:
        path = str(tmp_path / "manifest.json")
        host_manifest.begin(path, "one")
        assert not host_manifest.complete(path, "one", "inputs")


def _edited(path: Path) -> None:
    path.write_text(path.read_text(encoding="utf-8").replace("0640", "0666"), encoding="utf-8")


def _of_another_version(path: Path) -> None:
    document = json.loads(path.read_text(encoding="utf-8")) | {"format": 0}
    path.write_text(json.dumps(document), encoding="utf-8")


def _moved(path: Path) -> None:
    path.symlink_to(path.rename(f"{path}.mine"))


BAD: dict[str, tuple[Change, str]] = {
    "edited": (_edited, "was edited"),
    "another version": (_of_another_version, "was written by another version of the kit"),
    "gone": (Path.unlink, "is not there"),
    "cut": (lambda path: path.write_text('{"format"', encoding="utf-8"), "cannot be read"),
    "another account's to change": (lambda path: path.chmod(0o666), "can be changed by another account"),
    "a link": (_moved, "cannot be read"),
    "a pipe": (_pipe, "cannot be read"),
    "a list": (lambda path: path.write_text("[]", encoding="utf-8"), "was written by another version"),
    "deep": (lambda path: path.write_text("[" * 100_000, encoding="utf-8"), "cannot be read"),
}


@pytest.fixture
def manifest(tmp_path: Path, file: Item) -> Path:
    """The complete manifest of a host with one file."""
    path = tmp_path / "manifest.json"
    host_manifest.begin(str(path), "run")
    host_manifest.record(str(path), [file])
    host_manifest.complete(str(path), "run", "inputs")
    return path


class TestComparison:
    """What preflight reads on a host, besides what the doctor reads."""

    def test_a_host_that_is_as_it_was_made_has_no_difference(self, manifest: Path) -> None:
        assert compared(str(manifest)) == ([], "inputs")

    @pytest.mark.parametrize("fault", BAD)
    def test_a_manifest_that_cannot_be_used_is_a_difference(self, manifest: Path, fault: str) -> None:
        spoil, words = BAD[fault]
        spoil(manifest)
        [line], inputs = compared(str(manifest))
        assert line.startswith(f"{manifest} {words}")
        assert inputs == ""

    @pytest.mark.parametrize(
        ("shown", "enabled", "words"),
        [
            ("LoadState=loaded\nActiveState=active\nUnitFileState=enabled", True, None),
            ("LoadState=loaded\nActiveState=active\nUnitFileState=disabled", True, "active, disabled"),
            ("LoadState=loaded\nActiveState=failed\nUnitFileState=enabled", True, "failed, enabled"),
            ("LoadState=loaded\nActiveState=active\nUnitFileState=disabled", False, "active, disabled"),
            ("LoadState=not-found\nActiveState=inactive\nUnitFileState=", True, "not-found, inactive"),
            ("LoadState=not-found\nActiveState=inactive\nUnitFileState=", False, None),
        ],
        ids=["runs", "disabled", "failed", "runs for no reason", "none", "never installed"],
    )
    def test_a_unit(
        self, manifest: Path, program: Program, shown: str, enabled: bool, words: str | None
    ) -> None:
        started = "Sat 2126-01-31 12:00:00.123456 UTC"
        text = f"{shown}\nNeedDaemonReload=no\nActiveEnterTimestamp={started}\nFragmentPath=\nDropInPaths="
        program("systemctl", f"cat <<'END'\n{text}\nEND")
        item = {"kind": "unit", "name": "x", "enabled": enabled, "files": [], "ready": [], "listens": []}
        host_manifest.record(str(manifest), [item])
        lines, _ = compared(str(manifest))
        assert [words in line for line in lines if words] == ([True] if words else [])
        assert bool(lines) is (words is not None)

    def test_a_unit_that_answers_wrongly_is_not_ready(self, manifest: Path, program: Program) -> None:
        states = "LoadState=loaded\nActiveState=active\nUnitFileState=enabled\nNeedDaemonReload=no"
        times = "ActiveEnterTimestamp=Sat 2126-01-31 12:00:00.123456 UTC\nFragmentPath=\nDropInPaths="
        program("systemctl", f"cat <<'END'\n{states}\n{times}\nEND")
        probes = [{"kind": "command", "argv": ["echo", "no"], "prints": "alive"}]
        item = {"kind": "unit", "name": "x", "enabled": True, "files": [], "listens": []}
        host_manifest.record(str(manifest), [item | {"ready": probes}])
        [line], _ = compared(str(manifest))
        assert line.startswith("unit x is not ready: ")

    @pytest.mark.parametrize(
        "item",
        [{"files": ["/proc/self/fd/0/none"]}, {"ready": [{"kind": "no such kind"}]}],
        ids=["a path of no folder", "a probe of another version"],
    )
    def test_a_unit_that_cannot_be_compared_is_a_difference(
        self, manifest: Path, program: Program, item: Item
    ) -> None:
        states = "LoadState=loaded\nActiveState=active\nUnitFileState=enabled\nNeedDaemonReload=no"
        times = "ActiveEnterTimestamp=Sat 2126-01-31 12:00:00.123456 UTC\nFragmentPath=\nDropInPaths="
        program("systemctl", f"cat <<'END'\n{states}\n{times}\nEND")
        unit = {"kind": "unit", "name": "x", "enabled": True, "files": [], "listens": [], "ready": []}
        host_manifest.record(str(manifest), [unit | item])
        [line], _ = compared(str(manifest))
        assert line.startswith("unit x cannot be compared: ")


class TestModule:
    """What the play calls before and after the roles."""

    @pytest.fixture
    def call(self, manifest: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
        def run(state: str, **options: Any) -> dict[str, Any]:
            arguments = {"path": str(manifest), "state": state, "inputs": "others", "run": "next"}
            with patch_module_args(arguments | options), pytest.raises(SystemExit):
                lakehouse_manifest.main()
            return dict(json.loads(capsys.readouterr().out))

        return run

    def test_a_run_that_ends_names_its_inputs(
        self, call: Callable[..., dict[str, Any]], manifest: Path, file: Item
    ) -> None:
        call("begun")
        assert compared(str(manifest)) == ([], "")
        call("recorded", items=[file])
        call("completed")
        assert compared(str(manifest)) == ([], "others")

    def test_an_item_may_be_what_is_there_now(
        self, call: Callable[..., dict[str, Any]], manifest: Path, tmp_path: Path
    ) -> None:
        keys = [tmp_path / f"key{number}.pub" for number in (1, 2)]
        for key in keys:
            key.write_text("one\n", encoding="utf-8")
        call("recorded", items=[{"kind": "file", "path": str(tmp_path / "key*.pub"), "now": True}])
        assert compared(str(manifest))[0] == []
        keys[1].write_text("two\n", encoding="utf-8")
        assert compared(str(manifest))[0] == [f"{keys[1]} has other content"]

    @pytest.mark.parametrize("state", ["begun", "recorded", "completed"])
    def test_check_mode_writes_nothing(
        self, call: Callable[..., dict[str, Any]], manifest: Path, state: str
    ) -> None:
        text = manifest.read_bytes()
        items = [{"kind": "absent", "path": "/none"}]
        assert not call(state, items=items, _ansible_check_mode=True)["changed"]
        assert manifest.read_bytes() == text


class TestProgram:
    """What `lakehouse doctor` runs on a host: the same text, with a path."""

    @staticmethod
    def printed(path: Path) -> list[str]:
        command = script(str(path.parent)).replace(host_state.NAME, path.name)
        argv = ["sh", "-c", command]
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()

    def test_it_is_short_and_no_shell_on_the_way_makes_it_longer(self) -> None:
        text = script("/etc")
        for _ in range(3):
            text = shlex.quote(text)
        assert len(text) < LONGEST_ARGUMENT

    def test_it_prints_each_difference_and_an_end(self, manifest: Path, file: Item) -> None:
        assert self.printed(manifest) == [host_state.END]
        Path(file["path"]).unlink()
        assert self.printed(manifest) == [f"{file['path']} is not there", host_state.END]

    @pytest.mark.parametrize("fault", BAD)
    def test_a_manifest_that_cannot_be_used_is_one_line(self, manifest: Path, fault: str) -> None:
        spoil, words = BAD[fault]
        spoil(manifest)
        [line, end] = self.printed(manifest)
        assert line.startswith(f"{host_state.NO_MANIFEST}: {manifest} {words}")
        assert end == host_state.END

    def test_a_service_that_does_not_answer_is_left_to_its_own_finding(self, manifest: Path) -> None:
        item = {"kind": "hdfs", "url": "http://127.0.0.1:1", "user": "hdfs", "path": "/lake"}
        host_manifest.record(str(manifest), [item])
        assert self.printed(manifest) == [host_state.END]


def test_accounts_are_read_from_the_lines_of_sysusers() -> None:
    lines = ["g lakehouse -", 'u hdfs -:lakehouse "A service" /nonexistent /bin/false', 'u ann - "Ann" /']
    assert [(item["name"], item["group"]) for item in lakehouse_accounts.items(lines)] == [
        ("hdfs", "lakehouse"), ("ann", "ann"),
    ]  # fmt: skip


def test_parameters_that_are_read_only_are_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = {"parameters": {"kernel.ostype": "Other", "no.such.parameter": 1}}
    with patch_module_args(arguments), pytest.raises(SystemExit):
        lakehouse_kernel.main()
    assert json.loads(capsys.readouterr().out)["differed"] == []
