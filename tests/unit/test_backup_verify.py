"""Damage is noted wherever it is, a clock looks for it, and a disk that fills leaves no half of a backup."""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest
from prometheus_client.parser import text_string_to_metric_families

from backup import __main__ as program
from backup import copying, run, verify
from backup import manifest as manifests
from backup.config import BackupError, Settings, made_at
from backup.manifest import Backup, Damage
from backup.tree import Entry
from lakehouse.backup import inspection, restore, shell
from lakehouse.model import inventory, placement
from lakehouse.model.placement import Cluster
from lakehouse.rolling.run import Running
from lakehouse.status import reading
from plugins.module_utils.lakehouse import backup_manifest
from plugins.module_utils.lakehouse.webhdfs import NoAnswerError, WebHdfs
from tests.unit.backup_manifests import LABEL, manifest

FIRST, SECOND, THIRD = (f"2026010{day}T030405Z" for day in (2, 3, 4))
NAMES = [FIRST, SECOND, THIRD]
GOOD = "stanza: lakehouse\nstatus: ok\n"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        cluster="kit", folder=str(tmp_path), keep=7, namenode="", superuser="hdfs", root="/lakehouse",
        left_out=(), database="", database_user="", database_port=0, database_ssh=(), checkpoint=(),
        checkpoint_folder="", spark_submit=(), spark_user="", verify_days=7,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """PostgreSQL's host, whose part is good."""
    words_of_all: list[tuple[str, ...]] = []

    def ask(_: Settings, *words: str) -> Any:
        words_of_all.append(words)
        return {"said": GOOD} if words == ("verify",) else [{"label": LABEL}]

    monkeypatch.setattr(run, "ask", ask)
    monkeypatch.setattr(verify, "ask", ask)
    return words_of_all


@pytest.fixture
def backups(settings: Settings) -> list[Backup]:
    """Three: a file that all have once, one that the last two have once, and one of each."""
    made: list[Backup] = []
    for number, name in enumerate(NAMES):
        backup = Backup(settings.backups / name)
        backup.files.mkdir(parents=True)
        for file, first in (("all", 0), ("two", 1), ("own", number)):
            if number == first:
                (backup.files / file).write_text(f"{file} {name}")
            elif number > first:
                os.link(made[-1].files / file, backup.files / file)
        paths = sorted(path.name for path in backup.files.iterdir())
        backup.write_tree({path: entry(backup.files / path) for path in paths})
        backup.finish(manifest(name))
        made.append(Backup(backup.folder))
    settings.state.mkdir()
    return made


def entry(path: Path) -> Entry:
    text = path.read_bytes()
    return Entry(
        path.name,
        False,
        "eve",
        "lakehouse",
        "660",
        len(text),
        7,
        3,
        path.stat().st_ino,
        sha256=copying.sha256(path),
    )


def change(path: Path) -> None:
    """Change a byte of a file in its place, as a disk does."""
    with path.open("r+b") as stream:
        stream.write(b"X")


def marked(settings: Settings) -> dict[str, list[str]]:
    return {one["name"]: list(one["problems"]) for one in program._list(settings, Namespace())}


def line(file: str) -> str:
    return f"files/{file} is not as it was written"


# -- What a verification notes --


def test_a_file_that_several_backups_have_is_damaged_in_all_of_them(
    settings: Settings, backups: list[Backup]
) -> None:
    change(backups[1].files / "two")
    assert verify.verify(settings, backups[2]) == [line("two")]
    assert marked(settings) == {FIRST: [], SECOND: [line("two")], THIRD: [line("two")]}
    assert manifests.standing(settings) == {"good": FIRST, "damaged": [THIRD, SECOND]}


def test_a_file_of_one_backup_alone_damages_no_other(settings: Settings, backups: list[Backup]) -> None:
    change(backups[1].files / "own")
    (backups[1].files / "all").unlink()
    assert sorted(verify.verify(settings, backups[1])) == [line("all"), line("own")]
    assert marked(settings) == {FIRST: [], SECOND: [line("all"), line("own")], THIRD: []}


@pytest.mark.parametrize("part", ["manifest.json", "tree.jsonl"])
def test_damage_of_what_describes_a_backup_is_noted_too(
    settings: Settings, backups: list[Backup], part: str
) -> None:
    change(backups[2].folder / part)
    [problem] = verify.verify(settings, Backup(backups[2].folder))
    assert problem.endswith(f"{part} is not as it was written")
    assert manifests.standing(settings) == {"good": SECOND, "damaged": [THIRD]}


