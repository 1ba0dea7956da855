from __future__ import annotations

import pytest

from suites.testbed.namenode import Block, File, NameNodeError, named, parse_fsck, parse_short

LAKE = "/lake"
HEAD = "FSCK started by hdfs (auth:SIMPLE) from /10.0.0.1 for path /lake at Sat Nov 21 04:57:59 UTC 2026\n\n"
TAIL = "\nStatus: HEALTHY\n Number of data-nodes:\t3\n\n\nThe filesystem under path '/lake' is HEALTHY"


def replica(address: str) -> str:
    return f"DatanodeInfoWithStorage[{address},DS-4a3aee79,DISK]"


def test_files_with_blocks_and_replicas() -> None:
    report = (
        HEAD
        + "/lake <dir>\n"
        + "/lake/a b, c.csv 300 bytes, replicated: replication=2, 2 block(s):  OK\n"
        + f"0. BP-1-17:blk_11_1011 len=200 Live_repl=2  [{replica('10.0.0.1:9866')}, {replica('n2:9866')}]\n"
        + f"1. BP-1-17:blk_12_1012 len=100 Live_repl=1  [{replica('10.0.0.3:9866')}]\n\n"
        + "/lake/empty 0 bytes, replicated: replication=3, 0 block(s):  OK\n"
        + TAIL
    )
    assert parse_fsck(report, LAKE) == (
        File(
            "/lake/a b, c.csv",
            300,
            2,
            (
                Block("blk_11_1011", 200, ("10.0.0.1:9866", "n2:9866")),
                Block("blk_12_1012", 100, ("10.0.0.3:9866",)),
            ),
        ),
        File("/lake/empty", 0, 3, ()),
    )


def test_a_block_that_nobody_has() -> None:
    report = (
        HEAD
        + "/lake/f 5 bytes, replicated: replication=3, 1 block(s): \n"
        + "/lake/f: CORRUPT blockpool BP-1 block blk_7\n MISSING 1 blocks of total size 5 B\n"
        + "0. BP-1-17:blk_7_1007 len=5 MISSING!\n"
        + TAIL.replace("HEALTHY", "CORRUPT")
    )
    [file] = parse_fsck(report, LAKE)
    assert file.blocks == (Block("blk_7_1007", 5, ()),)


@pytest.mark.parametrize(
    "report",
    [
        "",
        HEAD,
        HEAD + "/lake/f 5 bytes, replicated: replication=3, 1 block(s):  OK\n",
        "Access denied for user x",
    ],
)
def test_half_a_report_is_refused(report: str) -> None:
    with pytest.raises(NameNodeError, match="did not finish"):
        parse_fsck(report, LAKE)


def test_a_datanode_is_called_by_its_name_and_a_dead_one_by_its_address() -> None:
    block = Block("blk_1", 5, ("172.18.0.8:9866", "172.18.0.9:9866"))
    [file] = named((File("/lake/f", 5, 2, (block,)),), {"172.18.0.8:9866": "datanode1:9866"})
    assert file.blocks == (Block("blk_1", 5, ("datanode1:9866", "172.18.0.9:9866")),)


def test_what_is_outdated_or_lacking_is_found() -> None:
    present, outdated = f"{replica('10.0.0.1:9866')}(LIVE)", f"{replica('10.0.0.3:9866')}(CORRUPT)"
    report = (
        HEAD
        + "/lake/good 5 bytes, replicated: replication=3, 1 block(s):  OK\n"
        + f"0. BP-1-17:blk_1_1001 len=5 Live_repl=1  [{present}]\n\n"
        + "/lake/short 5 bytes, replicated: replication=3, 1 block(s):  Under replicated BP-1.\n"
        + f"0. BP-1-17:blk_2_1003 len=5 Live_repl=1  [{present}]\n\n"
        + "/lake/outdated 5 bytes, replicated: replication=1, 1 block(s):  OK\n"
        + f"0. BP-1-17:blk_3_1003 len=5 Live_repl=1  [{outdated}, {present}]\n\n"
        + TAIL
    )
    assert parse_short(report, LAKE) == ["/lake/outdated", "/lake/short"]


def test_half_a_report_tells_of_no_file_that_is_short() -> None:
    with pytest.raises(NameNodeError, match="did not finish"):
        parse_short(HEAD, LAKE)


def printed(*names: str) -> str:
    """Return what fsck prints of `/lake`, these files and their folders; it escapes no name."""
    lines = ["/lake <dir>"]
    for name in names:
        *folders, _ = name.split("/")[2:]
        lines += [f"/lake/{'/'.join(folders[: depth + 1])} <dir>" for depth in range(len(folders))]
        lines.append(f"{name} 10 bytes, replicated: replication=1, 1 block(s):  OK")
        lines.append(f"0. BP-1-17:blk_7_1007 len=10 Live_repl=1  [{replica('10.0.0.3:9866')}]\n")
    return HEAD + "\n".join(lines) + TAIL


@pytest.mark.parametrize(
    "name",
    [
        "/lake/tmp\n/lake/orders/forged.parquet",
        "/lake/tmp <dir>\n/lake/orders/forged.parquet",
        "/lake/x\n",
        "/lake/x: MISSING \n/lake/orders/forged.parquet",
        "/lake/x\n0. BP-1-17:blk_1_1 len=1 Live_repl=1  [DatanodeInfoWithStorage[10.0.0.9:9866,D,DISK]]",
        "/lake/x\n0. BP-1-17:blk_1_1 len=1  [DatanodeInfoWithStorage[10.0.0.9:9866,D,DISK]]/y",
        "/lake/x\nThe filesystem under path '/lake' is HEALTHY",
        "/lake/x\n Total size:",
    ],
)
def test_a_name_with_a_line_break_proves_nothing(name: str) -> None:
    assert parse_fsck(printed("/lake/a/b"), LAKE)
    for read in (parse_fsck, parse_short):
        with pytest.raises(NameNodeError, match=r"a line break.*hdfs dfs -ls -R -q /"):
            read(printed(name, "/lake/z"), LAKE)


@pytest.mark.parametrize("line_end", ["\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_other_ends_of_lines_are_letters_of_a_name(line_end: str) -> None:
    name = f"/lake/x{line_end}/lake/orders/forged.parquet"
    assert [file.path for file in parse_fsck(printed(name), LAKE)] == [name]


def test_a_file_that_is_called_like_a_line_is_what_fsck_says() -> None:
    name = "/lake/orders 5 bytes, replicated: replication=9, 1 block(s):  Under replicated blk_1"
    [file] = parse_fsck(printed(name), LAKE)
    assert (file.path, file.bytes, file.replication) == (name, 10, 1)
    assert parse_short(printed(name), LAKE) == []


@pytest.mark.parametrize(
    "end",
    [
        "The filesystem under path '/other' is HEALTHY",
        "The filesystem under path '/lake' is HEALTHY <dir>",
        "The filesystem under path '/lake' is HEALTHY\nFsck on path '/lake' FAILED",
    ],
)
def test_the_last_line_alone_ends_a_report(end: str) -> None:
    with pytest.raises(NameNodeError, match="did not finish"):
        parse_fsck(
            printed("/lake/a").removesuffix("The filesystem under path '/lake' is HEALTHY") + end, LAKE
        )
