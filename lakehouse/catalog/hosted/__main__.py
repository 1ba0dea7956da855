"""The programs of the cluster's history: `clock` is the timer's, `commit`, `give` and `take` are for copies.

These three read a request as a line of JSON, and answer with one; `give` appends a pack. So do `lack` and
`bring`: they report which files tables lack of a snapshot of HDFS, and copy these from the snapshot.
`serve` runs a read-only metastore of a commit; `waits` is whether it waits for that commit.
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
from lakehouse.catalog.hosted import local, pinning
from lakehouse.catalog.hosted.layout import Settings, load
from lakehouse.catalog.hosted.warehouse import Warehouse
from lakehouse.catalog.store import Entry, Store
from lakehouse.errors import LakehouseError, UsageError
from plugins.module_utils.lakehouse import exported_metrics
from plugins.module_utils.lakehouse.webhdfs import WebHdfs

# The result of the last commit by the timer, or of a successful one by a user; status and doctor read it.
_LAST, _BY_THE_CLOCK = "last.json", "clock"
# The timeout for a copy that is still running after its command was killed.
_COPY_SECONDS = 60.0


def _commit(settings: Settings, store: Store, request: Mapping[str, Any]) -> dict[str, Any]:
    """Commit the catalog, and create a snapshot of HDFS for the commit."""
    author = str(request.get("author") or commits.author())
    with store.locked():
        result = commits.keep(
            local.source(settings), store,
            author=author, message=request.get("message"), full=bool(request.get("full")),
        ).json()  # fmt: skip
    if settings.has_snapshots:
        # After the commit, so that the snapshot has its files, also for an unchanged catalog with new rows.
        try:
            result["snapshot"] = _snapshots(settings, store, result["commit"])
        except LakehouseError as error:
            fact = f"the catalog is kept in commit {result['commit'][:12]}, without a snapshot of its files"
            raise LakehouseError(f"{fact}: {error.message}", error.next_command) from error
    return result


def _snapshots(settings: Settings, store: Store, commit: str) -> str:
    """Create a snapshot for a commit, if they are enabled, and remove expired ones; return its name."""
    warehouse = _warehouse(settings, settings.owner)
    name = str(warehouse.make(commit)) if settings.has_snapshots else ""
    with _copying(settings).open("w") as file:
        # While files are copied from a snapshot, none is removed; the next commit does that.
        if locks.hold(file, 0):
            warehouse.forget(
                hours=settings.snapshot_hours, days=settings.snapshot_days, served=_served(settings, store)
            )
    return name


def _served(settings: Settings, store: Store) -> Entry | None:
    """Return the commit that the cluster's service serves; None if there is no such commit yet."""
    try:
        return store.resolve(settings.past_commit)
    except LakehouseError:
        return None


def _copying(settings: Settings) -> Path:
    """Return the lock file of copies from a snapshot."""
    return Path(settings.folder) / "copying.lock"


def _warehouse(settings: Settings, user: str) -> Warehouse:
    return Warehouse(WebHdfs(settings.namenode, user), settings.root)


