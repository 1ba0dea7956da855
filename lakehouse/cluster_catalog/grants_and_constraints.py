"""Write the privileges and constraints of an object of the metastore by Thrift."""

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
from lakehouse.catalog.bindings.field_reader import ReportField
from lakehouse.catalog.diff import CREATED
from lakehouse.catalog.documents import Document, line
from lakehouse.catalog.restoring import Step

Call = Callable[..., Any]
# The methods and requests by the kind of a constraint.
_ADD_METHODS: Mapping[str, tuple[str, Any]] = {
    "primary_keys": ("add_primary_key", AddPrimaryKeyRequest),
    "unique": ("add_unique_constraint", AddUniqueConstraintRequest),
    "not_null": ("add_not_null_constraint", AddNotNullConstraintRequest),
    "default": ("add_default_constraint", AddDefaultConstraintRequest),
    "check": ("add_check_constraint", AddCheckConstraintRequest),
}
# Foreign keys come last, since they need the key that they refer to.
_ADD_FOREIGN_KEY = "add_foreign_key", AddForeignKeyRequest


def put_privileges(call: Call, step: Step, report_field: ReportField) -> None:
    """Revoke and grant the privileges that differ; the time of a new grant is now."""
    before, after = (
        {_without_created(row): row for row in _listed(document, "privileges")}
        for document in _documents(step)
    )
    values = (step.after or {}).get("values", ())
    for method, keys in (
        ("revoke_privileges", before.keys() - after),
        ("grant_privileges", after.keys() - before),
    ):
        rows = [(before | after)[key] for key in sorted(keys)]
        if rows:
            call(
                method,
                PrivilegeBag(list(access.privileges(step.name, {"privileges": rows}, report_field, values))),
            )


def drop_constraints(call: Call, step: Step) -> None:
    """Drop the constraints that the commit lacks, or has with another definition."""
    before, after = map(_constraints, _documents(step))
    for name in sorted(name for name in before if before[name] != after.get(name)):
        call(
            "drop_constraint",
            DropConstraintRequest(step.name.database, step.name.table, name, step.name.catalog),
        )


def add_constraints(call: Call, steps: Iterable[Step], report_field: ReportField) -> None:
    """Add the constraints that are new, or have another definition; foreign keys after all others.

    A foreign key whose table, or key there, no longer exists is reported as lost.
    """
    new = [(step, constraints(step.name, {"constraints": _new_rows(step)}, report_field)) for step in steps]
    for kind, (method, request) in _ADD_METHODS.items():
        for _, table_constraints in new:
            if rows := getattr(table_constraints, kind):
                call(method, request(rows))
    method, request = _ADD_FOREIGN_KEY
    for step, table_constraints in new:
        for name, group in groupby(table_constraints.foreign_keys, lambda key: str(key.fk_name)):
            keys = list(group)
            try:
                # Without such a table, Hive 3.1 fails with an internal error.
                parent = replace(step.name, database=keys[0].pktable_db)
                call("get_table", parent.thrift_database, keys[0].pktable_name)
                call(method, request(keys))
            except (InvalidObjectException, NoSuchObjectException) as error:
                report_field(str(step.name), f"foreign key {name} ({' '.join(str(error.message).split())})")


def _new_rows(step: Step) -> list[Document]:
    before, after = map(_constraints, _documents(step))
    return [row for name, rows in after.items() if rows != before.get(name) for row in rows]


def _documents(step: Step) -> tuple[Document, Document]:
    return step.before or {}, step.after or {}


def _listed(document: Document, key: str) -> Iterable[Document]:
    return document.get(key) or ()


def _without_created(row: Document) -> str:
    return line({key: value for key, value in row.items() if key != CREATED})


def _constraints(document: Document) -> dict[str, list[Document]]:
    by_name: dict[str, list[Document]] = {}
    for row in _listed(document, "constraints"):
        by_name.setdefault(str(row["name"]), []).append(row)
    return by_name
