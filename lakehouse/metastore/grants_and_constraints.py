"""Convert the constraints, privileges and members of roles of a metastore into rows of documents.

`lakehouse.catalog.bindings` has the inverse, in `constraints` and `access`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lakehouse.catalog.bindings.constraints import (
    CHECK,
    DEFAULT,
    FLAGS,
    FOREIGN,
    NOT_NULL,
    PRIMARY,
    UNIQUE,
    Constraints,
)
from lakehouse.catalog.documents import without_nothing
from lakehouse.catalog.names import DEFAULT_CATALOG
from lakehouse.metastore.model import principal

# The number of each kind but foreign keys, and Thrift's fields with the name and the value of a constraint.
_KINDS: Mapping[str, tuple[int, str, str]] = {
    "primary_keys": (PRIMARY, "pk_name", ""),
    "unique": (UNIQUE, "uk_name", ""),
    "not_null": (NOT_NULL, "nn_name", ""),
    "default": (DEFAULT, "dc_name", "default_value"),
    "check": (CHECK, "dc_name", "check_expression"),
}
# Hive stores a constraint of a single column at this position, and Thrift has no field for that.
_POSITION = 1


def constraints(converted: Constraints) -> list[dict[str, Any]]:
    """Return the rows of the constraints of a table."""
    rows = [
        {
            "type": number,
            "name": getattr(constraint, name),
            "position": getattr(constraint, "key_seq", _POSITION),
            "column": constraint.column_name,
            "value": getattr(constraint, value, None),
            "flags": _flags(constraint),
        }
        for kind, (number, name, value) in _KINDS.items()
        for constraint in getattr(converted, kind)
    ]
    return list(map(without_nothing, (*rows, *map(_foreign, converted.foreign_keys))))


def privileges(grants: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the rows of the privileges on an object."""
    return [
        without_nothing(
            {
                "privilege": grant.grantInfo.privilege,
                "column": grant.hiveObject.columnName,
                "to": grant.principalName,
                "to_type": principal(grant.principalType),
                "authorizer": grant.authorizer,
                **_granted(grant.grantInfo, "grantor", "grantorType", "createTime"),
            }
        )
        for grant in grants
    ]


def roles(members: Mapping[str, Iterable[Any]]) -> list[dict[str, Any]]:
    """Return the roles of an access document by the grants of their members."""
    return [{"name": name, "members": list(_members(grants))} for name, grants in members.items()]


def _members(grants: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for grant in grants:
        yield without_nothing(
            {
                "name": grant.principalName,
                "type": principal(grant.principalType),
                **_granted(grant, "grantorName", "grantorPrincipalType", "grantTime"),
            }
        )


def _granted(grant: Any, by: str, by_type: str, created: str) -> dict[str, Any]:
    return {
        "by": getattr(grant, by),
        "by_type": principal(getattr(grant, by_type)),
        # A number in the database, and so in a document.
        "may_grant": int(bool(grant.grantOption)),
        "created": getattr(grant, created),
    }


def _foreign(key: Any) -> dict[str, Any]:
    return {
        "type": FOREIGN,
        "name": key.fk_name,
        "position": key.key_seq,
        "column": key.fkcolumn_name,
        "flags": _flags(key),
        "on_update": key.update_rule,
        "on_delete": key.delete_rule,
        "references": [
            key.catName or DEFAULT_CATALOG, key.pktable_db, key.pktable_name, key.pkcolumn_name,
        ],
    }  # fmt: skip


def _flags(constraint: Any) -> int:
    return sum(bit for field, bit in FLAGS.items() if getattr(constraint, field))
