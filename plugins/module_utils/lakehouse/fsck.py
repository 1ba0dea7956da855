"""What fsck of the NameNode prints: files, blocks and where their replicas are. Pure.

The report escapes no name. A line break in one, which HDFS allows, could begin a line that reads like
another file, so a report that shows such a name is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

# Greedy: what stands last in the line is fsck's, whatever the name says.
_FILE = re.compile(
    r"(?P<path>/.*) (?P<bytes>\d+) bytes,"
    r" (?:replicated: replication=(?P<replication>\d+)|erasure-coded: \S+),"
)
_BLOCK = re.compile(r"\d+\. \S+:(?P<id>blk_\S+) len=(?P<length>\d+)")
_REPLICA = re.compile(r"DatanodeInfoWithStorage\[(?P<address>[^,\]]+),")
_OUTDATED = re.compile(r"DatanodeInfoWithStorage\[[^\]]+\]\(CORRUPT\)")
# Of lines that begin with a path.
_OTHERS = re.compile(r"/.* <(?:dir|symlink)>$|/.*: (?:CORRUPT|MISSING| Under replicated| Replica placement) ")
# The end of the first line, or of the last one, of a name with a line break: no other line has it.
_REST = re.compile(r" <(?:dir|symlink)>$| \d+ bytes, (?:replicated|erasure-coded): ")
# Of other blocks fsck counts live replicas.
_WRITTEN = " Expected_repl="
# Of a report of all files, with their blocks.
MOST_BYTES = 512 << 20


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


@dataclass(frozen=True, slots=True)
class _Listed:
    """A file as a line of the report, and its blocks, a line each."""

    header: re.Match[str]
    blocks: list[tuple[re.Match[str], str]]


def _listed(report: str, path: str) -> list[_Listed]:
    """Return the files of a report on `path`; NameNodeError where it is not whole, or a line is no fsck's."""
    # Not splitlines(): a name may hold what else that takes for the end of a line.
    lines = report.rstrip("\n").split("\n")
    ends = [f"The filesystem under path '{path}' is {word}" for word in ("HEALTHY", "CORRUPT")]
    if lines[-1] not in ends:
        raise NameNodeError(f"fsck did not finish: {report.strip()[-300:]!r}")
    files: list[_Listed] = []
    for line in lines[:-1]:
        if file := _FILE.match(line):
            files.append(_Listed(file, []))
        elif (block := _BLOCK.match(line)) and not _REST.search(line) and files:
            files[-1].blocks.append((block, line))
        elif (block or line.startswith("/") or _REST.search(line)) and not _OTHERS.match(line):
            raise NameNodeError(
                f"fsck lists a name with a line break, so that its lines prove nothing: {line[:200]!r};"
                " hdfs dfs -ls -R -q / shows a ? in that name; rename or remove it"
            )
    return files


def parse_fsck(report: str, path: str = "/") -> tuple[File, ...]:
    """Read what fsck of a path prints with `files`, `blocks` and `locations`.

    Files that are erasure-coded are left out. Raises NameNodeError when the report did not come to its end,
    or has a name with a line break: half of it would hide a block, and a part of a name would show a file
    that is not there.
    """
    return tuple(
        File(
            file.header["path"],
            int(file.header["bytes"]),
            int(file.header["replication"]),
            tuple(
                Block(block["id"], int(block["length"]), tuple(_REPLICA.findall(line)))
                for block, line in file.blocks
            ),
        )
        for file in _listed(report, path)
        if file.header["replication"]
    )


def parse_short(report: str, path: str = "/") -> list[str]:
    """Read which files lack a replica or have an outdated one, of what fsck prints with `replicadetails`.

    Raises NameNodeError as `parse_fsck` does.
    """
    return sorted(
        {
            file.header["path"]
            for file in _listed(report, path)
            if " Under replicated " in file.header.string[file.header.end() :]
            or any(_OUTDATED.search(line) for _, line in file.blocks)
        }
    )


def replicas(report: str, path: str = "/", *, written: bool = True) -> Iterator[tuple[str, frozenset[str]]]:
    """Give the file and the addresses, without ports, of each block that has replicas.

    `written` includes blocks that are being written. Raises NameNodeError as `parse_fsck` does.
    """
    for file in _listed(report, path):
        for _, line in file.blocks:
            addresses = frozenset(address.rpartition(":")[0] for address in _REPLICA.findall(line))
            if addresses and (written or _WRITTEN not in line):
                yield file.header["path"], addresses


def named(files: tuple[File, ...], names: Mapping[str, str]) -> tuple[File, ...]:
    """Return the files with names in place of the DataNodes' addresses that have one."""

    def with_names(block: Block) -> Block:
        return replace(block, datanodes=tuple(names.get(address, address) for address in block.datanodes))

    return tuple(replace(file, blocks=tuple(map(with_names, file.blocks))) for file in files)
