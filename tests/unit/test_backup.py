"""Backups: what is inside, what is linked, what is judged, and what a restore would do."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backup import fingerprint, tables, tree, verify
from backup.config import BackupError, checked, load
from backup.manifest import Backup
from backup.reconcile import plan
from backup.tables import Inside
from backup.tree import Entry
from lakehouse import cli, commands
from lakehouse.backup import engines, postgresql, restore
from lakehouse.errors import UsageError
from lakehouse.model import services
from plugins.lookup import configuration_archive
from tests.unit import patience
from tests.unit.backup_manifests import NAME, manifest


def file(path: str, **other: Any) -> Entry:
    return Entry(path, False, "hive", "lakehouse", "660", length=3, modified=7, replication=3, **other)


def folder(path: str) -> Entry:
    return Entry(path, True, "hive", "lakehouse", "775")


def of(*entries: Entry) -> dict[str, Entry]:
    return {entry.path: entry for entry in (folder(""), *entries)}


# -- What a table needs --


def row(**other: Any) -> dict[str, Any]:
    storage = {"location": "hdfs://lake/lakehouse/d/t", "serde": {"parameters": {}}}
    known: dict[str, Any] = {"database": "d", "name": "t", "type": "EXTERNAL_TABLE", "storage": storage}
    return known | {"parameters": {}} | other


def at(location: str) -> dict[str, Any]:
    return {"location": location, "serde": {"parameters": {"path": location}}}


ICEBERG = {"table_type": "ICEBERG", "metadata_location": "hdfs://lake/lakehouse/d/t/metadata/1.metadata.json"}
DELTA = {"spark.sql.sources.provider": "delta"}


def inside(root: Path, entries: Mapping[str, Entry]) -> Inside:
    return Inside("/lakehouse", root, entries)


def test_an_iceberg_table_is_inside_with_its_snapshot(tmp_path: Path) -> None:
    (tmp_path / "d/t/metadata").mkdir(parents=True)
    (tmp_path / "d/t/metadata/1.metadata.json").write_text('{"current-snapshot-id": 42}')
    here = inside(tmp_path, of(file("d/t/metadata/1.metadata.json")))
    table = tables.describe(row(parameters=ICEBERG), here)
    assert (table.format, table.version, here.problems) == ("iceberg", 42, [])


def test_the_last_commit_of_delta_is_its_version(tmp_path: Path) -> None:
    log = [file(f"d/t/_delta_log/{number:020}.json", sha256="a") for number in (0, 1, 12)]
    here = inside(tmp_path, of(folder("d/t"), *log))
    assert tables.describe(row(parameters=DELTA), here).version == 12
    assert here.problems == []


@pytest.mark.parametrize(
    ("parameters", "location", "missing"),
    [
        (ICEBERG, "hdfs://lake/lakehouse/d/t", "1.metadata.json"),
        (DELTA, "hdfs://lake/lakehouse/d/t", "_delta_log"),
        ({}, "hdfs://lake/lakehouse/d/t", "hdfs://lake/lakehouse/d/t"),
        ({}, "hdfs://lake/elsewhere/t", "hdfs://lake/elsewhere/t"),
    ],
)
def test_a_table_that_is_not_inside_is_named(
    tmp_path: Path, parameters: dict[str, str], location: str, missing: str
) -> None:
    here = inside(tmp_path, of())
    tables.describe(row(parameters=parameters, storage=at(location)), here)
    [problem] = here.problems
    assert problem.startswith("d.t: ")
    assert missing in problem
    assert problem.endswith("is not in the backup")


def test_a_view_has_nothing_to_be_inside(tmp_path: Path) -> None:
    here = inside(tmp_path, of())
    assert tables.describe(row(type="VIRTUAL_VIEW", storage=None), here).format == "view"
    assert here.problems == []


# -- What a restore does to a tree --


def test_what_is_as_it_was_is_not_touched() -> None:
    wanted = of(folder("d"), file("d/a"))
    done = plan(wanted, wanted, frozenset(), keep=False)
    assert (done.aside, done.folders, done.files) == ((), (), ())


def test_what_is_too_much_is_set_aside_with_what_is_in_it() -> None:
    wanted = of(folder("d"), file("d/a"))
    there = wanted | of(folder("new"), file("new/b"), file("d/c"))
    assert plan(wanted, there, frozenset(), keep=False).aside == ("d/c", "new")


@pytest.mark.parametrize(
    ("there", "lost"),
    [
        (of(folder("d"), replace(file("d/a"), length=4)), frozenset()),
        (of(folder("d"), replace(file("d/a"), modified=8)), frozenset()),
        (of(folder("d"), folder("d/a")), frozenset()),
        (of(folder("d"), file("d/a")), frozenset({"d/a"})),
    ],
)
def test_a_file_that_is_another_is_set_aside_and_written(
    there: dict[str, Entry], lost: frozenset[str]
) -> None:
    done = plan(of(folder("d"), file("d/a")), there, lost, keep=False)
    assert (done.aside, [entry.path for entry in done.files]) == (("d/a",), ["d/a"])


def test_a_catalog_of_a_later_time_keeps_its_files() -> None:
    there = of(folder("d"), replace(file("d/a"), modified=9), file("d/new"))
    done = plan(of(folder("d"), file("d/a"), file("d/b")), there, frozenset(), keep=True)
    assert (done.aside, [entry.path for entry in done.files]) == ((), ["d/b"])


def test_folders_are_made_before_what_is_in_them() -> None:
    done = plan(of(file("d/e/a"), folder("d/e"), folder("d")), of(), frozenset(), keep=False)
    assert [entry.path for entry in done.folders] == ["d", "d/e"]


# -- A backup on the disk --


@pytest.fixture
def backup(tmp_path: Path) -> Backup:
    made = Backup(tmp_path / NAME)
    made.files.mkdir(parents=True)
    made.write_tree(of(file("a")))
    made.finish(manifest())
    return Backup(made.folder)


def test_a_tree_is_read_as_it_was_written(tmp_path: Path) -> None:
    entries = of(file("a b/ü", acl=("user:x:r-x",), sha256="0" * 64))
    tree.write(tmp_path / "tree", entries)
    assert tree.read(tmp_path / "tree") == entries


@pytest.mark.parametrize("name", ["manifest.json", "tree.jsonl"])
def test_a_changed_byte_of_what_describes_it_is_found(backup: Backup, name: str) -> None:
    path = backup.folder / name
    path.write_text(path.read_text().replace("a", "b", 1))
    with pytest.raises(BackupError, match=f"{name} is not as it was written"):
        assert backup.entries


def test_half_a_backup_is_none(backup: Backup) -> None:
    (backup.folder / "manifest.json").unlink()
    assert not backup.finished


@pytest.mark.parametrize("name", ["", "../etc", "20260102T030405Z;ls", "b42"])
def test_only_a_name_is_a_name(name: str) -> None:
    with pytest.raises(BackupError, match="is no backup"):
        checked(name)


# -- What pgBackRest says: it ends with 0 whatever it found --

GOOD = """stanza: lakehouse
status: ok
  backup: 20260102-030405F, status: valid, total files checked: 9, total valid files: 9
    missing: 0, checksum invalid: 0, size invalid: 0, other: 0
