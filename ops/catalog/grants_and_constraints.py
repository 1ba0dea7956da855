"""Writes what belongs to an object of the metastore by Thrift: who may do what with it, and constraints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any

from hive_metastore.ttypes import (
    AddCheckConstraintRequest,
    AddDefaultConstraintRequest,
    AddForeignKeyRequest,
    AddNotNullConstraintRequest,
    AddPrimaryKeyRequest,
    AddUniqueConstraintRequest,
    DropConstraintRequest,
    InvalidObjectException,
    NoSuchObjectException,
    PrivilegeBag,
)

from lakehouse.catalog.bindings import access
from lakehouse.catalog.bindings.constraints import constraints
from lakehouse.catalog.bindings.field_reader import Lost
from lakehouse.catalog.diff import CREATED
from lakehouse.catalog.documents import Document, line
from lakehouse.catalog.restoring import Step

Call = Callable[..., Any]
# By the kind of a constraint.
_ADDED: Mapping[str, tuple[str, Any]] = {
    "primary_keys": ("add_primary_key", AddPrimaryKeyRequest),
    "unique": ("add_unique_constraint", AddUniqueConstraintRequest),
    "not_null": ("add_not_null_constraint", AddNotNullConstraintRequest),
    "default": ("add_default_constraint", AddDefaultConstraintRequest),
    "check": ("add_check_constraint", AddCheckConstraintRequest),
}
# A foreign key needs the key that it refers to.
_REFERS = "add_foreign_key", AddForeignKeyRequest


def put_privileges(call: Call, step: Step, lost: Lost) -> None:
    """Revoke and grant what differs; the moment of a grant is now."""
    before, after = ({_granted(one): one for one in _listed(said, "privileges")} for said in _both(step))
    values = (step.then or {}).get("values", ())
    for method, wanted in (
        ("revoke_privileges", before.keys() - after),
        ("grant_privileges", after.keys() - before),
    ):
        found = [(before | after)[key] for key in sorted(wanted)]
        if found:
            call(
                method, PrivilegeBag(list(access.privileges(step.name, {"privileges": found}, lost, values)))
            )


def drop_constraints(call: Call, step: Step) -> None:
    """Drop the constraints that are otherwise in the commit, or not there."""
    before, after = map(_constraints, _both(step))
    for name in sorted(one for one in before if before[one] != after.get(one)):
        call(
            "drop_constraint",
            DropConstraintRequest(step.name.database, step.name.table, name, step.name.catalog),
        )


def add_constraints(call: Call, steps: Iterable[Step], lost: Lost) -> None:
    """Add the constraints that are otherwise in the commit, or new; foreign keys after all others.

    A foreign key whose table has gone, or has no such key any more, is lost.
    """
    made = [(step, constraints(step.name, {"constraints": _fresh(step)}, lost)) for step in steps]
    for kind, (method, request) in _ADDED.items():
        for _, one in made:
            if found := getattr(one, kind):
                call(method, request(found))
    method, request = _REFERS
    for step, one in made:
        for name, found in groupby(one.foreign_keys, lambda key: str(key.fk_name)):
            keys = list(found)
            try:
                # Hive 3.1 fails within where there is no such table.
                parent = replace(step.name, database=keys[0].pktable_db)
                call("get_table", parent.thrift_database, keys[0].pktable_name)
                call(method, request(keys))
            except (InvalidObjectException, NoSuchObjectException) as error:
                lost(str(step.name), f"foreign key {name} ({' '.join(str(error.message).split())})")


def _fresh(step: Step) -> list[Document]:
    before, after = map(_constraints, _both(step))
    return [row for name, rows in after.items() if rows != before.get(name) for row in rows]


def _both(step: Step) -> tuple[Document, Document]:
    return step.now or {}, step.then or {}


def _listed(said: Document, key: str) -> Iterable[Document]:
    return said.get(key) or ()


def _granted(one: Document) -> str:
    return line({key: value for key, value in one.items() if key != CREATED})


def _constraints(said: Document) -> dict[str, list[Document]]:
    found: dict[str, list[Document]] = {}
    for one in _listed(said, "constraints"):
        found.setdefault(str(one["name"]), []).append(one)
    return found
