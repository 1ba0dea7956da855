"""What fsck of the NameNode prints: files, blocks and where their replicas are. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

# The name of a file may hold a newline: what of it is before that is on a line of its own.
_FILE = re.compile(r"^(?P<path>.*?) (?P<bytes>\d+) bytes, replicated: replication=(?P<replication>\d+),")
_BLOCK = re.compile(r"^\d+\. \S+:(?P<id>blk_\S+) len=(?P<length>\d+)")
_REPLICA = re.compile(r"DatanodeInfoWithStorage\[(?P<address>[^,\]]+),")
_OUTDATED = re.compile(r"DatanodeInfoWithStorage\[[^\]]+\]\(CORRUPT\)")
# Of a report of all files, with their blocks.
MOST_BYTES = 512 << 20
# The last line; a file may be called so.
END = re.compile(r"^The filesystem under path '.*' is \w+\s*\Z", re.MULTILINE)


class NameNodeError(ValueError):
    """The NameNode refused a question, or did not answer it: the question and its words."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block: its id, its length in bytes and the `name:port` of each DataNode that has a replica."""

    id: str
    length: int
    datanodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class File:
    """A file in HDFS: its length in bytes, the number of replicas it wants, and its blocks."""

    path: str
    bytes: int
    replication: int
    blocks: tuple[Block, ...]


def parse_fsck(report: str) -> tuple[File, ...]:
    """Read what fsck prints with `files`, `blocks` and `locations`.

    Raises NameNodeError when the report did not come to its end: half of it would hide a block.
    """
    if not END.search(report):
        raise NameNodeError(f"fsck did not finish: {report.strip()[-300:]!r}")
    files: list[tuple[re.Match[str], list[Block]]] = []
    for line in report.split("\n"):
        if file := _FILE.match(line):
            files.append((file, []))
        elif (block := _BLOCK.match(line)) and files:
            replicas = tuple(replica["address"] for replica in _REPLICA.finditer(line))
            files[-1][1].append(Block(block["id"], int(block["length"]), replicas))
    return tuple(
        File(_path(file), int(file["bytes"]), int(file["replication"]), tuple(blocks))
        for file, blocks in files
    )


def parse_short(report: str) -> list[str]:
    """Read which files lack a replica or have an outdated one, of what fsck prints with `replicadetails`.

    Raises NameNodeError when the report did not come to its end.
    """
    if not END.search(report):
        raise NameNodeError(f"fsck did not finish: {report.strip()[-300:]!r}")
    path, short = "", set()
    for line in report.split("\n"):
        if file := _FILE.match(line):
            path = _path(file)
            if " Under replicated " in line[file.end() :]:
                short.add(path)
        elif _BLOCK.match(line) and _OUTDATED.search(line):
            short.add(path)
    return sorted(short)


def _path(file: re.Match[str]) -> str:
    path = file["path"]
    return path if path.startswith("/") else f"/{path}"


def named(files: tuple[File, ...], names: Mapping[str, str]) -> tuple[File, ...]:
    """Return the files with a name in place of each DataNode's address that has one."""

    def one(block: Block) -> Block:
        return replace(block, datanodes=tuple(names.get(address, address) for address in block.datanodes))

    return tuple(replace(file, blocks=tuple(map(one, file.blocks))) for file in files)
