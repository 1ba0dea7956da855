"""Who works all the time: an application of Spark that commits row after row, and queries of Trino."""

from __future__ import annotations

import json
import secrets
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from threading import Event, Thread

from suites.testbed.engines import EngineError
from suites.testbed.engines.trino import Trino
from suites.testbed.namenode import NameNode
from suites.testbed.waiting import wait_for
from tests.cluster.machines import Machine

START_SECONDS = 120
# Of a file that stays open, in bytes: some packets of HDFS.
_HALF = 300_000
# What Spark's script prints is one line per row: its number, the fault if it failed, and from when to when.
_SCRIPT = textwrap.dedent("""
    import json, os, sys, time
    from pyspark.sql import SparkSession

    table, end = sys.argv[1:]
    spark = SparkSession.builder.getOrCreate()
    number = 0
    while not os.path.exists(end):
        number, since = number + 1, time.time()
        try:
            spark.sql(f"insert into {table} values ({number})")
            fault = ""
        except Exception as error:
            said = (str(error).strip() or type(error).__name__).splitlines()
            causes = [line for line in said[2:] if line.startswith("Caused by: ")]
            fault = " ".join([*said[:2], *causes[-1:]])
        print(json.dumps({"row": number, "fault": fault, "since": since, "at": time.time()}), flush=True)
    spark.stop()
""")


@dataclass
class Stream:
    """What became of each attempt: when it was answered, or its fault and from when to when it `failed`."""

    answered: list[float] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    failed: list[tuple[float, float]] = field(default_factory=list)

    @property
    def longest(self) -> float:
        """The longest time without an answer, in seconds."""
        return max((later - earlier for earlier, later in pairwise(self.answered)), default=0.0)

    @property
    def counted(self) -> str:
        """How many attempts had which end, in a line."""
        ends = f"{len(self.answered)} answered, {len(self.faults)} failed"
        return f"{ends}, longest gap {self.longest:.1f} s"

    def __str__(self) -> str:
        return self.counted + "".join(f"\n  {fault[:500]}" for fault in self.faults)

    def assert_whole(self, found: Sequence[int]) -> None:
        """Of what a table has now: every row whose commit was answered is there, once."""
        assert self.rows, self
        assert set(self.rows) <= set(found), self
        assert len(found) == len(set(found)), self


@contextmanager
def commits(client: Machine, table: str) -> Iterator[Stream]:
    """Commit rows from a driver on a machine while the block runs; the stream is filled at its end."""
    name, stream = f"kit-stream-{secrets.token_hex(3)}", Stream()
    user = client.variable("lakehouse_users")["spark"]
    with client.scratch(name) as folder, client.transient(name):
        client.run(f"cat > %s/stream.py <<'SCRIPT'\n{_SCRIPT}\nSCRIPT", folder)
        client.run("touch %s/rows && chmod -R a+rX %s", folder, folder)
        client.run(
            "systemd-run --quiet --unit=%s --uid=%s --property=StandardOutput=file:%s/rows"
            # What Spark logs would stand in the midst of a row.
            " --property=StandardError=journal spark-submit"
            " --conf spark.cores.max=2 --conf spark.task.maxFailures=20 %s/stream.py %s %s/end",
            name, user, folder, folder, table, folder,
        )  # fmt: skip

        def said() -> list[dict[str, object]]:
            text = client.run("cat %s/rows", folder)
            return [json.loads(line) for line in text.splitlines() if line.startswith("{")]

        wait_for("a first commit", lambda: any(not row["fault"] for row in said()), seconds=START_SECONDS)
        yield stream
        client.run("touch %s/end", folder)
        wait_for("its end", lambda: _ended(client, name), seconds=START_SECONDS)
        for row in said():
            if row["fault"]:
                stream.faults.append(str(row["fault"]))
                stream.failed.append((float(str(row["since"])), float(str(row["at"]))))
            else:
                stream.rows.append(int(str(row["row"])))
                stream.answered.append(float(str(row["at"])))


@contextmanager
def open_file(writer: Machine, namenode: NameNode) -> Iterator[None]:
    """Hold one file of HDFS open from a machine while the block runs; every byte is in it at its end.

    Its client is a program of its own: that of `suites.testbed.open_files` is a DataNode, which restarts.
    """
    name = f"kit-open-{secrets.token_hex(3)}"
    path, user = f"/tmp/{name}", writer.variable("lakehouse_users")["hdfs"]  # noqa: S108 -- of HDFS
    # Its name until it is closed.
    unfinished = f"{name}._COPYING_"
    try:
        with writer.scratch(name) as folder, writer.transient(name):
            writer.run("chmod a+rx %s", folder)
            half = f"head -c {_HALF} /dev/zero"
            source = f"({half}; until [ -e {folder}/end ]; do sleep 0.2; done; {half})"
            script = f"{source} | hdfs dfs -put - {path}"
            writer.run("systemd-run --quiet --unit=%s --uid=%s sh -c %s", name, user, script)
            wait_for("an open file", lambda: namenode.names("/tmp").count(unfinished), seconds=60)  # noqa: S108
            yield
            writer.run("touch %s/end", folder)
            wait_for("its end", lambda: _ended(writer, name), seconds=START_SECONDS)
            said = writer.run("journalctl --quiet --output=cat --unit %s", name)
            assert namenode.names("/tmp").count(name), said  # noqa: S108
            assert namenode.status(path)["length"] == 2 * _HALF, said
    finally:
        for left in (name, unfinished):
            namenode.remove(f"/tmp/{left}")  # noqa: S108


def _ended(client: Machine, name: str) -> bool:
    return str(client.shell.run("systemctl is-active %s", name).stdout).strip() in {"inactive", "failed"}


@contextmanager
def queries(trino: Trino, statement: str) -> Iterator[Stream]:
    """Ask Trino again and again while the block runs."""
    stream, over = Stream(), Event()

    def ask() -> None:
        while not over.is_set():
            since = time.time()
            try:
                trino.sql(statement)
                stream.answered.append(time.time())
            except EngineError as error:
                stream.faults.append(str(error).splitlines()[0])
                stream.failed.append((since, time.time()))
                over.wait(0.2)

    thread = Thread(target=ask)
    thread.start()
    try:
        yield stream
    finally:
        over.set()
        thread.join()