"""
BAD = GOOD.replace("status: ok", "status: error").replace("status: valid", "status: invalid")


def test_a_good_repository_is_good() -> None:
    assert verify.judge(GOOD, "20260102-030405F") == []


@pytest.mark.parametrize(
    "said", [BAD, "", "stanza: lakehouse\nstatus: error\n  no archives exist in the repo"]
)
def test_a_damaged_repository_is_damaged(said: str) -> None:
    assert verify.judge(said, "20260102-030405F")


# -- Checksums that two engines agree on --


def test_spark_and_trino_count_the_same_columns() -> None:
    columns = fingerprint.kinds(
        [("a", "string"), ("b", "decimal(9,2)"), ("c", "array<int>"), ("d", "double")]
    )
    assert columns == [("a", "text"), ("b", "whole"), ("d", "real")]
    ours, theirs = fingerprint.expression(columns), engines.expression(columns)
    assert ours.count("coalesce(") == theirs.count("coalesce(") == 4
    assert "`c`" not in ours


def test_a_table_without_such_a_column_has_none() -> None:
    assert fingerprint.expression([]) == engines.expression([]) == "0"


# -- PostgreSQL --


def test_recovery_stops_at_the_restore_point_of_the_set() -> None:
    script = postgresql.restore("postgresql@17-main", 5432, "/log", postgresql.Target("F", name=NAME))
    assert f"--set=F --type=name --target={NAME} --target-timeline=current" in script
    assert "grep 'recovery stopping' || { echo 'it did not stop at its target'; exit 1; }" in script


# -- The whole cluster --


PROGRAMS = {
    # In recovery until as many files of WAL were replayed as it is told.
    "runuser": """#!/bin/sh
