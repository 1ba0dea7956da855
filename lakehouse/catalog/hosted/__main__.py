"""The programs of the cluster's history: `clock` is the timer's, `commit`, `give` and `take` are for copies.

These three read what they are asked as a line of JSON, and answer with one; `give` has a pack behind it.
`lack` and `bring` do so, too: they say what tables lack of a snapshot of HDFS, and copy it out of that.
`serve` is a metastore as of a commit, until it is ended; `waits` is whether it waits for that commit.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from lakehouse import locks
from lakehouse.catalog import commits, exchange, files, forgetting
from lakehouse.catalog.hosted import local
from lakehouse.catalog.hosted.layout import Settings, load
from lakehouse.catalog.hosted.warehouse import Warehouse
from lakehouse.catalog.store import Entry, Store
from lakehouse.errors import LakehouseError, UsageError
from plugins.module_utils.lakehouse.webhdfs import WebHdfs

# Of the last commit by the clock, and of a good one by a person; status and doctor read it.
_LAST, _BY_THE_CLOCK = "last.json", "clock"
# A command that was killed may have left a copy at work.
_COPY_SECONDS = 60.0


def _commit(settings: Settings, store: Store, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the catalog."""
    author = str(asked.get("author") or commits.author())
    with store.locked():
        kept = commits.keep(
            local.source(settings), store,
            author=author, message=asked.get("message"), full=bool(asked.get("full")),
        ).json()  # fmt: skip
    if settings.has_snapshots:
        # After the commit: what it names is in the snapshot then. An unchanged catalog may have other rows.
        try:
            kept["snapshot"] = _snapshots(settings, store, kept["commit"])
        except LakehouseError as error:
            made = f"the catalog is kept in commit {kept['commit'][:12]}, without a snapshot of its files"
            raise LakehouseError(f"{made}: {error.message}", error.next_command) from error
    return kept


def _snapshots(settings: Settings, store: Store, commit: str) -> str:
    """Make a snapshot for a commit, where one is wanted, and remove those that need not be kept."""
    warehouse = _warehouse(settings, settings.owner)
    made = str(warehouse.make(commit)) if settings.has_snapshots else ""
    with _copying(settings).open("w") as file:
        # One that files are copied out of is needed until they are there; the next commit removes it.
        if locks.hold(file, 0):
            warehouse.forget(
                hours=settings.snapshot_hours, days=settings.snapshot_days, served=_served(settings, store)
            )
    return made


def _served(settings: Settings, store: Store) -> Entry | None:
    """Return the commit that the cluster's service serves; None where there is no such commit yet."""
    try:
        return store.resolve(settings.past_commit)
    except LakehouseError:
        return None


def _copying(settings: Settings) -> Path:
    """Return the file that is locked while files are copied out of a snapshot."""
    return Path(settings.folder) / "copying.lock"


def _warehouse(settings: Settings, user: str) -> Warehouse:
    return Warehouse(WebHdfs(settings.namenode, user), settings.root)


