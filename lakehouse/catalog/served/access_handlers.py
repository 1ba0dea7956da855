"""Handlers of calls about roles and privileges, and about the server itself."""

from __future__ import annotations

from typing import Any

from fb303.ttypes import fb_status
from hive_metastore.ttypes import (
    CurrentNotificationEventId,
    GetPrincipalsInRoleRequest,
    GetPrincipalsInRoleResponse,
    GetRoleGrantsForPrincipalRequest,
    GetRoleGrantsForPrincipalResponse,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    LockResponse,
    LockState,
    MetaException,
    Role,
    ShowLocksResponse,
)

from lakehouse.catalog.bindings import access
from lakehouse.catalog.documents import Document
from lakehouse.catalog.names import DEFAULT_CATALOG, Name
from lakehouse.catalog.partition_names import name as partition_name
from lakehouse.catalog.served.request import Request, place
from plugins.module_utils.lakehouse.counting import counted

# The settings of a metastore that clients read.
_SETTINGS = {
    # Spark sends conditions on keys of other types than text only with this setting.
    "hive.metastore.try.direct.sql": "true",
    "hive.metastore.try.direct.sql.ddl": "true",
}


class AccessHandlers(Request):
    """The calls that are not about a table or database."""

    def get_role_names(self) -> list[str]:
        return [role.roleName for role in access.roles(self.reader.access(), self.report_field)]

    def list_roles(self, person: str, kind: int) -> list[Role]:
        granted = {
            member.roleName
            for member in access.members(self.reader.access(), self.report_field)
            if (member.principalName, member.principalType) == (person, kind)
        }
        return [
            role for role in access.roles(self.reader.access(), self.report_field) if role.roleName in granted
        ]

    def get_principals_in_role(self, request: GetPrincipalsInRoleRequest) -> GetPrincipalsInRoleResponse:
        members = access.members(self.reader.access(), self.report_field)
        return GetPrincipalsInRoleResponse(
            [member for member in members if member.roleName == request.roleName]
        )

    def get_role_grants_for_principal(
        self, request: GetRoleGrantsForPrincipalRequest
    ) -> GetRoleGrantsForPrincipalResponse:
        principal = request.principal_name, request.principal_type
        members = access.members(self.reader.access(), self.report_field)
        return GetRoleGrantsForPrincipalResponse(
            [member for member in members if (member.principalName, member.principalType) == principal]
        )

    def list_privileges(
        self, person: str | None, kind: int | None, reference: HiveObjectRef
    ) -> list[HiveObjectPrivilege]:
        name = self._object(reference)
        values = reference.partValues or []
        return [
            privilege
            for privilege in access.privileges(name, self._document(name), self.report_field, values)
            if (not person or (privilege.principalName, privilege.principalType) == (person, kind))
            and (reference.columnName or None) == privilege.hiveObject.columnName
        ]

    def getMetaConf(self, key: str) -> str:
        if key not in _SETTINGS:
            raise MetaException(f"{key} is no setting of a commit")
        return _SETTINGS[key]

    def get_config_value(self, key: str | None, default: str) -> str:
        return _SETTINGS.get(key or "", default)

    def set_ugi(self, user: str, groups: list[str] | None) -> list[str]:
        # Every user may read, so clients need not authenticate.
        return [*(groups or [])] or [user]

    def get_current_notificationEventId(self) -> CurrentNotificationEventId:
        event = self.entry.facts.get("Event", "")
        return CurrentNotificationEventId(int(event) if event.isdecimal() else 0)

    # A commit never changes, so locks need no state. Iceberg takes one before its change, and retries for
    # minutes without it: instead, the change itself is refused.

    def lock(self, _: Any) -> LockResponse:
        return LockResponse(lockid=1, state=LockState.ACQUIRED)

    def check_lock(self, _: Any) -> LockResponse:
        return LockResponse(lockid=1, state=LockState.ACQUIRED)

    def unlock(self, _: Any) -> None:
        return

    def heartbeat(self, _: Any) -> None:
        return

    def show_locks(self, _: Any) -> ShowLocksResponse:
        return ShowLocksResponse([])

    def getName(self) -> str:
        return f"Hive Metastore as of commit {self.entry.short}"

    def getVersion(self) -> str:
        # The version of the interface, as in the metastore of Hive 3.
        return "3.0"

    def getStatus(self) -> int:
        return int(fb_status.ALIVE)

    def getStatusDetails(self) -> str:
        return f"serves commit {self.entry.id} read-only"

    def getCounters(self) -> dict[str, int]:
        return {}

    def aliveSince(self) -> int:
        return self.began

    def shutdown(self) -> None:
        """Do nothing: Hive's clients call this when they end."""

    def _object(self, reference: HiveObjectRef) -> Name:
        database = place(reference.dbName, reference.catName)
        if reference.objectType == HiveObjectType.GLOBAL:
            return Name()
        if reference.objectType == HiveObjectType.DATABASE:
            return database
        table = Name(
            database.catalog or DEFAULT_CATALOG, database.database, (reference.objectName or "").lower()
        )
        if not reference.partValues:
            return table
        keys = [key["name"] for key in self.table(table).get("partition_keys", ())]
        if len(keys) != len(reference.partValues):
            raise MetaException(f"{table} has {counted(len(keys), 'partition key')}")
        return Name(table.catalog, table.database, table.table, partition_name(keys, reference.partValues))

    def _document(self, name: Name) -> Document:
        if not name.catalog:
            return self.reader.access()
        return (self.reader.partition(name) if name.partition else self.reader.document(name)) or {}