def test_what_is_mended_is_good_again(settings: Settings, backups: list[Backup]) -> None:
    path = backups[2].files / "own"
    before = path.read_bytes()
    change(path)
    assert verify.verify(settings, backups[2])
    path.write_bytes(before)
    assert verify.verify(settings, backups[2]) == []
    assert manifests.standing(settings) == {"good": THIRD, "damaged": []}


def test_a_host_of_postgresql_that_does_not_answer_is_no_damage(
    settings: Settings, backups: list[Backup], monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*_: Any) -> Any:
        raise BackupError("PostgreSQL's host does not answer: no route")

    monkeypatch.setattr(verify, "ask", silent)
    with pytest.raises(BackupError, match="does not answer"):
        verify.verify(settings, backups[2])
    assert set(map(tuple, marked(settings).values())) == {()}


@pytest.mark.parametrize(
    ("text", "damage"),
    [
        ('["a"]', Damage(("a",), (line("a"),))),
        ("[]", Damage()),
        ('{"files": ["a"], "problems": ["x"]}', Damage(("a",), ("x",))),
    ],
)
def test_notes_of_every_release_are_read(backups: list[Backup], text: str, damage: Damage) -> None:
    (backups[0].folder / "damaged.json").write_text(text)
    assert backups[0].damage == damage


@pytest.mark.parametrize("text", ["", "{", '{"files": ["../x"], "problems": []}', "7"])
def test_a_note_that_cannot_be_read_is_damage(backups: list[Backup], text: str) -> None:
    (backups[0].folder / "damaged.json").write_text(text)
    [problem] = backups[0].damage.problems
    assert "damaged.json: " in problem


def test_the_list_marks_what_is_damaged(
    settings: Settings, backups: list[Backup], monkeypatch: pytest.MonkeyPatch
) -> None:
    change(backups[2].files / "own")
    verify.verify(settings, backups[2])
    answer = program._list(settings, Namespace())
    monkeypatch.setattr(inventory, "load", lambda _: None)
    monkeypatch.setattr(placement, "read", lambda _: OneHost())
    monkeypatch.setattr(shell, "program", lambda *_, read, **__: read(json.loads(json.dumps(answer))))
    assert inspection.listed("inventory/x").facts == ("3 backups", f"{THIRD} (damaged)", SECOND, FIRST)


# -- What status and doctor are told --


def last(settings: Settings) -> Any:
    return backup_manifest.last(json.loads((settings.state / "last.json").read_text()))


def test_status_is_told_of_the_last_good_one_by_a_verification(
    settings: Settings, backups: list[Backup]
) -> None:
    (settings.state / "last.json").write_text(json.dumps({"good": THIRD, "why": "", "began": 1}))
    change(backups[2].files / "own")
    words = Namespace(name="", table="", database="", room=False, keep=False)
    assert program._verify(settings, words)["problems"] == [line("own")]
    assert (last(settings)["good"], last(settings)["damaged"]) == (SECOND, [THIRD])
    kept = reading.parse_backup((settings.state / "last.json").read_text())
    assert (kept.good, kept.damaged, kept.why) == (made_at(SECOND), (THIRD,), "")


# -- By the clock --


def test_a_backup_verifies_all_when_it_is_time_and_reads_a_file_once(
    settings: Settings, backups: list[Backup], asked: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    checksum = copying.sha256

    def counted(path: Path) -> str:
        read.append(path)
        return checksum(path)

    monkeypatch.setattr(copying, "sha256", counted)
    change(backups[0].files / "all")
    verify.regularly(settings)
    assert [set(lines) for lines in marked(settings).values()] == [{line("all")}] * 3
    copies = [path for path in read if path.parent.name == "files"]
    assert len(copies) == len({path.stat().st_ino for path in copies}) == 5
    assert asked.count(("verify",)) == 1
    # Not again until it is time.
    read.clear()
    verify.regularly(settings)
    assert read == []
    (settings.state / "verified.json").write_text(json.dumps({"at": time.time() - 8 * 86400}))
    verify.regularly(settings)
    assert read != []


@pytest.mark.parametrize("days", [0, 10**6])
def test_it_does_not_before_it_is_time_or_where_nobody_wants_it(
    settings: Settings, backups: list[Backup], days: int
) -> None:
    change(backups[0].files / "all")
    verify.regularly(replace(settings, verify_days=days))
    assert not any(marked(settings).values())


def test_a_run_verifies_before_it_copies(
    settings: Settings, backups: list[Backup], monkeypatch: pytest.MonkeyPatch
) -> None:
    known: list[Any] = []

    def made(_: Settings) -> dict[str, str]:
        known.append(backups[2].damage.files)
        return {"name": THIRD}

    monkeypatch.setattr(run, "run", made)
    change(backups[2].files / "all")
    program._run(settings, Namespace())
    assert known == [("all",)]


# -- A disk that fills --


@pytest.fixture
def datanode() -> Iterator[str]:
    class File(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"x" * 10)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), File) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