def _lack(settings: Settings, _: Store, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Say what tables lack, each of a snapshot, and what HDFS has left."""
    warehouse = _warehouse(settings, settings.superuser)
    return {
        "room": warehouse.room(),
        "lacks": [warehouse.lack(**one).json() for one in asked["tables"]],
    }


def _bring(settings: Settings, _: Store, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Copy what tables lack, each of a snapshot; no snapshot goes before all of them are there."""
    warehouse, files = _warehouse(settings, settings.superuser), 0
    with _copying(settings).open("w") as file:
        if not locks.hold(file, _COPY_SECONDS):
            raise LakehouseError("another copy out of a snapshot is at work", "the same command")
        for one in asked["tables"]:
            lack = warehouse.lack(**one)
            if lack.stranger:
                raise LakehouseError(f"{lack.stranger} is not in {one['snapshot']}", "the same command")
            warehouse.bring(one["snapshot"], lack)
            files += len(lack.files)
    return {"files": files}


def _give(_: Settings, store: Store, asked: Mapping[str, Any]) -> None:
    with store.locked():
        exchange.give(store, asked, sys.stdout.buffer)


def _take(_: Settings, store: Store, asked: Mapping[str, Any]) -> dict[str, Any]:
    with store.locked():
        return {"refused": exchange.take(store, asked, io.BytesIO(base64.b64decode(asked["pack"])))}


def _clock(settings: Settings, store: Store, _: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the catalog, and forget what is too old."""
    kept = _commit(settings, store, {})
    with store.locked():
        kept["forgotten"] = forgetting.forget(store, settings.keep_days, time.time())
    if not settings.has_snapshots:
        # Those of before: the next time does it where HDFS does not answer now.
        with suppress(LakehouseError):
            _snapshots(settings, store, kept["commit"])
    return kept


@contextmanager
def _noted(path: Path, *, failures: bool) -> Iterator[None]:
    """Keep when a block was good last for those who look and, with `failures`, why it has failed."""
    try:
        good = json.loads(path.read_bytes())["good"]
    except (OSError, ValueError, KeyError):
        good = None
    try:
        yield
    except Exception as error:
        # Also what was not foreseen: without it the last one would seem to be good.
        if failures:
            why = " ".join(str(error).split()) or type(error).__name__
            files.write(path, json.dumps({"good": good, "why": why}))
        raise
    files.write(path, json.dumps({"good": time.time(), "why": ""}))


def _serve(settings: Settings, _: Store, __: Mapping[str, Any]) -> None:
    # Thrift's bindings take longer to load than a commit takes.
    from lakehouse.catalog.hosted import serving  # noqa: PLC0415

    serving.serve(settings)


def _waits(settings: Settings, store: Store, _: Mapping[str, Any]) -> dict[str, Any]:
    """Say why nothing is served yet; LakehouseError where something should be."""
    try:
        entry = store.resolve(settings.past_commit)
    except LakehouseError as error:
        return {"waits": str(error)}
    raise LakehouseError(f"{settings.past_commit} is commit {entry.short}, and it is not served")


_ASKED = {"commit", "give", "take", "lack", "bring"}
_PROGRAMS = {
    "lack": _lack,
    "bring": _bring,
    "commit": _commit,
    _BY_THE_CLOCK: _clock,
    "give": _give,
    "take": _take,
    "serve": _serve,
    "waits": _waits,
}


def main() -> int:
    """Run one of them; 0, or 1 where it has failed, with a document that says why."""
    parser = argparse.ArgumentParser(prog="lakehouse-catalog", description=__doc__)
    parser.add_argument("--settings", required=True)
    parser.add_argument("program", choices=_PROGRAMS)
    arguments = parser.parse_args()
    os.umask(0o077)
    try:
        settings = load(arguments.settings)
        asked = json.loads(sys.stdin.readline()) if arguments.program in _ASKED else {}
        # A good commit of a person makes up for a bad one by the clock; a bad one is the person's alone.
        last, by_clock = Path(settings.folder) / _LAST, arguments.program == _BY_THE_CLOCK
        noted = (
            _noted(last, failures=by_clock) if by_clock or arguments.program == "commit" else nullcontext()
        )
        with noted, closing(Store.made(settings.repository)) as store:
            answer = _PROGRAMS[arguments.program](settings, store, asked)
    except (LakehouseError, OSError) as error:
        said = error.message if isinstance(error, LakehouseError) else str(error)
        after = error.next_command if isinstance(error, LakehouseError) else None
        answer = {"why": " ".join(said.split()), "next": after, "usage": isinstance(error, UsageError)}
    if answer is not None:
        sys.stdout.write(f"{json.dumps(answer)}\n")
    return int(answer is not None and "why" in answer)


if __name__ == "__main__":
    sys.exit(main())
