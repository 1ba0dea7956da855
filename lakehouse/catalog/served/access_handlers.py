"""Answers about roles and privileges, and about the server itself."""

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

# What clients ask a metastore about itself before they ask for more.
_SETTINGS = {
    # Spark sends conditions on keys that are no text only where this is set: they are understood.
    "hive.metastore.try.direct.sql": "true",
    "hive.metastore.try.direct.sql.ddl": "true",
}


class Others(Request):
    """What belongs to no table."""

    def get_role_names(self) -> list[str]:
        return [one.roleName for one in access.roles(self.past.access(), self.lost)]

    def list_roles(self, person: str, kind: int) -> list[Role]:
        granted = {
            one.roleName
            for one in access.members(self.past.access(), self.lost)
            if (one.principalName, one.principalType) == (person, kind)
        }
        return [one for one in access.roles(self.past.access(), self.lost) if one.roleName in granted]

    def get_principals_in_role(self, request: GetPrincipalsInRoleRequest) -> GetPrincipalsInRoleResponse:
        members = access.members(self.past.access(), self.lost)
        return GetPrincipalsInRoleResponse([one for one in members if one.roleName == request.roleName])

    def get_role_grants_for_principal(
        self, request: GetRoleGrantsForPrincipalRequest
    ) -> GetRoleGrantsForPrincipalResponse:
        wanted = request.principal_name, request.principal_type
        members = access.members(self.past.access(), self.lost)
        return GetRoleGrantsForPrincipalResponse(
            [one for one in members if (one.principalName, one.principalType) == wanted]
        )

    def list_privileges(
        self, person: str | None, kind: int | None, asked: HiveObjectRef
    ) -> list[HiveObjectPrivilege]:
        name = self._object(asked)
        values = asked.partValues or []
        return [
            one
            for one in access.privileges(name, self._said(name), self.lost, values)
            if (not person or (one.principalName, one.principalType) == (person, kind))
            and (asked.columnName or None) == one.hiveObject.columnName
        ]

    def getMetaConf(self, key: str) -> str:
        if key not in _SETTINGS:
            raise MetaException(f"{key} is no setting of a commit")
        return _SETTINGS[key]

    def get_config_value(self, key: str | None, otherwise: str) -> str:
        return _SETTINGS.get(key or "", otherwise)

    def set_ugi(self, user: str, groups: list[str] | None) -> list[str]:
        # Every user may read: no client is asked for more than a name.
        return [*(groups or [])] or [user]

    def get_current_notificationEventId(self) -> CurrentNotificationEventId:
        said = self.entry.facts.get("Event", "")
        return CurrentNotificationEventId(int(said) if said.isdecimal() else 0)

    # Nothing changes what a lock would guard. Iceberg takes one before its change, and asks for it
    # minutes long: it is the change that is refused, at once.

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
        # Of the interface, as the metastore of Hive 3 says it.
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
        """Do nothing: a client of Hive says this where it ends, and means itself."""

    def _object(self, asked: HiveObjectRef) -> Name:
        above = place(asked.dbName, asked.catName)
        if asked.objectType == HiveObjectType.GLOBAL:
            return Name()
        if asked.objectType == HiveObjectType.DATABASE:
            return above
        own = Name(above.catalog or DEFAULT_CATALOG, above.database, (asked.objectName or "").lower())
        if not asked.partValues:
            return own
        keys = [one["name"] for one in self.table(own).get("partition_keys", ())]
        if len(keys) != len(asked.partValues):
            raise MetaException(f"{own} has {counted(len(keys), 'partition key')}")
        return Name(own.catalog, own.database, own.table, partition_name(keys, asked.partValues))

    def _said(self, name: Name) -> Document:
        if not name.catalog:
            return self.past.access()
        return (self.past.partition(name) if name.partition else self.past.said(name)) or {}
