"""What a keeper says is a stranger's text: each field that is not what it has to be is one line."""

from __future__ import annotations

import hashlib
import json
import shlex
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest

from backup import run
from backup.config import BackupError, Settings
from backup.manifest import Backup
from lakehouse.backup import create, engines, restore, shell
from lakehouse.errors import LakehouseError, UsageError
from lakehouse.model.placement import Cluster
from plugins.module_utils.lakehouse import backup_manifest, checked_document
from plugins.module_utils.lakehouse.checked_document import DocumentError
from tests.unit import patience
from tests.unit.backup_manifests import LABEL, NAME, manifest

DIGEST = "0" * 64
PARTS = {
    "tree.jsonl": DIGEST,
    "namenode/VERSION": DIGEST,
    "namenode/fsimage_0000000000000000042": DIGEST,
    "namenode/fsimage_0000000000000000042.md5": DIGEST,
}
TABLE = {
    "database": "d", "name": "t", "format": "iceberg", "location": "hdfs://lake/d/t", "metadata": "m",
    "version": 42, "state": "", "rows": 1, "checksum": 7, "columns": [["id", "whole"]], "unknown": "",
}  # fmt: skip
WHOLE = manifest(parts=PARTS, tables=[TABLE])
BREAK, DEEP = "a\nb", "[" * 100_000 + "]" * 100_000


def changed(document: Any, path: str, value: Any) -> Any:
    """The document with another value at a path such as `parts/x`."""
    copy = json.loads(json.dumps(document))
    *way, last = path.split("|")
    place = copy
    for step in way:
        place = place[int(step) if isinstance(place, list) else step]
    place[int(last) if isinstance(place, list) else last] = value
    return copy


def test_a_manifest_of_the_kit_is_read_as_it_is() -> None:
    assert backup_manifest.manifest(WHOLE) == WHOLE


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("name", "../../etc"),
        ("name", f"{NAME}\n"),
        ("cluster", "kit; id"),
        ("database|label", f"{LABEL};id"),
        ("database|label", f"--set={LABEL}"),
        ("database|restore_point", "$(id)"),
        ("database|at", "now"),
        ("database|at", 1e300),
        ("database|at", float("nan")),
        ("database|bytes", -1),
        ("database|bytes", "1"),
        ("database|version", "17\x1b]0;x"),
        ("hdfs|at", True),
        ("hdfs", []),
        ("bytes", 1.5),
        ("parts|namenode/x;id>/tmp/p;#", DIGEST),
        ("parts|namenode/../../x", DIGEST),
        ("parts|/etc/passwd", DIGEST),
        ("parts|..", DIGEST),
        ("parts|-rf", DIGEST),
        ("parts|namenode/a b", DIGEST),
        ("parts|tree.jsonl", f"{DIGEST}'; id; '"),
        ("parts|tree.jsonl", 7),
        ("parts", ["tree.jsonl"]),
        ("tables", {}),
        ("tables|0", "t"),
        ("tables|0|name", BREAK),
        ("tables|0|location", "hdfs://\x1b[2J"),
        ("tables|0|format", "orc`; drop"),
        ("tables|0|version", "1; drop table x"),
        ("tables|0|rows", "many"),
        ("tables|0|columns", [["id", "whole; x"]]),
        ("tables|0|columns", [["id"]]),
        ("took", {"x\n": 1}),
    ],
)
def test_a_field_of_an_attacker_is_one_line(path: str, value: Any) -> None:
    with pytest.raises(DocumentError) as refused:
        backup_manifest.manifest(changed(WHOLE, path, value))
    message = str(refused.value)
    assert message.isprintable()
    assert len(message) < 300
    assert message.startswith(f"the manifest: {path.partition('|')[0]}")


@pytest.mark.parametrize("document", [None, [], "x", 7, {"name": NAME}])
def test_what_is_no_manifest_is_one_line(document: Any) -> None:
    with pytest.raises(DocumentError, match=r"^the manifest: "):
        backup_manifest.manifest(document)


