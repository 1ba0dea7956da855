"""What people may do to the metastore itself, by the calls of Thrift that engines make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from hive_metastore.ttypes import (
    AbortTxnRequest,
    AbortTxnsRequest,
    AddPrimaryKeyRequest,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    CommitTxnRequest,
    Database,
    DropConstraintRequest,
    FieldSchema,
    FireEventRequest,
    FireEventRequestData,
    Function,
    HeartbeatRequest,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    InsertEventRequestData,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    LongColumnStatsData,
    OpenTxnRequest,
    Partition,
    PrivilegeBag,
    PrivilegeGrantInfo,
    Role,
    SerDeInfo,
    SQLPrimaryKey,
    StorageDescriptor,
    UnlockRequest,
)
from hive_metastore.ttypes import Table as Entry

from suites.matrix.cross.access.acts import Act, Ground
from suites.testbed.databases import Table
from suites.testbed.tables import suffix

_ENGINE = "hive"  # whose statistics, which this release does not ask


def call(do: Callable[[Any, Table], object], **settings: Any) -> Act:
    """Return the act of calling the metastore, whose client is given with the table."""

    def act(ground: Ground, user: str, table: Table) -> None:
        with ground.metastore(user) as client:
            do(client, table)

    return Act(act, **settings)


# --- Tables ---


def _entry(table: Table, location: str) -> Entry:
    storage = StorageDescriptor(
        cols=[FieldSchema("id", "int", "")],
        location=location,
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        serdeInfo=SerDeInfo(
            serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={}
        ),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )
    return Entry(
        tableName=table.name,
        dbName=table.database,
        sd=storage,
        partitionKeys=[FieldSchema("day", "string", "")],
        parameters={},
        tableType="EXTERNAL_TABLE",
    )


def _location(client: Any, table: Table) -> str:
    return f"{client.get_database(table.database).locationUri}/{table.name}"


def _partitioned(ground: Ground) -> Table:
    """Make a table of Hive's kind with one partition."""
    table = ground.name()
    with ground.metastore(ground.endpoints.users["spark"]) as client:
        client.create_table(_entry(table, _location(client, table)))
        client.add_partition(_partition(client, table, "monday"))
    return table


def _partition(client: Any, table: Table, day: str) -> Partition:
    storage = client.get_table(table.database, table.name).sd
    storage.location = f"{storage.location}/day={day}"
    return Partition(values=[day], dbName=table.database, tableName=table.name, sd=storage, parameters={})


def _create(ground: Ground, user: str, _: Table) -> None:
    table = ground.name()
    with ground.metastore(user) as client:
        client.create_table(_entry(table, _location(client, table)))


def _changed(change: Callable[[Entry], None]) -> Callable[[Any, Table], None]:
    def do(client: Any, table: Table) -> None:
        entry = client.get_table(table.database, table.name)
        change(entry)
        client.alter_table(table.database, table.name, entry)

    return do


def _rename(entry: Entry) -> None:
    entry.tableName = f"{entry.tableName}_2"


def _rename_and_back(client: Any, table: Table) -> None:
    """Rename a table; the member who may gives it its name again, so that it is dropped at the end."""
    _changed(_rename)(client, table)
    entry = client.get_table(table.database, f"{table.name}_2")
    entry.tableName = table.name
    client.alter_table(table.database, f"{table.name}_2", entry)


def _commit(entry: Entry) -> None:
    """Do what a commit of Iceberg does: the metadata stays where it is."""
    entry.parameters["previous_metadata_location"] = entry.parameters["metadata_location"]


# In the root of HDFS only its superuser makes anything.
def _elsewhere(entry: Entry) -> None:
    entry.parameters["metadata_location"] = "/elsewhere/metadata/00001.metadata.json"


def _delta_elsewhere(entry: Entry) -> None:
    entry.sd.serdeInfo.parameters["path"] = "/elsewhere/table"


def _statistics(table: Table) -> ColumnStatistics:
    data = ColumnStatisticsData(longStats=LongColumnStatsData(numNulls=0, numDVs=1))
    return ColumnStatistics(
        ColumnStatisticsDesc(True, table.database, table.name), [ColumnStatisticsObj("id", "int", data)]
    )


def _constrain(client: Any, table: Table) -> None:
    name = f"key_{suffix()}"
    key = SQLPrimaryKey(table.database, table.name, "id", 1, name, True, False, False, catName="hive")
    client.add_primary_key(AddPrimaryKeyRequest([key]))
    client.drop_constraint(DropConstraintRequest(table.database, table.name, name))


def _analyze(ground: Ground, table: Table) -> None:
    """Give the table statistics, which a user then tries to delete."""
    with ground.metastore(ground.endpoints.users["spark"]) as client:
        client.update_table_column_statistics(_statistics(table))


# --- What is no table ---


def _create_database(ground: Ground, user: str, _: Table) -> None:
    name = f"who_{suffix()}"
    with ground.metastore(user) as client:
        client.create_database(Database(name=name, locationUri=f"{ground.endpoints.warehouse}/{name}"))
        client.drop_database(name, True, False)


def _alter_database(client: Any, table: Table) -> None:
    database = client.get_database(table.database)
    client.alter_database(table.database, database)


def _create_function(client: Any, table: Table) -> None:
    name = f"f_{suffix()}"
    client.create_function(Function(name, table.database, "some.Class", "owner", 1, 0, 1, []))
    client.drop_function(table.database, name)


def _create_role(client: Any, _: Table) -> None:
    name = f"role_{suffix()}"
    client.create_role(Role(name, 0, ""))
    client.drop_role(name)


