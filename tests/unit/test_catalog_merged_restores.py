"""A merge without a conflict is a catalog that a metastore takes, whatever each side has done."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import pytest
from thrift.Thrift import TException

from lakehouse.catalog import documents, restoring
from lakehouse.catalog.merging.sides import Choice, Side, Three
from lakehouse.catalog.merging.trees import merge
from lakehouse.catalog.names import Name
from lakehouse.catalog.overlay import Overlay
from lakehouse.catalog.restoring import Operation, RestoreTarget
from lakehouse.catalog.shared_files import TablePlaces, is_plain_external
from lakehouse.catalog.snapshot_reader import SnapshotReader
from lakehouse.cluster_catalog.writing import Metadata
from tests.unit.catalog_files import Complete
from tests.unit.catalog_states import LAKE, Table, day, tree
from tests.unit.strict_metastore import StrictMetastore

State = dict[str, dict[str, Any]]
NAMES, COLUMNS, CONSTRAINTS = "pqrst", "abcdef", ("one", "two", "three")
SCHEMA = "spark.sql.sources.schema"


def columns_of(said: Mapping[str, Any]) -> list[dict[str, Any]]:
    return list(said["storage"]["columns"])


def new_table(dice: random.Random, name: str) -> dict[str, Any]:
    kind = dice.choice(["managed", "external", "iceberg", "spark"])
    said: dict[str, Any] = {
        "type": "EXTERNAL_TABLE" if kind == "external" else "MANAGED_TABLE",
        "storage": {
            "columns": [{"name": one, "type": "int"} for one in dice.sample(COLUMNS, 3)],
            "location": f"{LAKE}/{name}{dice.randrange(9)}",
        },
        "parameters": {"k": "1"},
        "constraints": [],
        "privileges": [],
        "partition_keys": [],
        "partitions": {},
    }
    if kind == "iceberg":
        pointer = f"{said['storage']['location']}/metadata/{dice.randrange(9)}.json"
        said["parameters"] |= {"table_type": "ICEBERG", "metadata_location": pointer}
    elif kind == "spark":
        said["parameters"][SCHEMA] = ""
    return said


def columns(dice: random.Random, said: dict[str, Any]) -> None:
    listed = said["storage"]["columns"] = columns_of(said)
    name = dice.choice(COLUMNS)
    here = [one for one in listed if one["name"] == name]
    if not here:
        listed.insert(dice.randrange(len(listed) + 1), {"name": name, "type": "int"})
    elif dice.random() < 0.5:
        listed[listed.index(here[0])] = {"name": name, "type": "bigint"}
    else:
        listed.remove(here[0])


def storage(dice: random.Random, said: dict[str, Any]) -> None:
    column = dice.choice(columns_of(said))["name"]
    key, value = dice.choice(
        [("bucket_columns", [column]), ("sort_columns", [[column, 1]]), ("skewed_columns", [column])]
    )
    said["storage"] = said["storage"] | {key: value}


def constraint(dice: random.Random, said: dict[str, Any]) -> None:
    name, kind = dice.choice(CONSTRAINTS), dice.choice([0, 0, 1, 1, 2, 3])
    kept = [one for one in said["constraints"] if one["name"] != name]
    row: dict[str, Any] = {"name": name, "position": 1, "column": dice.choice(columns_of(said))["name"]}
    if kind:
        row["type"] = kind
    if kind == 1:
        row["references"] = ["hive", "d", dice.choice(NAMES), dice.choice(COLUMNS)]
    said["constraints"] = kept if len(kept) < len(said["constraints"]) else [*kept, row]


def privilege(dice: random.Random, said: dict[str, Any]) -> None:
    grant = {"privilege": "SELECT", "to": dice.choice(["ann", "eve"]), "by": "hive"}
    said["privileges"] = [grant | {"column": dice.choice(columns_of(said))["name"]}]


def keys(dice: random.Random, said: dict[str, Any]) -> None:
    if not said["partitions"]:
        said["partition_keys"] = dice.choice(
            [[], [{"name": dice.choice(["ds", *COLUMNS]), "type": "string"}]]
        )


def partitions(dice: random.Random, said: dict[str, Any]) -> None:
    if [one["name"] for one in said["partition_keys"]] != ["ds"]:
        return
    number = dice.randrange(4)
    said["partitions"] = dict(said["partitions"])
    if said["partitions"].pop(f"ds={number}", None) is None:
        said["partitions"] |= day(number, location=f"{said['storage']['location']}/ds={number}")


def parameter(dice: random.Random, said: dict[str, Any]) -> None:
    said["parameters"] = said["parameters"] | {dice.choice("klm"): str(dice.randrange(3))}


def moved_data(dice: random.Random, said: dict[str, Any]) -> None:
    if "metadata_location" in said["parameters"]:
        pointer = f"{said['storage']['location']}/metadata/{dice.randrange(9)}.json"
        said["parameters"] = said["parameters"] | {"metadata_location": pointer}


EDITS: list[Callable[[random.Random, dict[str, Any]], None]] = [
    columns, columns, storage, constraint, constraint, constraint, privilege, keys, partitions, parameter,
    moved_data,
]  # fmt: skip


def edited(dice: random.Random, state: State) -> State:
    """Return a state after something that a person does."""
    made = deepcopy(state)
    name = dice.choice(NAMES)
    if name not in made:
        if made and dice.random() < 0.4:
            made[name] = made.pop(dice.choice(list(made)))
        else:
            made[name] = new_table(dice, name)
    elif dice.random() < 0.15:
        del made[name]
    else:
        dice.choice(EDITS)(dice, made[name])
    for said in made.values():
        if SCHEMA in said["parameters"]:
            schema = ",".join(f"{one['name']}:{one['type']}" for one in columns_of(said))
            said["parameters"] = said["parameters"] | {SCHEMA: schema}
    return made


def tables(state: State) -> dict[str, Table]:
    found = {}
    for name, said in state.items():
        own = {key: value for key, value in said.items() if key != "partitions" and value}
        found[name] = Table(own | {"data": documents.data(own)}, said["partitions"])
    return found


def restored(overlay: Overlay, server: StrictMetastore, now: str, then: str) -> list[restoring.Step]:
    """Make a metastore what a tree says; return what was left alone. AssertionError where Hive refuses."""
    lost: list[str] = []
    metadata = Metadata(server, lambda name, field: lost.append(f"{name}: {field}"))  # type: ignore[arg-type]
    steps = restoring.plan(overlay, now, RestoreTarget(then, Name(), drop=True), Complete())
    seen = metadata.all([one for one in steps if one.operation is not Operation.LEAVE])
    refused = ""
    try:
        metadata.write(seen, lambda _: None, lambda _: None)
    except TException as error:
        # An error of these bindings is immutable: pytest cannot pass it on.
        refused = f"{type(error).__name__}: {getattr(error, 'message', error)}"
    assert not refused, "\n".join([refused, *map(str, steps)])
    assert lost == []
    return [one for one in steps if one.operation is Operation.LEAVE]


def is_possible(overlay: Overlay, number: str) -> bool:
    """Tell whether a metastore can hold a catalog: a restore into an empty one is complete."""
    try:
        return restored(overlay, StrictMetastore(), tree(overlay, {}), number) == []
    except AssertionError:
        return False


def changed(dice: random.Random, overlay: Overlay, state: State, count: int) -> State:
    """Return a state after some edits, of which a metastore refuses those that do not fit."""
    for _ in range(count):
        made = edited(dice, state)
        if is_possible(overlay, tree(overlay, {"d": tables(made)})):
            state = made
    return state


def check(overlay: Overlay, ours: str, merged: str) -> None:
    """Restore a merged catalog into an empty metastore, and into one that has ours."""
    assert restored(overlay, StrictMetastore(), tree(overlay, {}), merged) == []
    server = StrictMetastore()
    restored(overlay, server, tree(overlay, {}), ours)
    left = {step.name: step.why for step in restored(overlay, server, ours, merged)}
    expected = {name.table for name, _ in SnapshotReader(overlay, merged).tables_in(Name())}
    there = {name for _, name in server.tables}
    # What a restore leaves alone it says: tables of Iceberg, and other partition keys.
    assert expected ^ there <= {name.table for name in left}
    places = TablePlaces(SnapshotReader(overlay, merged).tables_in(Name()))
    for name, said in SnapshotReader(overlay, merged).tables_in(Name()):
        users = [one.table for one in places.users(said) if one.table != name]
        assert not users or is_plain_external(said), (name, users)


@pytest.mark.parametrize("seed", range(12))
def test_every_clean_merge_is_a_catalog_that_a_metastore_takes(seed: int) -> None:
    dice, clean, conflicts = random.Random(seed), 0, 0  # noqa: S311 -- which edits, not secrets
    for _ in range(20):
        overlay = Overlay(None)
        base = changed(dice, overlay, {}, 8)
        ours, theirs = (changed(dice, overlay, base, dice.randrange(1, 5)) for _ in range(2))
        trees = Three(*(tree(overlay, {"d": tables(state)}) for state in (base, ours, theirs)))
        found = merge(overlay, trees, Choice())
        if not found.conflicts:
            clean += 1
            check(overlay, trees.ours, found.tree)
            continue
        conflicts += 1
        for side in Side:
            decided = merge(overlay, trees, Choice(side)).tree
            assert is_possible(overlay, decided), [str(one) for one in found.conflicts]
    # Of both there are enough to mean something.
    assert min(clean, conflicts) > 0
