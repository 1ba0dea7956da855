"""The tables of the metastore's database: those in a commit, those that are left out, and unknown ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

_GRANT = "GRANTOR GRANTOR_TYPE GRANT_OPTION PRINCIPAL_NAME PRINCIPAL_TYPE AUTHORIZER CREATE_TIME"
_STATISTICS = (
    "CS_ID CAT_NAME DB_NAME TABLE_NAME COLUMN_NAME COLUMN_TYPE LONG_LOW_VALUE LONG_HIGH_VALUE"
    " DOUBLE_LOW_VALUE DOUBLE_HIGH_VALUE BIG_DECIMAL_LOW_VALUE BIG_DECIMAL_HIGH_VALUE NUM_NULLS"
    " NUM_DISTINCTS BIT_VECTOR AVG_COL_LEN MAX_COL_LEN NUM_TRUES NUM_FALSES LAST_ANALYZED"
)
# All columns of these tables in Hive Metastore 3.1.3: an unknown column is reported, never dropped silently.
_KEPT = {
    "BUCKETING_COLS": "SD_ID BUCKET_COL_NAME INTEGER_IDX",
    "CDS": "CD_ID",
    "COLUMNS_V2": "CD_ID COMMENT COLUMN_NAME TYPE_NAME INTEGER_IDX",
    "CTLGS": "CTLG_ID NAME DESC LOCATION_URI",
    "DATABASE_PARAMS": "DB_ID PARAM_KEY PARAM_VALUE",
    "DBS": "DB_ID DESC DB_LOCATION_URI NAME OWNER_NAME OWNER_TYPE CTLG_NAME",
    "DB_PRIVS": f"DB_GRANT_ID DB_ID DB_PRIV {_GRANT}",
    "FUNCS": "FUNC_ID CLASS_NAME CREATE_TIME DB_ID FUNC_NAME FUNC_TYPE OWNER_NAME OWNER_TYPE",
    "FUNC_RU": "FUNC_ID RESOURCE_TYPE RESOURCE_URI INTEGER_IDX",
    "GLOBAL_PRIVS": f"USER_GRANT_ID USER_PRIV {_GRANT}",
    "KEY_CONSTRAINTS": "CHILD_CD_ID CHILD_INTEGER_IDX CHILD_TBL_ID PARENT_CD_ID PARENT_INTEGER_IDX"
    " PARENT_TBL_ID POSITION CONSTRAINT_NAME CONSTRAINT_TYPE UPDATE_RULE DELETE_RULE"
    " ENABLE_VALIDATE_RELY DEFAULT_VALUE",
    "MV_CREATION_METADATA": "MV_CREATION_METADATA_ID CAT_NAME DB_NAME TBL_NAME TXN_LIST MATERIALIZATION_TIME",
    "MV_TABLES_USED": "MV_CREATION_METADATA_ID TBL_ID",
    "PARTITIONS": "PART_ID CREATE_TIME LAST_ACCESS_TIME PART_NAME SD_ID TBL_ID",
    "PARTITION_KEYS": "TBL_ID PKEY_COMMENT PKEY_NAME PKEY_TYPE INTEGER_IDX",
    "PARTITION_KEY_VALS": "PART_ID PART_KEY_VAL INTEGER_IDX",
    "PARTITION_PARAMS": "PART_ID PARAM_KEY PARAM_VALUE",
    "PART_COL_PRIVS": f"PART_COLUMN_GRANT_ID PART_ID COLUMN_NAME PART_COL_PRIV {_GRANT}",
    "PART_COL_STATS": f"PART_ID PARTITION_NAME {_STATISTICS}",
    "PART_PRIVS": f"PART_GRANT_ID PART_ID PART_PRIV {_GRANT}",
    "ROLES": "ROLE_ID CREATE_TIME OWNER_NAME ROLE_NAME",
    "ROLE_MAP": "ROLE_GRANT_ID ADD_TIME GRANT_OPTION GRANTOR GRANTOR_TYPE PRINCIPAL_NAME PRINCIPAL_TYPE"
    " ROLE_ID",
    "SDS": "SD_ID INPUT_FORMAT IS_COMPRESSED LOCATION NUM_BUCKETS OUTPUT_FORMAT SERDE_ID CD_ID"
    " IS_STOREDASSUBDIRECTORIES",
    "SD_PARAMS": "SD_ID PARAM_KEY PARAM_VALUE",
    "SERDES": "SERDE_ID NAME SLIB DESCRIPTION SERIALIZER_CLASS DESERIALIZER_CLASS SERDE_TYPE",
    "SERDE_PARAMS": "SERDE_ID PARAM_KEY PARAM_VALUE",
    "SKEWED_COL_NAMES": "SD_ID SKEWED_COL_NAME INTEGER_IDX",
    "SKEWED_COL_VALUE_LOC_MAP": "SD_ID STRING_LIST_ID_KID LOCATION",
    "SKEWED_STRING_LIST": "STRING_LIST_ID",
    "SKEWED_STRING_LIST_VALUES": "STRING_LIST_ID STRING_LIST_VALUE INTEGER_IDX",
    "SKEWED_VALUES": "SD_ID_OID STRING_LIST_ID_EID INTEGER_IDX",
    "SORT_COLS": "SD_ID COLUMN_NAME ORDER INTEGER_IDX",
    "TABLE_PARAMS": "TBL_ID PARAM_KEY PARAM_VALUE",
    "TAB_COL_STATS": f"TBL_ID {_STATISTICS}",
    "TBLS": "TBL_ID CREATE_TIME DB_ID LAST_ACCESS_TIME OWNER OWNER_TYPE RETENTION SD_ID TBL_NAME TBL_TYPE"
    " VIEW_EXPANDED_TEXT VIEW_ORIGINAL_TEXT IS_REWRITE_ENABLED",
    "TBL_COL_PRIVS": f"TBL_COLUMN_GRANT_ID TBL_ID COLUMN_NAME TBL_COL_PRIV {_GRANT}",
    "TBL_PRIVS": f"TBL_GRANT_ID TBL_ID TBL_PRIV {_GRANT}",
}
KEPT: Mapping[str, frozenset[str]] = {table: frozenset(columns.split()) for table, columns in _KEPT.items()}

# These have no history: they are about running operations, or about the database itself.
_PASSING = (
    "aux_table compaction_queue completed_compactions completed_txn_components hive_locks"
    " materialization_rebuild_locks min_history_level next_compaction_queue_id next_lock_id next_txn_id"
    " next_write_id repl_txn_map runtime_stats txn_components txn_to_write_id txns write_set"
    " NOTIFICATION_LOG NOTIFICATION_SEQUENCE PARTITION_EVENTS RUNTIME_STATS TXN_WRITE_NOTIFICATION_LOG"
    " NUCLEUS_TABLES SEQUENCE_TABLE VERSION METASTORE_DB_PROPERTIES"
    # Secrets do not belong in a history.
    " DELEGATION_TOKENS MASTER_KEYS"
)
PASSING = frozenset(_PASSING.split())

# Parts of a catalog that no commit contains; if they have rows, each commit reports them.
LEFT_OUT: Mapping[str, str] = {
    **dict.fromkeys(("IDXS", "INDEX_PARAMS"), "indexes, which Hive 3 can neither make nor read"),
    **dict.fromkeys(("TYPES", "TYPE_FIELDS"), "types, which no engine makes"),
    **dict.fromkeys(("I_SCHEMA", "SCHEMA_VERSION"), "the schema registry"),
    **dict.fromkeys(
        ("WM_RESOURCEPLAN", "WM_POOL", "WM_TRIGGER", "WM_POOL_TO_TRIGGER", "WM_MAPPING"),
        "resource plans of HiveServer2",
    ),
}


@dataclass(frozen=True)
class DatabaseTable:
    """A table of the database with its columns, and whether it has a row."""

    table: str
    columns: tuple[str, ...]
    used: bool


@dataclass(frozen=True)
class Stranger:
    """A part of the database that is not in a commit."""

    name: str
    why: str


def strangers(tables: Iterable[DatabaseTable]) -> Iterator[Stranger]:
    """Give the parts of a catalog that a commit would lack: tables with rows, and unknown columns."""
    for table in tables:
        if table.table in KEPT:
            for column in sorted(set(table.columns) - KEPT[table.table]):
                yield Stranger(f"{table.table}.{column}", "a column that Hive Metastore 3.1.3 does not have")
        elif table.table in LEFT_OUT and table.used:
            yield Stranger(table.table, f"{LEFT_OUT[table.table]}: no commit holds them")
        elif table.table not in LEFT_OUT and table.table not in PASSING:
            state = "with rows" if table.used else "without rows"
            yield Stranger(table.table, f"a table that Hive Metastore 3.1.3 does not have, {state}")


def missing(tables: Iterable[DatabaseTable]) -> list[str]:
    """Return the missing tables and columns without which the database cannot be read."""
    present = {table.table: set(table.columns) for table in tables}
    missing_names = []
    for table, columns in KEPT.items():
        if table not in present:
            missing_names.append(table)
        else:
            missing_names += [f"{table}.{column}" for column in sorted(columns - present[table])]
    return missing_names