class Hdfs(WebHdfs):
    """As `WebHdfs`: it names a DataNode, and forgets every snapshot."""

    def __init__(self, place: str = "") -> None:
        super().__init__(place, "hdfs")
        self.place, self.dropped = place, list[str]()

    def call(self, method: str, operation: str, path: str, **query: str) -> dict[str, Any]:  # noqa: ARG002
        if operation == "DELETESNAPSHOT":
            self.dropped.append(query["snapshotname"])
        return {"Location": self.place}


def test_a_disk_without_room_is_not_called_a_fault_of_hdfs(datanode: str, tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("/dev/full")
    wanted = {"a": Entry("a", False, "eve", "lakehouse", "660", 10, 7, 3)}
    with pytest.raises(OSError, match="No space left") as refused:
        copying.copy(Hdfs(datanode), "/x", wanted, tmp_path, {}, tmp_path)
    assert refused.value.errno == errno.ENOSPC


def test_a_file_that_an_earlier_backup_has_lost_is_fetched(datanode: str, tmp_path: Path) -> None:
    wanted = {"a": Entry("a", False, "eve", "lakehouse", "660", 10, 7, 3)}
    hdfs = Hdfs(datanode)
    _, fetched = copying.copy(hdfs, "/x", wanted, tmp_path, wanted, tmp_path / "gone")
    assert (fetched, (tmp_path / "a").read_bytes()) == (10, b"x" * 10)


@pytest.fixture
def hdfs(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Hdfs:
    """All that a run asks, but the copying."""
    found = Hdfs()
    part = manifest(THIRD)["database"]
    monkeypatch.setattr(run, "WebHdfs", lambda *_: found)
    monkeypatch.setattr(run, "_image", lambda *_: None)
    monkeypatch.setattr(run, "_tables", lambda *_: [])
    monkeypatch.setattr(
        run, "ask", lambda _, *words, **_rows: dict(part) if words[0] == "backup" else [{"label": LABEL}]
    )
    settings.configuration.write_text("secret")
    return found


@pytest.mark.usefixtures("backups")
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_fills_on_the_way_is_one_line_and_the_next_backup_works(
    settings: Settings, hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def fills(_: Settings, __: Any, backup: Backup) -> Any:
        (backup.files / "half").write_text("x")
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(run, "_copy", fills)
    settings = replace(settings, verify_days=0)
    with pytest.raises(BackupError) as refused:
        program._run(settings, Namespace())
    why = str(refused.value)
    assert why.startswith(f"{settings.folder} was full before the copy was whole: {os.strerror(code)}; free ")
    assert "\n" not in why
    assert sorted(path.name for path in settings.backups.iterdir()) == NAMES
    assert [name for name in hdfs.dropped if name not in NAMES] != []
    assert (last(settings)["why"], last(settings)["good"]) == (why, THIRD)

    monkeypatch.setattr(run, "_copy", lambda *_: ({}, 0))
    made = program._run(settings, Namespace())
    assert (last(settings)["why"], last(settings)["good"]) == ("", made["name"])


@pytest.mark.usefixtures("backups")
def test_the_snapshot_of_half_a_backup_is_dropped_once_hdfs_answers(
    settings: Settings, hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = Backup(settings.backups / "20260105T030405Z")
    half.files.mkdir(parents=True)
    (half.files / "a").write_text("x")

    def silent(*_: str, **__: str) -> dict[str, Any]:
        raise NoAnswerError("no answer")

    monkeypatch.setattr(hdfs, "call", silent)
    run._forget_unfinished(settings, cast("WebHdfs", hdfs))
    assert list(half.folder.iterdir()) == []
    assert half.name not in [one.name for one in manifests.finished(settings)]
    monkeypatch.undo()
    run._forget_unfinished(settings, cast("WebHdfs", hdfs))
    assert (half.folder.exists(), hdfs.dropped) == (False, [half.name])


@pytest.mark.usefixtures("backups")
def test_what_came_of_a_run_is_kept_on_a_full_disk(settings: Settings) -> None:
    path = settings.state / "last.json"
    path.write_text("{}")
    (settings.state / "last.json.new").symlink_to("/dev/full")
    program._keep(settings, {"why": "full"})
    assert json.loads(path.read_text())["why"] == "full"
    assert list(settings.state.iterdir()) == [path]


def test_prometheus_is_told_of_the_newest_good_backup_and_of_a_failure(
    settings: Settings, backups: list[Backup], tmp_path: Path
) -> None:
    exporting = replace(settings, metrics=str(tmp_path / "backup.prom"))
    for last, failed in (({"why": "no space", "ended": 1.0}, 1.0), ({"why": "it was interrupted"}, 0.0)):
        program._keep(exporting, last)
        text = Path(exporting.metrics).read_text("utf-8")
        samples = {
            sample.name: sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
        assert samples == {
            "lakehouse_backup_good_timestamp_seconds": made_at(backups[-1].name),
            "lakehouse_backup_limit_seconds": 30 * 3600,
            "lakehouse_backup_failed": failed,
        }


# -- Clocks --


class OneHost:
    """A cluster of one host, of which a restore asks the names of units alone."""

    def __init__(self, *, history: bool = True) -> None:
        self.history = history

        class Host:
            name = "n1"
            groups = frozenset({"postgresql"})

        class Inventory:
            path = "inventory/x"

        self.inventory, self.hosts, self.services = Inventory, (Host,), {"n1": ()}

    def active(self, _: str) -> Any:
        return self.hosts[0]

    def variable(self, name: str) -> Any:
        return self.history if name == "lakehouse_catalog_enabled" else "kit"


@pytest.mark.parametrize("history", [True, False])
def test_nothing_is_done_by_the_clock_while_a_cluster_goes_back(
    monkeypatch: pytest.MonkeyPatch, history: bool
) -> None:
    scripts: list[str] = []

    def must(_: Cluster, asked: dict[str, str], __: float) -> dict[str, str]:
        scripts.extend(asked.values())
        return dict.fromkeys(asked, "")

    monkeypatch.setattr(shell, "must", must)
    monkeypatch.setattr(shell, "keeper", lambda _: "n1")

    class Run:
        class living:  # noqa: N801 -- as the attribute is called
            cluster = OneHost(history=history)

        @staticmethod
        def wait(*_: Any) -> None:
            """All is well at once."""

    steps = restore.Steps(cast("Running", Run()), {})
    steps._stop()
    stop = " ".join(scripts)
    scripts.clear()
    steps._start()
    start = " ".join(scripts)
    for name, there in (("lakehouse-backup", True), ("lakehouse-catalog", history)):
        assert (f"systemctl stop {name}.timer {name}.service" in stop) is there
        assert (f"systemctl start {name}.timer" in start) is there


def test_an_image_is_made_after_a_checkpoint_that_was_killed(settings: Settings, tmp_path: Path) -> None:
    """It leaves its lock, which is a file, and half an image."""
    folder = tmp_path / "checkpoint"
    (folder / "current").mkdir(parents=True)
    (folder / "current" / "fsimage_0000000000000000009.ckpt").touch()
    (folder / "in_use.lock").write_text("12@node")
    names = ("fsimage_0000000000000000001", "fsimage_0000000000000000001.md5", "VERSION")
    command = " && ".join(["mkdir current", *(f"touch current/{name}" for name in names)])
    checkpoint = ("sh", "-c", f"cd '{folder}' && {command}")
    backup = Backup(settings.backups / FIRST)
    backup.folder.mkdir(parents=True)
    run._image(replace(settings, checkpoint=checkpoint, checkpoint_folder=str(folder)), backup)
    assert sorted(path.name for path in backup.namenode.iterdir()) == sorted(names)
