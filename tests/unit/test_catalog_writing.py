"""What a restore asks and writes, and how often: partitions go in chunks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hive_metastore.ttypes import NoSuchObjectException, Partition

from lakehouse.catalog.names import Name
from lakehouse.catalog.restoring import Operation, Step
from lakehouse.cluster_catalog.writing import ChangedError, Metadata, in_one_line

COUNT, CHUNK = 1_200, 500


class Server:
    """A metastore with a table and its partitions, which counts its calls."""

    def __init__(self) -> None:
        self.partitions: dict[str, Partition] = {}
        self.calls: Counter[str] = Counter()
        self.has_table = True

    def call(self, method: str, *arguments: Any) -> Any:
        self.calls[method] += 1
        return getattr(self, method)(*arguments)

    def known_partitions(self, _: str, table: str, names: Sequence[str]) -> dict[str, Partition]:
        assert len(names) <= CHUNK
        self.calls["known_partitions"] += 1
        if not self.has_table:
            raise NoSuchObjectException(f"{table} table not found")
        return {name: self.partitions[name] for name in names if name in self.partitions}

    def get_table(self, _: str, table: str) -> Any:
        raise NoSuchObjectException(f"{table} table not found")

    def add_partitions(self, found: Sequence[Partition]) -> int:
        self.partitions |= {f"ds={one.values[0]}": one for one in found}
        return len(found)

    def alter_partitions(self, _: str, __: str, found: Sequence[Partition]) -> None:
        self.add_partitions(found)


def steps(deed: Operation, count: int = COUNT) -> list[Step]:
    found = []
    for number in range(count):
        name = Name("hive", "d", "days", f"ds={number:05}")
        then = {"name": name.partition, "values": [f"{number:05}"], "location": f"hdfs://lake/{number}"}
        now = None if deed is Operation.MAKE else then | {"location": "hdfs://lake/elsewhere"}
        found.append(Step(deed, "partition", name, now, then))
    return found


def restored(server: Server, wanted: Sequence[Step]) -> tuple[list[str], list[str]]:
    """Write steps; return the lines of what began and of what was done."""
    lines: tuple[list[str], list[str]] = ([], [])
    metadata = Metadata(server, lambda *_: None)  # type: ignore[arg-type]
    seen = metadata.all(wanted)
    metadata.write(
        seen, lambda some: lines[0].append(in_one_line(some)), lambda some: lines[1].append(in_one_line(some))
    )
    return lines


@pytest.mark.parametrize(
    ("deed", "writes"), [(Operation.MAKE, "add_partitions"), (Operation.ALTER, "alter_partitions")]
)
def test_partitions_are_read_and_written_in_chunks_with_a_line_for_each(deed: Operation, writes: str) -> None:
    server = Server()
    if deed is Operation.ALTER:
        restored(server, steps(Operation.MAKE))
        server.calls.clear()
    begun, done = restored(server, steps(deed))
    # When the plan is made, and right before it is written.
    assert server.calls == {"known_partitions": 6, writes: 3}
    assert begun == done
    assert begun == [
        f"{deed} 500 partitions of hive.d.days: ds=00000 to ds=00499",
        f"{deed} 500 partitions of hive.d.days: ds=00500 to ds=00999",
        f"{deed} 200 partitions of hive.d.days: ds=01000 to ds=01199",
    ]
    assert len(server.partitions) == COUNT


def test_one_partition_is_its_own_line() -> None:
    assert restored(Server(), steps(Operation.MAKE, 1))[1] == ["+ partition hive.d.days/ds=00000"]


def test_a_partition_that_somebody_made_meanwhile_ends_the_restore_before_its_chunk() -> None:
    server, wanted = Server(), steps(Operation.MAKE)
    metadata = Metadata(server, lambda *_: None)  # type: ignore[arg-type]
    seen = metadata.all(wanted)
    server.partitions["ds=00700"] = Partition(values=["00700"])
    with pytest.raises(ChangedError, match=r"hive\.d\.days/ds=00700 has changed"):
        metadata.write(seen, lambda _: None, lambda _: None)
    assert len(server.partitions) == CHUNK + 1


def test_partitions_of_a_table_that_is_not_there_are_not_there() -> None:
    server = Server()
    server.has_table = False
    metadata = Metadata(server, lambda *_: None)  # type: ignore[arg-type]
    assert [one.object for one in metadata.all(steps(Operation.MAKE, 2))] == [None, None]