@pytest.mark.parametrize(
    ("text", "why"), [(DEEP, "nested too deeply"), ("{", "no JSON"), ("\x1b", "no JSON")]
)
def test_what_cannot_be_read_is_one_line(text: str, why: str) -> None:
    with pytest.raises(DocumentError, match=why) as refused:
        checked_document.parse(text, "the answer")
    assert str(refused.value).isprintable()


def test_what_is_too_long_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checked_document, "MOST_BYTES", 1 << 20)
    with pytest.raises(DocumentError, match="longer than 1 MiB"):
        checked_document.parse("7" * (1 << 20) + "7", "the answer")


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/.", "a\0b", 7])
def test_a_file_outside_of_the_copy_is_refused(path: Any) -> None:
    row = {
        "path": path, "directory": False, "owner": "o", "group": "g", "permission": "660", "length": 1,
        "modified": 1, "replication": 1, "file_id": 1, "acl": [], "sha256": DIGEST,
    }  # fmt: skip
    with pytest.raises(DocumentError, match=r"^the list of files: path: "):
        backup_manifest.entry(row)


# -- On the keeper's own disk --


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / NAME
    made.mkdir()
    return made


def written(folder: Path, document: str) -> Backup:
    """A backup whose manifest has the right checksum beside it, as an attacker writes it."""
    (folder / "manifest.json").write_text(document, encoding="utf-8")
    digest = hashlib.sha256(document.encode()).hexdigest()
    (folder / "manifest.sha256").write_text(f"{digest}\n", encoding="utf-8")
    return Backup(folder)


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (json.dumps(changed(WHOLE, "parts|../x", DIGEST)), "'../x' is not allowed there"),
        (json.dumps(changed(WHOLE, "name", "20260102T030406Z")), "is the manifest of 20260102T030406Z"),
        (DEEP, "nested too deeply"),
        ("[]", "is no object"),
    ],
)
def test_a_manifest_with_the_right_checksum_can_still_be_wrong(folder: Path, document: str, why: str) -> None:
    with pytest.raises(BackupError, match=why):
        _ = written(folder, document).manifest


def test_a_huge_manifest_is_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checked_document, "MOST_BYTES", 1 << 10)
    backup = written(folder, json.dumps(changed(WHOLE, "cluster", "x" * 2000)))
    with pytest.raises(BackupError, match="longer than"):
        _ = backup.manifest


@pytest.mark.parametrize(
    "said",
    [
        "[]", "7", DEEP, '{"value": []}', '{"value": [{"label": "x; id"}]}', '{"value": {"label": 1}}',
        '{"why": "\\u001b[2J"}', "{}",
    ],
)  # fmt: skip
def test_a_hosts_repository_of_an_attacker_is_one_line(tmp_path: Path, said: str) -> None:
    program = tmp_path / "ssh"
    (tmp_path / "said").write_text(said, encoding="utf-8")
    program.write_text(f"#!/bin/sh\ncat {tmp_path}/said\n", encoding="utf-8")
    program.chmod(0o755)
    if said == '{"value": []}':
        assert run.in_repository(settings(program)) == []
        return
    with pytest.raises((BackupError, DocumentError)) as refused:
        run.in_repository(settings(program))
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 1200


def settings(program: Path) -> Settings:
    return Settings(
        cluster="kit", folder="", keep=1, namenode="", superuser="hdfs", root="/lakehouse", left_out=(),
        database="", database_user="", database_port=0, database_ssh=(str(program),), checkpoint=(),
        checkpoint_folder="", spark_submit=(), spark_user="",
    )  # fmt: skip


# -- On the control machine --


class KeeperCluster:
    """A cluster of which only the keeper's name and the path are asked."""

    class inventory:  # noqa: N801 -- as the attribute is called
        path = "inventory/x"


def answered(monkeypatch: pytest.MonkeyPatch, text: str) -> Cluster:
    monkeypatch.setattr(shell, "keeper", lambda _: "k")
    monkeypatch.setattr(shell, "act", lambda *_: {"k": shell.ScriptResult(0, text)})
    return cast("Cluster", KeeperCluster())