case "$*" in
  *pg_is_in_recovery*) [ "$(cat %(count)s)" -lt %(files)s ] && echo t || echo f;;
  *) n=$(cat %(count)s); [ "$n" = %(stuck)s ] || n=$((n + 1)); echo $n | tee %(count)s;;
esac
""",
    "systemctl": "#!/bin/sh\nexit 1\n",
    "sleep": "#!/bin/sh\n",
}


@pytest.mark.parametrize(("stuck", "code", "said"), [(99, 0, ""), (3, 1, "FATAL:  no such file\n")])
def test_a_recovery_is_waited_for_as_long_as_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stuck: int, code: int, said: str
) -> None:
    monkeypatch.setattr(postgresql, "_STILL_SECONDS", 3)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    count = tmp_path / "count"
    count.write_text("0\n")
    known = {"count": count, "files": 9, "stuck": stuck}
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(text % known if "%(" in text else text)
        (tmp_path / name).chmod(0o755)
    log = tmp_path / "log"
    log.write_text("FATAL:  no such file\n")
    script = f"set -e\n{postgresql.recovered('unit', 5432, str(log))}"
    done = subprocess.run(
        ["sh", "-c", script], check=False, capture_output=True, text=True, timeout=patience.SECONDS
    )
    assert (done.returncode, done.stdout) == (code, said), done


def test_words_of_a_disk_that_is_not_there_are_no_sizes() -> None:
    said = "mkdir: cannot create directory '/data': Read-only file system\nblocks 1 2\ndatabase 3 4\n"
    assert list(restore.sizes(said)) == [("blocks", 1, 2), ("database", 3, 4)]


@pytest.mark.parametrize(
    ("lacking", "free", "fact"),
    [
        (10, 10, ""),
        (11, 10, "the disks of the DataNodes have room for 10 MiB, and the backup needs 11 MiB"),
        # It is unknown what of it is there.
        (None, 10, ""),
        (None, 9, "the disks of the DataNodes have room for 19 MiB, and the backup needs 20 MiB"),
    ],
)
def test_what_is_set_aside_keeps_its_room(lacking: int | None, free: int, fact: str) -> None:
    mib = 1 << 20
    backup = {
        "room": 20 * mib,
        "lacking": None if lacking is None else lacking * mib,
        "database": {"bytes": 5 * mib},
    }
    disks = [("blocks", free * mib, 4 * mib), ("blocks", 0, 6 * mib), ("database", 2 * mib, 3 * mib)]
    refused = restore.crowded(backup, disks)
    assert (refused.fact if refused else "") == fact


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("Safe mode is ON. The reported blocks 3 needs additional 2 blocks", "leave"),
        ("Name node detected blocks with generation stamps in future.", "forceExit"),
    ],
)
def test_safe_mode_is_left_by_the_word_for_it(said: str, word: str) -> None:
    assert restore.exit_action(said) == word


def test_files_that_vanish_while_they_are_counted_are_no_fault(tmp_path: Path) -> None:
    said = "echo 'du: cannot access blk_1: No such file or directory' >&2; echo '7 there'"
    counts = f"du() {{ {said} | tr ' ' '\t'; }}; {restore._sizes('blocks', str(tmp_path))}"
    absent = restore._sizes("blocks", str(tmp_path / "absent"))
    both = subprocess.run(
        ["sh", "-c", f"exec 2>&1; {counts}; unset -f du; {absent}"],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    [(kind, free, taken), nothing] = [line.split() for line in both]
    assert (kind, int(free) > 0, taken, nothing) == ("blocks", True, "7", ["blocks", "0", "0"])


def test_the_room_of_a_lost_database_is_that_of_its_disk_and_the_plan_makes_no_folder(tmp_path: Path) -> None:
    """A folder that root made there could not be PostgreSQL's any more."""
    folder = tmp_path / "17" / "main"
    script = f"""sed() {{ echo {folder}; }}
    {restore._DATABASE_DISK}
    {restore._sizes("database", '"$data"', '"$disk"')}"""
    output = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    [kind, free, used] = output.split()
    assert (kind, int(free) > 0, used) == ("database", True, "0")
    assert list(tmp_path.iterdir()) == []


