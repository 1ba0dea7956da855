"""What a commit names stays if it was pinned, and `check` says what is gone; hooks have a say in both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lakehouse.catalog import hooks
from lakehouse.clients import MetastoreSession
from lakehouse.model import placement
from lakehouse.model.inventory import Inventory
from suites.testbed.engines.trino import Trino
from tests.cluster.changing import Verb

pytestmark = [pytest.mark.cluster, pytest.mark.longdrill]


@pytest.fixture
def tables(trino: Trino, schema: str) -> str:
    """Two Iceberg tables with a row each."""
    for table in ("kept", "late"):
        trino.sql(f"create table iceberg.{schema}.{table} as select 1 a")
    return schema


def test_a_pinned_snapshot_outlives_an_expiry_and_another_is_said_to_be_gone(
    verb: Verb, store: tuple[str, str], trino: Trino, tables: str
) -> None:
    pinned = verb.committed("--pin", *store)
    again = verb.run("catalog", "commit", "--pin", *store)
    assert "unchanged since" in again.stderr, again
    trino.sql(f"insert into iceberg.{tables}.late values 2")
    bare = verb.committed(*store)
    # Trino keeps a week unless told otherwise.
    trino.sql("set session iceberg.expire_snapshots_min_retention = '0s'")
    for table in ("kept", "late"):
        for number in (3, 4, 5):
            trino.sql(f"insert into iceberg.{tables}.{table} values {number}")
        trino.sql(
            f"alter table iceberg.{tables}.{table} execute expire_snapshots(retention_threshold => '0s')"
        )
    whole = verb.run("catalog", "check", pinned, tables, *store)
    assert whole.returncode == 0, whole.stdout + whole.stderr
    assert "2 tables, 0 lost" in whole.stderr
    half = verb.run("catalog", "check", bare, tables, *store)
    assert half.returncode == 1, half.stdout
    assert f"DEGRADED catalog.lost hive.{tables}.late: snapshot " in half.stdout
    assert "1 lost" in half.stderr


def test_a_hook_refuses_a_commit_and_a_restore(
    verb: Verb, store: tuple[str, str], cluster: Inventory, tables: str
) -> None:
    first = verb.committed(*store)
    folder = Path(store[1]) / "hooks"
    refuses = (
        "#!/usr/bin/env python3\n"
        "import json, sys\n"
        "found = json.load(sys.stdin)['changes']\n"
        f"own = [one for one in found if one.get('database') == '{tables}']\n"
        "gone = [one['table'] for one in own if one['action'] == 'removed']\n"
        "sys.exit(f'nobody drops {gone[0]}' if gone else 0)\n"
    )
    hook(folder / hooks.PRE_COMMIT, refuses)
    with MetastoreSession(placement.read(cluster)) as metastore:
        metastore.call("drop_table", tables, "kept", False)
    refused = verb.run("catalog", "commit", *store)
    assert refused.returncode == 2, refused
    assert "the hook catalog-pre-commit refuses: nobody drops kept" in refused.stderr + refused.stdout
    listed = verb.json("catalog", "log", *store)["commits"]
    assert [one["id"] for one in listed] == [first]
    (folder / hooks.PRE_COMMIT).unlink()
    hook(folder / hooks.PRE_RESTORE, "#!/bin/sh\necho 'not on a Friday' >&2\nexit 1\n")
    refused = verb.run("catalog", "restore", first, tables, *store, "--yes")
    assert refused.returncode == 1, refused
    assert "the hook catalog-pre-restore refuses: not on a Friday" in refused.stdout
    (folder / hooks.PRE_RESTORE).unlink()
    told = folder.parent / "told.json"
    hook(folder / hooks.POST_RESTORE, f"#!/bin/sh\ncat > {told}\n")
    done = verb.run("catalog", "restore", first, tables, *store, "--yes")
    assert done.returncode == 0, done
    assert json.loads(told.read_text(encoding="utf-8"))["plan"] == [f"+ table hive.{tables}.kept"]


def hook(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o700)