@pytest.mark.parametrize(
    "answer",
    [
        json.dumps({"value": changed({**WHOLE, "problems": []}, "parts|namenode/x;id", DIGEST)}),
        json.dumps({"value": {"problems": []}}),
        json.dumps({"value": {"problems": "none"}}),
        json.dumps({"value": {"problems": ["x"], "name": "$(id)"}}),
        json.dumps({"value": 7}),
        json.dumps({"why": "\x1b]0;x\x07"}),
        json.dumps([7]),
        DEEP,
        "\x1b[2J",
        "",
    ],
)
def test_an_answer_of_an_attacker_is_one_line(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    cluster = answered(monkeypatch, answer)
    with pytest.raises(LakehouseError) as refused:
        shell.program(cluster, "verify", seconds=1.0, read=backup_manifest.verified)
    assert str(refused.value).isprintable()
    assert "; next: " in str(refused.value)


def test_what_is_not_there_is_a_mistake_of_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = answered(monkeypatch, json.dumps({"why": "there is no backup x", "usage": True}))
    with pytest.raises(UsageError, match="there is no backup x"):
        shell.program(cluster, "verify", seconds=1.0, read=backup_manifest.verified)


def test_problems_of_an_attacker_move_no_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps({"value": {"name": NAME, "problems": ["files/\x1b]0;x\x07"]}})
    found = shell.program(answered(monkeypatch, text), "verify", seconds=1.0, read=backup_manifest.verified)
    assert found["problems"] == ["files/\N{REPLACEMENT CHARACTER}]0;x\N{REPLACEMENT CHARACTER}"]


@pytest.mark.parametrize("text", ["{", "[]", '{"good": "x; id", "why": "", "began": 1}', DEEP])
def test_a_last_backup_of_an_attacker_is_one_line(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(shell, "must", lambda *_: {"k": text})
    monkeypatch.setattr(shell, "last", lambda _: "cat /state/last.json")
    with pytest.raises(LakehouseError, match=r"^k: ") as refused:
        create._last(cast("Cluster", KeeperCluster()), "k")
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("parts", [{}, {"namenode/VERSION": DIGEST}, {"namenode/fsimage_x": DIGEST}])
def test_a_backup_has_one_image(parts: dict[str, str]) -> None:
    with pytest.raises(DocumentError, match="0 images of the NameNode"):
        backup_manifest.image(parts)


def test_words_of_a_manifest_are_words_in_the_script_of_an_image(tmp_path: Path) -> None:
    # Even of one that no reader would let through.
    parts = {f"x;touch {tmp_path}/owned;#": f"';touch {tmp_path}/owned;'"}
    lines = restore.image(f"{tmp_path}/name dir", "hdfs", "lake", "http://k/w", parts, 42)
    programs = 'stat() { echo hdfs; }; runuser() { shift 5; "$@"; }; '
    (tmp_path / "name dir").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").write_text('#!/bin/sh\n: > "$4"\n', encoding="utf-8")
    (tmp_path / "bin" / "python3").chmod(0o755)
    subprocess.run(
        ["sh", "-c", f"PATH={shlex.quote(str(tmp_path))}/bin:$PATH; {programs}" + "\n".join(lines)],
        capture_output=True, text=True, check=False, timeout=patience.SECONDS,
    )  # fmt: skip
    assert not (tmp_path / "owned").exists()


def test_what_is_in_the_namenodes_folder_is_done_by_its_user() -> None:
    own, number = backup_manifest.image(PARTS)
    missing, made, inside = restore.image("/data/name", "hdfs", "lake", "http://k/w", own, number)
    assert number == 42
    assert missing.endswith(" ||")
    assert made == "install -d -o hdfs -g lake -m 0700 /data/name"
    assert inside.startswith("cd / && runuser -u hdfs -g lake -- sh -c ")
    assert "chown" not in made + inside
    assert "mv restored current" in inside


def test_a_name_is_a_name_in_trinos_sql() -> None:
    assert engines._quoted('a"."b') == '"a"".""b"'
