"""Convert roles and privileges to Thrift."""

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

from lakehouse.catalog.bindings.field_reader import FieldReader, ReportField
from lakehouse.catalog.bindings.objects import principal
from lakehouse.catalog.documents import Document
from lakehouse.catalog.names import Name


def privileges(
    name: Name, document: Document, report_field: ReportField, values: Iterable[str] = ()
) -> Iterator[HiveObjectPrivilege]:
    """Give the privileges on an object; `values` are those of a partition."""
    kinds = (
        (name.partition, HiveObjectType.PARTITION),
        (name.table, HiveObjectType.TABLE),
        (name.database, HiveObjectType.DATABASE),
    )
    kind = next((kind for part, kind in kinds if part), HiveObjectType.GLOBAL)
    for row in document.get("privileges") or ():
        fields = FieldReader(row, f"{name} privilege", report_field)
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


def roles(document: Document, report_field: ReportField) -> list[Role]:
    """Return the roles of a commit's access."""
    roles = []
    for role in document.get("roles") or ():
        fields = FieldReader(role, f"role {role['name']}", report_field)
        roles.append(Role(fields.take("name"), fields.take("created", 0), fields.take("owner")))
        fields.end("members")
    return roles


def members(document: Document, report_field: ReportField) -> list[RolePrincipalGrant]:
    """Return the members of all roles."""
    grants = []
    for role in document.get("roles") or ():
        for member in role.get("members") or ():
            fields = FieldReader(member, f"role {role['name']} member", report_field)
            grants.append(
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
    return grants


def _grant(fields: FieldReader) -> PrivilegeGrantInfo:
    return PrivilegeGrantInfo(
        privilege=fields.take("privilege"),
        createTime=fields.take("created", 0),
        grantor=fields.take("by"),
        grantorType=principal(fields.take("by_type")),
        grantOption=bool(fields.take("may_grant")),
    )