def _lack(settings: Settings, _: Store, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what each table lacks of a snapshot, and the free space of HDFS."""
    warehouse = _warehouse(settings, settings.superuser)
    return {
        "room": warehouse.room(),
        "lacks": [warehouse.lack(**table).json() for table in request["tables"]],
    }


def _bring(settings: Settings, _: Store, request: Mapping[str, Any]) -> dict[str, Any]:
    """Copy what each table lacks from a snapshot; meanwhile no snapshot is removed."""
    warehouse, file_count = _warehouse(settings, settings.superuser), 0
    with _copying(settings).open("w") as file:
        if not locks.hold(file, _COPY_SECONDS):
            raise LakehouseError("another copy out of a snapshot is at work", "the same command")
        for table in request["tables"]:
            lack = warehouse.lack(**table)
            if lack.stranger:
                raise LakehouseError(f"{lack.stranger} is not in {table['snapshot']}", "the same command")
            warehouse.bring(table["snapshot"], lack)
            file_count += len(lack.files)
    return {"files": file_count}


def _give(_: Settings, store: Store, request: Mapping[str, Any]) -> None:
    with store.locked():
        exchange.give(store, request, sys.stdout.buffer)


def _take(settings: Settings, store: Store, request: Mapping[str, Any]) -> dict[str, Any]:
    with store.locked():
        refused = exchange.take(store, request, io.BytesIO(base64.b64decode(request["pack"])))
    _pin(settings, store)
    return {"refused": refused}


def _clock(settings: Settings, store: Store, _: Mapping[str, Any]) -> dict[str, Any]:
    """Commit the catalog, and remove commits older than the retention."""
    result = _commit(settings, store, {})
    with store.locked():
        result["forgotten"] = forgetting.forget(store, settings.keep_days, time.time())
    if not settings.has_snapshots:
        # Remove earlier snapshots; if HDFS does not answer, the next run does it.
        with suppress(LakehouseError):
            _snapshots(settings, store, result["commit"])
    _pin(settings, store)
    return result


def _pin(settings: Settings, store: Store) -> None:
    pinning.publish(settings, store, WebHdfs(settings.namenode, settings.superuser))


@contextmanager
def _recorded(path: Path, settings: Settings, *, failures: bool) -> Iterator[None]:
    """Write the time of the last success of a block to two files and, with `failures`, the error."""
    try:
        last_success = json.loads(path.read_bytes())["good"]
    except (OSError, ValueError, KeyError):
        last_success = None
    try:
        yield
    except Exception as error:
        # Unexpected errors too: otherwise the last run would seem to have succeeded.
        if failures:
            why = " ".join(str(error).split()) or type(error).__name__
            files.write(path, json.dumps({"good": last_success, "why": why}))
            _export(settings, last_success, failed=True)
        raise
    last_success = time.time()
    files.write(path, json.dumps({"good": last_success, "why": ""}))
    _export(settings, last_success, failed=False)


def _export(settings: Settings, last_success: float | None, *, failed: bool) -> None:
    exported_metrics.export(
        settings.metrics,
        {
            "lakehouse_catalog_good_timestamp_seconds": (
                "When the catalog was committed last, 0 for never.",
                last_success or 0,
            ),
            "lakehouse_catalog_limit_seconds": (
                "The age from which the last commit is old.",
                settings.alert_hours * 3600,
            ),
            "lakehouse_catalog_failed": ("Whether the last commit of the timer has failed.", float(failed)),
        },
    )


def _serve(settings: Settings, _: Store, __: Mapping[str, Any]) -> None:
    # Thrift's bindings take longer to load than a commit takes.
    from lakehouse.catalog.hosted import serving  # noqa: PLC0415

    serving.serve(settings)


def _waits(settings: Settings, store: Store, _: Mapping[str, Any]) -> dict[str, Any]:
    """Return why no commit is served yet; LakehouseError if there is one to serve."""
    try:
        entry = store.resolve(settings.past_commit)
    except LakehouseError as error:
        return {"waits": str(error)}
    raise LakehouseError(f"{settings.past_commit} is commit {entry.short}, and it is not served")


# The programs that read a request.
_WITH_REQUEST = {"commit", "give", "take", "lack", "bring"}
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
    """Run a program; return 0, or 1 after an error, which is printed as JSON."""
    parser = argparse.ArgumentParser(prog="lakehouse-catalog", description=__doc__)
    parser.add_argument("--settings", required=True)
    parser.add_argument("program", choices=_PROGRAMS)
    arguments = parser.parse_args()
    os.umask(0o077)
    try:
        settings = load(arguments.settings)
        request = json.loads(sys.stdin.readline()) if arguments.program in _WITH_REQUEST else {}
        # Successes of users and of the timer are recorded, and failures of the timer alone.
        last, by_clock = Path(settings.folder) / _LAST, arguments.program == _BY_THE_CLOCK
        record = (
            _recorded(last, settings, failures=by_clock)
            if by_clock or arguments.program == "commit"
            else nullcontext()
        )
        with record, closing(Store.made(settings.repository)) as store:
            response = _PROGRAMS[arguments.program](settings, store, request)
    except (LakehouseError, OSError) as error:
        message = error.message if isinstance(error, LakehouseError) else str(error)
        next_command = error.next_command if isinstance(error, LakehouseError) else None
        response = {
            "why": " ".join(message.split()), "next": next_command, "usage": isinstance(error, UsageError),
        }  # fmt: skip
    if response is not None:
        sys.stdout.write(f"{json.dumps(response)}\n")
    return int(response is not None and "why" in response)


if __name__ == "__main__":
    sys.exit(main())