def test_a_host_of_backups_that_falls_silent_is_not_waited_for(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/word/fsimage_1"
        done = subprocess.run(
            ["python3", "-c", restore._FETCH, url, str(tmp_path / "part"), "0.3"],
            capture_output=True, text=True, check=False, timeout=patience.SECONDS,
        )  # fmt: skip
    assert done.returncode != 0
    assert "timed out" in done.stderr.splitlines()[-1]


def test_what_leads_starts_before_what_reports_to_it() -> None:
    catalogue = services.load().services
    leading = {name for name, one in catalogue.items() if restore.leads(one)}
    assert {one.leader for one in catalogue.values() if one.leader} <= leading
    assert {"metastore", "spark_master", "trino", "flink_jobmanager"} <= leading
    assert {"spark_worker", "spark_thrift", "spark_connect", "flink_taskmanager"}.isdisjoint(leading)


# -- The inventory, encrypted --


def test_openssl_reads_the_archive(tmp_path: Path) -> None:
    (tmp_path / "inventory").mkdir()
    (tmp_path / "inventory" / "hosts.yml").write_text("all:\n")
    content = configuration_archive.archive([tmp_path / "inventory", tmp_path / "absent"])
    text = configuration_archive.encrypted(content, "word")
    assert text == configuration_archive.encrypted(content, "word")
    argv = ["openssl", "enc", "-d", "-aes-256-cbc", "-pbkdf2", "-iter", "600000", "-a", "-pass", "pass:word"]
    plain = subprocess.run(argv, input=text.encode(), capture_output=True, check=True).stdout
    listed = subprocess.run(["tar", "-tz"], input=plain, capture_output=True, check=True).stdout
    assert listed.split() == [b"inventory/hosts.yml"]


# -- Bad input is one line --


@pytest.mark.parametrize("to", ["yesterday", "2026-01-02T03:04:05", "2999-01-02T03:04:05+00:00"])
def test_a_time_has_an_offset_and_is_past(to: str) -> None:
    with pytest.raises(UsageError, match="--to"):
        restore._moment(to)


@pytest.mark.parametrize("arguments", [["backup", "burn"], ["restore", "a", "b"]])
def test_wrong_words_are_usage(arguments: list[str]) -> None:
    assert cli.main(arguments) == commands.USAGE


def test_settings_of_another_release_are_said_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"cluster": "x"}))
    with pytest.raises(BackupError, match=str(path)):
        load(str(path))
