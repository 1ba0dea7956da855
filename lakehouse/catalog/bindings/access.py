"""Roles and privileges as Thrift has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hive_metastore.ttypes import (
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    PrivilegeGrantInfo,
    Role,
    RolePrincipalGrant,
)

from lakehouse.catalog.bindings.field_reader import Lost, Taken
from lakehouse.catalog.bindings.objects import principal
from lakehouse.catalog.documents import Document
from lakehouse.catalog.names import Name


def privileges(
    name: Name, said: Document, lost: Lost, values: Iterable[str] = ()
) -> Iterator[HiveObjectPrivilege]:
    """Give who may do what with an object; `values` are those of a partition."""
    kinds = (
        (name.partition, HiveObjectType.PARTITION),
        (name.table, HiveObjectType.TABLE),
        (name.database, HiveObjectType.DATABASE),
    )
    kind = next((kind for word, kind in kinds if word), HiveObjectType.GLOBAL)
    for one in said.get("privileges") or ():
        fields = Taken(one, f"{name} privilege", lost)
        column = fields.take("column")
        yield HiveObjectPrivilege(
            hiveObject=HiveObjectRef(
                objectType=HiveObjectType.COLUMN if column else kind,
                dbName=name.database or None,
                objectName=name.table or None,
                partValues=list(values),
                columnName=column,
                catName=name.catalog or None,
            ),
            principalName=fields.take("to"),
            principalType=principal(fields.take("to_type")),
            grantInfo=_grant(fields),
            authorizer=fields.take("authorizer"),
        )
        fields.end()


def roles(said: Document, lost: Lost) -> list[Role]:
    """Return the roles of a commit's access."""
    found = []
    for one in said.get("roles") or ():
        fields = Taken(one, f"role {one['name']}", lost)
        found.append(Role(fields.take("name"), fields.take("created", 0), fields.take("owner")))
        fields.end("members")
    return found


def members(said: Document, lost: Lost) -> list[RolePrincipalGrant]:
    """Return who is in which role."""
    found = []
    for role in said.get("roles") or ():
        for one in role.get("members") or ():
            fields = Taken(one, f"role {role['name']} member", lost)
            found.append(
                RolePrincipalGrant(
                    roleName=role["name"],
                    principalName=fields.take("name"),
                    principalType=principal(fields.take("type")),
                    grantOption=bool(fields.take("may_grant")),
                    grantTime=fields.take("created", 0),
                    grantorName=fields.take("by"),
                    grantorPrincipalType=principal(fields.take("by_type")),
                )
            )
            fields.end()
    return found


def _grant(fields: Taken) -> PrivilegeGrantInfo:
    return PrivilegeGrantInfo(
        privilege=fields.take("privilege"),
        createTime=fields.take("created", 0),
        grantor=fields.take("by"),
        grantorType=principal(fields.take("by_type")),
        grantOption=bool(fields.take("may_grant")),
    )