def _grant(client: Any, table: Table) -> None:
    target = HiveObjectRef(HiveObjectType.TABLE, table.database, table.name, [], "")
    grant = HiveObjectPrivilege(target, "eve", 1, PrivilegeGrantInfo("SELECT", 0, "adam", 1, False), "SQL")
    client.grant_privileges(PrivilegeBag([grant]))
    client.revoke_privileges(PrivilegeBag([grant]))


# --- Locks and transactions ---


def _lock_request(table: Table, kind: int) -> LockRequest:
    # The name in the request is what a client claims; the metastore notes who asked.
    return LockRequest(
        [LockComponent(kind, LockLevel.TABLE, table.database, table.name)], user="me", hostname="h"
    )


def _lock(kind: int) -> Callable[[Any, Table], None]:
    def do(client: Any, table: Table) -> None:
        client.unlock(UnlockRequest(client.lock(_lock_request(table, kind)).lockid))

    return do


def _open_and_abort(client: Any, _: Table) -> None:
    client.abort_txns(AbortTxnsRequest(client.open_txns(OpenTxnRequest(1, "me", "h")).txn_ids))


def _fire(client: Any, table: Table) -> None:
    inserted = FireEventRequestData(insertData=InsertEventRequestData(filesAdded=["f"]))
    client.fire_listener_event(FireEventRequest(True, inserted, table.database, table.name))


def _with_anothers_lock(do: Callable[[Any, int], object]) -> Act:
    def act(ground: Ground, user: str, table: Table) -> None:
        with ground.metastore(ground.endpoints.users["spark"]) as owner, ground.metastore(user) as client:
            lock = owner.lock(_lock_request(table, LockType.SHARED_READ)).lockid
            try:
                do(client, lock)
            finally:
                owner.unlock(UnlockRequest(lock))

    return Act(act)


def _with_anothers_transaction(do: Callable[[Any, int], object]) -> Act:
    def act(ground: Ground, user: str, _: Table) -> None:
        with ground.metastore(ground.endpoints.users["spark"]) as owner, ground.metastore(user) as client:
            transaction = owner.open_txns(OpenTxnRequest(1, "me", "h")).txn_ids[0]
            try:
                do(client, transaction)
            finally:
                owner.abort_txn(AbortTxnRequest(transaction))

    return Act(act)


_ACTS: Mapping[str, Act] = {
    "`get_table`": call(lambda client, table: client.get_table(table.database, table.name)),
    "`create_table`": Act(_create),
    "`alter_table` as a commit of Iceberg": call(_changed(_commit)),
    "`alter_table`: `metadata_location` where they may not write": call(_changed(_elsewhere)),
    "`alter_table`: `path` of Delta where they may not write": call(_changed(_delta_elsewhere)),
    "`alter_table`: another name": call(_rename_and_back),
    "`update_table_column_statistics`": call(
        lambda client, table: client.update_table_column_statistics(_statistics(table))
    ),
    "`delete_table_column_statistics`": call(
        lambda client, table: client.delete_table_column_statistics(
            table.database, table.name, "id", _ENGINE
        ),
        before=_analyze,
    ),
    "`add_primary_key`, `drop_constraint`": call(_constrain),
    "`add_partition`": call(
        lambda client, table: client.add_partition(_partition(client, table, suffix())), make=_partitioned
    ),
    "`alter_partition`": call(
        lambda client, table: client.alter_partition(
            table.database, table.name, _partition(client, table, "monday")
        ),
        make=_partitioned,
    ),
    "`drop_partition`": call(
        lambda client, table: client.drop_partition(table.database, table.name, ["monday"], True),
        make=_partitioned,
        fresh=True,
    ),
    "`truncate_table`": call(
        lambda client, table: client.truncate_table(table.database, table.name, None),
        make=_partitioned,
        fresh=True,
    ),
    "`drop_table`": call(
        lambda client, table: client.drop_table(table.database, table.name, True), fresh=True
    ),
    "`create_database`, `drop_database`": Act(_create_database),
    "`alter_database`": call(_alter_database),
    "`create_function`, `drop_function`": call(_create_function),
    "`create_role`, `drop_role`": call(_create_role),
    "`grant_privileges`, `revoke_privileges`": call(_grant),
    "`lock`: shared read": call(_lock(LockType.SHARED_READ)),
    "`lock`: shared write": call(_lock(LockType.SHARED_WRITE)),
    "`lock`: exclusive": call(_lock(LockType.EXCLUSIVE)),
    "`open_txns`": call(_open_and_abort),
    "`fire_listener_event` about a table": call(_fire),
    "`unlock` of another's lock": _with_anothers_lock(
        lambda client, lock: client.unlock(UnlockRequest(lock))
    ),
    "`heartbeat` for another's lock": _with_anothers_lock(
        lambda client, lock: client.heartbeat(HeartbeatRequest(lockid=lock))
    ),
    "`abort_txn` of another's transaction": _with_anothers_transaction(
        lambda client, transaction: client.abort_txn(AbortTxnRequest(transaction))
    ),
    "`abort_txns` of another's transactions": _with_anothers_transaction(
        lambda client, transaction: client.abort_txns(AbortTxnsRequest([transaction]))
    ),
    "`commit_txn` of another's transaction": _with_anothers_transaction(
        lambda client, transaction: client.commit_txn(CommitTxnRequest(transaction))
    ),
}
# A client of Thrift sends a user name, or none.
ACTS: Mapping[str, Act] = {name: replace(act, anonymous=True) for name, act in _ACTS.items()}
