"""What people may do to a table's files in HDFS itself."""

from __future__ import annotations

from collections.abc import Mapping

from suites.matrix.cross.access.acts import Act, Ground
from suites.testbed.databases import Table
from suites.testbed.tables import suffix


def _file(ground: Ground, table: Table) -> str:
    return ground.namenode.files(f"{ground.location(table)}/data")[0].path


def _list(ground: Ground, user: str, table: Table) -> None:
    ground.namenode.webhdfs("GET", "LISTSTATUS", ground.location(table), user)


def _read(ground: Ground, user: str, table: Table) -> None:
    ground.namenode.webhdfs("GET", "OPEN", _file(ground, table), user)


def _create(ground: Ground, user: str, table: Table) -> None:
    path = f"{ground.location(table)}/data/{suffix()}.tmp"
    ground.namenode.create(path, user, ground.endpoints.address_of)
    ground.namenode.remove(path)


def _make_folder(ground: Ground, user: str, table: Table) -> None:
    ground.namenode.webhdfs("PUT", "MKDIRS", f"{ground.location(table)}/{suffix()}", user)


def _rename(ground: Ground, user: str, table: Table) -> None:
    path = _file(ground, table)
    for source, target in ((path, f"{path}.away"), (f"{path}.away", path)):
        response = ground.namenode.webhdfs("PUT", "RENAME", source, user, destination=target)
        assert response["boolean"], f"{source} was not renamed"


def _delete(ground: Ground, user: str, table: Table) -> None:
    path = f"{ground.location(table)}/data/stray.parquet"
    response = ground.namenode.webhdfs("DELETE", "DELETE", path, user)
    assert response["boolean"], f"{path} was not deleted"


def _stray(ground: Ground, table: Table) -> None:
    """Put a file into the table's folder that belongs to nothing."""
    path = f"{ground.location(table)}/data/stray.parquet"
    ground.namenode.create(path, ground.endpoints.users["trino"], ground.endpoints.address_of)


def _chmod(ground: Ground, user: str, table: Table) -> None:
    ground.namenode.webhdfs("PUT", "SETPERMISSION", ground.location(table), user, permission="777")


def _chown(ground: Ground, user: str, table: Table) -> None:
    ground.namenode.webhdfs("PUT", "SETOWNER", ground.location(table), user, owner=user)


def _snoop(ground: Ground, user: str, _: Table) -> None:
    """List the folder in which Trino's hive catalog stages what it writes."""
    ground.namenode.webhdfs("GET", "LISTSTATUS", f"{ground.endpoints.root}/staging", user)


ACTS: Mapping[str, Act] = {
    "list a table's folder": Act(_list),
    "list what Trino's `hive` catalog stages": Act(_snoop),
    "read a file": Act(_read),
    "create a file": Act(_create),
    "make a folder": Act(_make_folder),
    "rename a file": Act(_rename),
    "delete a file": Act(_delete, before=_stray),
    "change the mode of what another made": Act(_chmod),
    "change its owner": Act(_chown),
}
