"""The psql script that reads a metastore's database in one transaction; its last line marks the end.

The output consists of sections, each below a line `@ name`: rows of COPY, whose fields are numbers and JSON.
Names of Hive's tables are quoted, since they are in upper case.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import count

from lakehouse.catalog import documents, ranges, schema

MARK = "@ "
END = "@ end"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _list(values: tuple[str, ...] | frozenset[str]) -> str:
    return f"ARRAY[{', '.join(map(_text, sorted(values)))}]::text[]"


def _grant(privilege: str, column: str = "NULL") -> str:
    """Return the expression of a privilege; `column` is the name of the table's column, if any."""
    return f"""jsonb_build_object('privilege', "{privilege}", 'column', {column}, 'to', "PRINCIPAL_NAME",
      'to_type', "PRINCIPAL_TYPE", 'by', "GRANTOR", 'by_type', "GRANTOR_TYPE", 'may_grant', "GRANT_OPTION",
      'authorizer', "AUTHORIZER", 'created', "CREATE_TIME")"""


def _rare(table: str, query: str) -> str:
    """Return a query that is skipped while the table is empty, which saves a third for many partitions."""
    return f'CASE WHEN (SELECT EXISTS (SELECT FROM "{table}")) THEN {query} END'


def _grants(table: str, columns: str, key: str, prefix: str) -> str:
    """Return the expression of all privileges on the object of `key`, and on its columns."""
    of_all = f'(SELECT jsonb_agg({_grant(f"{prefix}_PRIV")}) FROM "{table}" WHERE {key})'
    column = _grant(f"{prefix}_COL_PRIV", '"COLUMN_NAME"')
    of_columns = f'(SELECT jsonb_agg({column}) FROM "{columns}" WHERE {key})'
    return f"""coalesce({_rare(table, of_all)}, '[]') || coalesce({_rare(columns, of_columns)}, '[]')"""


_VOLATILE = " OR ".join(
    [
        f'"PARAM_KEY" = ANY ({_list(documents.VOLATILE)})',
        *(f'starts_with("PARAM_KEY", {_text(prefix)})' for prefix in documents.VOLATILE_PREFIXES),
    ]
)
_UNKNOWN_IDS = _list(
    frozenset({"CS_ID", "PART_ID", "TBL_ID", "CAT_NAME", "DB_NAME", "TABLE_NAME", "PARTITION_NAME"})
)
# The values of a list of skewed values; `number` is the expression of its id.
_STRINGS = """(SELECT jsonb_agg("STRING_LIST_VALUE" ORDER BY "INTEGER_IDX") FROM "SKEWED_STRING_LIST_VALUES" v
      WHERE v."STRING_LIST_ID" = {number})"""
_BUCKETS = _rare(
    "BUCKETING_COLS",
    """(SELECT jsonb_agg("BUCKET_COL_NAME" ORDER BY "INTEGER_IDX") FROM "BUCKETING_COLS" b
      WHERE b."SD_ID" = s."SD_ID")""",
)
_SORT = _rare(
    "SORT_COLS",
    """(SELECT jsonb_agg(jsonb_build_array("COLUMN_NAME", "ORDER") ORDER BY "INTEGER_IDX")
      FROM "SORT_COLS" o WHERE o."SD_ID" = s."SD_ID")""",
)
_SKEWED = _rare(
    "SKEWED_COL_NAMES",
    """(SELECT jsonb_agg("SKEWED_COL_NAME" ORDER BY "INTEGER_IDX") FROM "SKEWED_COL_NAMES" k
      WHERE k."SD_ID" = s."SD_ID")""",
)
_SKEWED_VALUES = _rare(
    "SKEWED_VALUES",
    f"""(SELECT jsonb_agg({_STRINGS.format(number='k."STRING_LIST_ID_EID"')}
      ORDER BY "INTEGER_IDX") FROM "SKEWED_VALUES" k WHERE k."SD_ID_OID" = s."SD_ID")""",
)
_SKEWED_LOCATIONS = _rare(
    "SKEWED_COL_VALUE_LOC_MAP",
    f"""(SELECT jsonb_agg(jsonb_build_array({_STRINGS.format(number='k."STRING_LIST_ID_KID"')}, "LOCATION"))
      FROM "SKEWED_COL_VALUE_LOC_MAP" k WHERE k."SD_ID" = s."SD_ID")""",
)
_SD_PARAMETERS = _rare(
    "SD_PARAMS",
    """(SELECT jsonb_object_agg("PARAM_KEY", "PARAM_VALUE") FROM "SD_PARAMS" p
      WHERE p."SD_ID" = s."SD_ID")""",
)
# A storage descriptor `s` without its columns and its location: it is equal for most partitions.
_SHAPE = f"""jsonb_build_object('input_format', s."INPUT_FORMAT", 'output_format', s."OUTPUT_FORMAT",
    'compressed', s."IS_COMPRESSED", 'buckets', s."NUM_BUCKETS",
    'subdirectories', s."IS_STOREDASSUBDIRECTORIES",
    'bucket_columns', {_BUCKETS}, 'sort_columns', {_SORT}, 'skewed_columns', {_SKEWED},
    'skewed_values', {_SKEWED_VALUES}, 'skewed_locations', {_SKEWED_LOCATIONS},
    'parameters', {_SD_PARAMETERS},
    'serde', (SELECT jsonb_build_object('name', "NAME", 'library', "SLIB", 'description', "DESCRIPTION",
        'serializer', "SERIALIZER_CLASS", 'deserializer', "DESERIALIZER_CLASS", 'type', "SERDE_TYPE",
        'parameters', (SELECT jsonb_object_agg("PARAM_KEY", "PARAM_VALUE") FROM "SERDE_PARAMS" p
          WHERE p."SERDE_ID" = e."SERDE_ID"))
      FROM "SERDES" e WHERE e."SERDE_ID" = s."SERDE_ID"))"""
# A constraint belongs to the child of a foreign key, and to the parent where there is no child. The number of
# a column counts those of the table, or its partition keys where it names no list of columns.
_COLUMN = """coalesce(
      (SELECT "COLUMN_NAME" FROM "COLUMNS_V2" c WHERE c."CD_ID" = k."{side}_CD_ID"
         AND c."INTEGER_IDX" = k."{side}_INTEGER_IDX"),
      (SELECT "PKEY_NAME" FROM "PARTITION_KEYS" c WHERE c."TBL_ID" = k."{side}_TBL_ID"
         AND c."INTEGER_IDX" = k."{side}_INTEGER_IDX"))"""
_CONSTRAINTS = f"""SELECT coalesce("CHILD_TBL_ID", "PARENT_TBL_ID") AS "TBL_ID", jsonb_build_object(
    'name', "CONSTRAINT_NAME", 'type', "CONSTRAINT_TYPE", 'position', "POSITION",
    'flags', "ENABLE_VALIDATE_RELY", 'on_update', "UPDATE_RULE",
    'on_delete', "DELETE_RULE", 'value', "DEFAULT_VALUE",
    'column', CASE WHEN "CHILD_TBL_ID" IS NULL THEN {_COLUMN.format(side="PARENT")}
                   ELSE {_COLUMN.format(side="CHILD")} END,
    'references', CASE WHEN "CHILD_TBL_ID" IS NOT NULL THEN (
        SELECT jsonb_build_array(d."CTLG_NAME", d."NAME", t."TBL_NAME", {_COLUMN.format(side="PARENT")})
        FROM "TBLS" t JOIN "DBS" d USING ("DB_ID") WHERE t."TBL_ID" = k."PARENT_TBL_ID") END) AS one
  FROM "KEY_CONSTRAINTS" k"""
_MATERIALIZED = """SELECT t."TBL_ID", jsonb_build_object(
    'transactions', "TXN_LIST", 'time', "MATERIALIZATION_TIME",
    'tables', (SELECT jsonb_agg(jsonb_build_array(du."CTLG_NAME", du."NAME", tu."TBL_NAME"))
      FROM "MV_TABLES_USED" u JOIN "TBLS" tu ON tu."TBL_ID" = u."TBL_ID"
      JOIN "DBS" du ON du."DB_ID" = tu."DB_ID"
      WHERE u."MV_CREATION_METADATA_ID" = m."MV_CREATION_METADATA_ID")) AS one
  FROM "MV_CREATION_METADATA" m JOIN "DBS" d ON d."CTLG_NAME" = m."CAT_NAME" AND d."NAME" = m."DB_NAME"
  JOIN "TBLS" t ON t."DB_ID" = d."DB_ID" AND t."TBL_NAME" = m."TBL_NAME" """

_ABOUT = """SELECT jsonb_build_object(
  'schema', (SELECT string_agg("SCHEMA_VERSION", ',') FROM "VERSION"),
  'server', current_setting('server_version'),
  'time', floor(extract(epoch FROM transaction_timestamp()))::bigint,
  'snapshot', pg_current_snapshot()::text,
  'database', (SELECT system_identifier::text FROM pg_control_system())
              || '/' || (SELECT oid FROM pg_database WHERE datname = current_database()),
  'events', (SELECT count(*) FROM (SELECT FROM "NOTIFICATION_LOG" LIMIT 1) any_event),
  'event', (SELECT max("NEXT_EVENT_ID") - 1 FROM "NOTIFICATION_SEQUENCE"))"""
# Whether a table has rows matters only if it is none of the tables in `schema.KEPT`.
_SCHEMA = f"""SELECT jsonb_build_array(relname,
    (SELECT jsonb_agg(attname ORDER BY attnum) FROM pg_attribute
     WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped),
    CASE WHEN relname = ANY ({_list(frozenset(schema.KEPT))}) THEN true ELSE (xpath('//used/text()',
      query_to_xml(format('SELECT EXISTS (SELECT FROM %I.%I) AS used', 'public', relname), false, true, '')
    ))[1]::text = 'true' END)
  FROM pg_class c WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
  ORDER BY relname"""
_ACCESS = f"""SELECT jsonb_build_object(
  'roles', (SELECT jsonb_agg(jsonb_build_object('name', "ROLE_NAME", 'owner', "OWNER_NAME",
    'created', "CREATE_TIME", 'members', (SELECT jsonb_agg(jsonb_build_object('name', "PRINCIPAL_NAME",
      'type', "PRINCIPAL_TYPE", 'by', "GRANTOR", 'by_type', "GRANTOR_TYPE", 'may_grant', "GRANT_OPTION",
      'created', "ADD_TIME")) FROM "ROLE_MAP" m WHERE m."ROLE_ID" = r."ROLE_ID"))) FROM "ROLES" r),
  'privileges', (SELECT jsonb_agg({_grant("USER_PRIV")}) FROM "GLOBAL_PRIVS"))"""
_CATALOGS = """SELECT jsonb_build_array("NAME", jsonb_build_object('description', "DESC",
  'location', "LOCATION_URI")) FROM "CTLGS" """
_DATABASES = f"""SELECT jsonb_build_array("CTLG_NAME", "NAME", jsonb_build_object('description', "DESC",
    'location', "DB_LOCATION_URI", 'owner', "OWNER_NAME", 'owner_type', "OWNER_TYPE",
    'parameters', (SELECT jsonb_object_agg("PARAM_KEY", "PARAM_VALUE") FROM "DATABASE_PARAMS" p
      WHERE p."DB_ID" = d."DB_ID"),
    'privileges', (SELECT jsonb_agg({_grant("DB_PRIV")}) FROM "DB_PRIVS" p WHERE p."DB_ID" = d."DB_ID")))
  FROM "DBS" d"""
_FUNCTIONS = """SELECT jsonb_build_array("CTLG_NAME", "NAME", "FUNC_NAME", jsonb_build_object(
    'class', "CLASS_NAME", 'created', "CREATE_TIME", 'type', "FUNC_TYPE",
    'owner', f."OWNER_NAME", 'owner_type', f."OWNER_TYPE",
    'resources', (SELECT jsonb_agg(jsonb_build_array("RESOURCE_TYPE", "RESOURCE_URI") ORDER BY "INTEGER_IDX")
      FROM "FUNC_RU" r WHERE r."FUNC_ID" = f."FUNC_ID")))
  FROM "FUNCS" f JOIN "DBS" d USING ("DB_ID")"""
_NAMES = """SELECT jsonb_build_array(t."TBL_ID"::text, d."CTLG_NAME", d."NAME", t."TBL_NAME",
    (SELECT count(*) FROM "PARTITIONS" p WHERE p."TBL_ID" = t."TBL_ID"))
  FROM "TBLS" t JOIN "DBS" d USING ("DB_ID")"""
_COLUMNS = """SELECT "CD_ID", jsonb_agg(jsonb_build_object('name', "COLUMN_NAME", 'type', "TYPE_NAME",
    'comment', "COMMENT") ORDER BY "INTEGER_IDX")
  FROM "COLUMNS_V2" c WHERE {condition} GROUP BY "CD_ID" """
_COLUMNS_OF = """"CD_ID" IN (
    SELECT "CD_ID" FROM "SDS" JOIN "TBLS" t USING ("SD_ID") WHERE {tables}
    UNION SELECT "CD_ID" FROM "SDS" JOIN "PARTITIONS" t USING ("SD_ID") WHERE {partitions})"""
_TABLES = f"""SELECT t."TBL_ID", jsonb_build_array(
    jsonb_build_object('type', "TBL_TYPE", 'owner', "OWNER", 'owner_type', "OWNER_TYPE",
      'created', "CREATE_TIME",
      'retention', "RETENTION", 'rewrite', "IS_REWRITE_ENABLED", 'view', "VIEW_EXPANDED_TEXT",
      'view_as_written', "VIEW_ORIGINAL_TEXT",
      'partition_keys', (SELECT jsonb_agg(jsonb_build_object('name', "PKEY_NAME", 'type', "PKEY_TYPE",
        'comment', "PKEY_COMMENT") ORDER BY "INTEGER_IDX") FROM "PARTITION_KEYS" k
        WHERE k."TBL_ID" = t."TBL_ID"),
      'constraints', (SELECT jsonb_agg(one) FROM ({_CONSTRAINTS}) c WHERE c."TBL_ID" = t."TBL_ID"),
      'materialized', (SELECT jsonb_agg(one) FROM ({_MATERIALIZED}) m WHERE m."TBL_ID" = t."TBL_ID"),
      'privileges', {_grants("TBL_PRIVS", "TBL_COL_PRIVS", '"TBL_ID" = t."TBL_ID"', "TBL")}),
    (SELECT jsonb_object_agg("PARAM_KEY", "PARAM_VALUE") FROM "TABLE_PARAMS" p WHERE p."TBL_ID" = t."TBL_ID"),
    "LAST_ACCESS_TIME", s."LOCATION", s."CD_ID", CASE WHEN s."SD_ID" IS NOT NULL THEN {_SHAPE} END,
    (SELECT jsonb_agg(to_jsonb(c) - {_UNKNOWN_IDS}) FROM "TAB_COL_STATS" c WHERE c."TBL_ID" = t."TBL_ID"))
  FROM "TBLS" t LEFT JOIN "SDS" s USING ("SD_ID") WHERE {{condition}}"""
_PARTITION_STATISTICS = _rare(
    "PART_COL_STATS",
    f"""(SELECT jsonb_agg(to_jsonb(c) - {_UNKNOWN_IDS}) FROM "PART_COL_STATS" c
      WHERE c."PART_ID" = t."PART_ID")""",
)
_PARTITIONS = f"""SELECT t."TBL_ID",
    jsonb_build_array(t."PART_NAME", s."LOCATION", "CREATE_TIME", "LAST_ACCESS_TIME", s."CD_ID"),
    (SELECT jsonb_agg("PART_KEY_VAL" ORDER BY "INTEGER_IDX") FROM "PARTITION_KEY_VALS" v
     WHERE v."PART_ID" = t."PART_ID"),
    {_SHAPE}, parameters.kept, parameters.volatile,
    {_grants("PART_PRIVS", "PART_COL_PRIVS", '"PART_ID" = t."PART_ID"', "PART")},
    {_PARTITION_STATISTICS}
  FROM "PARTITIONS" t LEFT JOIN "SDS" s USING ("SD_ID") LEFT JOIN LATERAL (
    SELECT jsonb_object_agg("PARAM_KEY", "PARAM_VALUE") FILTER (WHERE NOT ({_VOLATILE})) AS kept,
           jsonb_object_agg("PARAM_KEY", "PARAM_VALUE") FILTER (WHERE {_VOLATILE}) AS volatile
    FROM "PARTITION_PARAMS" p WHERE p."PART_ID" = t."PART_ID") parameters ON true
  WHERE {{condition}}
  ORDER BY t."TBL_ID", t."PART_NAME" COLLATE "C" """


def _hash(table: str, seed: int) -> str:
    """Return the expression of a row's hash over its columns in `schema.KEPT`: a hash of text is slower."""
    number = str(seed)
    for column in sorted(schema.KEPT[table]):
        number = f"hashtextextended(coalesce(\"{column}\"::text, E'\\x01'), {number})"
    return number


def _hashes() -> Iterator[str]:
    """Give the queries of the hash of each row that belongs to a table, or to a range of its partitions."""
    seeds = count()
    yield f'SELECT "TBL_ID", NULL::int, {_hash("TBLS", next(seeds))} FROM "TBLS"'
    yield from (f'SELECT "TBL_ID", range, number FROM {part}' for part in ("parts", "sds"))
    for table in ("TABLE_PARAMS", "PARTITION_KEYS", "TAB_COL_STATS", "TBL_PRIVS", "TBL_COL_PRIVS"):
        yield f'SELECT "TBL_ID", NULL::int, {_hash(table, next(seeds))} FROM "{table}"'
    for table in ("PARTITION_PARAMS", "PARTITION_KEY_VALS", "PART_PRIVS", "PART_COL_PRIVS", "PART_COL_STATS"):
        yield f"""SELECT "TBL_ID", range, own.number FROM (
          SELECT "PART_ID", {_hash(table, next(seeds))} FROM "{table}")
          own("PART_ID", number) JOIN ({_PARTS} OFFSET 0) parts USING ("PART_ID")"""
    for table, key in _STORAGE.items():
        yield f"""SELECT "TBL_ID", range, own.number FROM (
          SELECT "{key}", {_hash(table, next(seeds))} FROM "{table}")
          own("{key}", number) JOIN sds USING ("{key}")"""
    # Many partitions share one list of columns.
    yield f"""SELECT "TBL_ID", range, number FROM (
      SELECT "CD_ID", {_hash("COLUMNS_V2", next(seeds))} FROM "COLUMNS_V2")
      own("CD_ID", number) JOIN (SELECT DISTINCT "TBL_ID", range, "CD_ID" FROM sds) lists USING ("CD_ID")"""
    eid, kid = (_STRINGS.format(number=f'k."STRING_LIST_ID_{suffix}"') for suffix in ("EID", "KID"))
    for query in (
        f'range, {eid}::text || k::text FROM "SKEWED_VALUES" k JOIN sds ON sds."SD_ID" = k."SD_ID_OID"',
        f'range, {kid}::text || k::text FROM "SKEWED_COL_VALUE_LOC_MAP" k JOIN sds USING ("SD_ID")',
        f"NULL::int, one::text FROM ({_CONSTRAINTS}) constraints",
        f"NULL::int, one::text FROM ({_MATERIALIZED}) materialized",
    ):
        yield f"""SELECT "TBL_ID", range, hashtextextended(said, {next(seeds)}) FROM (
          SELECT "TBL_ID", {query}) own("TBL_ID", range, said)"""


# The further tables of a storage descriptor, with the columns that refer to it.
_STORAGE = {
    **dict.fromkeys(("SD_PARAMS", "BUCKETING_COLS", "SORT_COLS", "SKEWED_COL_NAMES"), "SD_ID"),
    **dict.fromkeys(("SERDES", "SERDE_PARAMS"), "SERDE_ID"),
}
# The number of a partition's range among those with these first names; null without ranges.
_RANGE = 'width_bucket("PART_NAME" COLLATE "C", firsts)'
_KEY = f"""{{id}} || '/' || left({ranges.HASH_IN_SQL}, 16)"""
# A table has changed if its mark has: a checksum of the number and the hashes of the rows that belong to it.
# The hashes are summed, since two storage descriptors may share a serde, whose row then occurs twice.
# A table with more partitions than a folder also has a mark for each range of partitions, under the digest of
# the first name: "" or the name of a partition with which a folder begins (`cuts`). This mark includes the
# table's name, by which its partitions are reused.
_CUTS = f"""SELECT coalesce(jsonb_agg(one), '[]') AS cuts FROM (
  SELECT "TBL_ID" AS id, array_prepend('', (
    SELECT array_agg("PART_NAME"::text ORDER BY "PART_NAME" COLLATE "C") FROM "PARTITIONS" p
    WHERE p."TBL_ID" = large."TBL_ID" AND {ranges.CUT_IN_SQL.format(name='"PART_NAME"')})) AS firsts
  FROM (SELECT "TBL_ID" FROM "PARTITIONS" GROUP BY "TBL_ID" HAVING count(*) > {ranges.FOLDER}) large) one"""
_CUT = "jsonb_to_recordset(:'cuts'::jsonb) cuts(id bigint, firsts text[])"
# A subquery, since PostgreSQL estimates the number of rows per PART_ID of a CTE only from version 17 on.
_PARTS = f"""SELECT "PART_ID", "SD_ID", "TBL_ID", {_RANGE} AS range, {_hash("PARTITIONS", 100)} AS number
  FROM "PARTITIONS" LEFT JOIN {_CUT} ON id = "TBL_ID" """
_MARKS = f"""WITH parts AS MATERIALIZED ({_PARTS}),
sds AS MATERIALIZED (
  SELECT own.*, "TBL_ID", range FROM (
    SELECT "SD_ID", "SERDE_ID", "CD_ID", {_hash("SDS", 101)} AS number FROM "SDS") own
  JOIN (SELECT "SD_ID", "TBL_ID", NULL::int AS range FROM "TBLS"
        UNION ALL SELECT "SD_ID", "TBL_ID", range FROM parts) whose USING ("SD_ID")),
sums AS MATERIALIZED (
  SELECT "TBL_ID", range, count(*) AS rows, sum(number) AS sum
  FROM ({" UNION ALL ".join(_hashes())}) rows("TBL_ID", range, number) GROUP BY "TBL_ID", range),
marks(key, mark) AS (
  SELECT "TBL_ID"::text, sum(rows) || ':' || sum(sum) FROM sums GROUP BY "TBL_ID"
  UNION ALL
  SELECT {_KEY.format(id='"TBL_ID"', name="firsts[range]")},
    rows || ':' || sum + hashtextextended("TBL_NAME", "DB_ID")
  FROM sums JOIN {_CUT} ON id = "TBL_ID" JOIN "TBLS" USING ("TBL_ID") WHERE range IS NOT NULL)
SELECT coalesce(jsonb_object_agg(key, mark), '{{}}') AS marks FROM marks"""
_CHANGED_TABLES = """SELECT coalesce(array_agg(key::bigint), '{}') AS tables
  FROM jsonb_each_text(:'marks'::jsonb) now LEFT JOIN jsonb_each_text(:'known'::jsonb) before USING (key)
  WHERE before.value IS DISTINCT FROM now.value AND strpos(key, '/') = 0"""
# The ranges of changed tables, and which of them have changed.
_CHANGED_RANGES = f"""SELECT coalesce(jsonb_agg(one), '[]') AS ranges FROM (
  SELECT id, firsts, array_agg(
    :'marks'::jsonb -> key IS DISTINCT FROM :'known'::jsonb -> key ORDER BY place) AS changed
  FROM {_CUT}, unnest(firsts) WITH ORDINALITY range(name, place),
    LATERAL (SELECT {_KEY.format(id="id", name="name")}) own(key)
  WHERE id = ANY (:'tables'::bigint[]) GROUP BY id, firsts) one"""
_OF_CHANGED_TABLES = "t.\"TBL_ID\" = ANY (:'tables'::bigint[])"
_OF_CHANGED_RANGES = f"""{_OF_CHANGED_TABLES} AND coalesce((
  SELECT changed[{_RANGE}]
  FROM jsonb_to_recordset(:'ranges'::jsonb) one(id bigint, firsts text[], changed boolean[])
  WHERE id = t."TBL_ID"), true)"""


def script(marks: Mapping[str, str] | None = None) -> str:
    """Return the script for all tables, or only for those whose mark differs from that in `marks`.

    Marks are by Hive's number of a table, and come from the output of an earlier script. Of a table with
    ranges of partitions, only the ranges are read whose mark differs.
    """
    tables = partitions = columns = "true"
    if marks is not None:
        tables, partitions = _OF_CHANGED_TABLES, _OF_CHANGED_RANGES
        columns = _COLUMNS_OF.format(tables=tables, partitions=partitions)
    lines = [
        "\\set ON_ERROR_STOP on",
        "\\encoding UTF8",
        "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;",
        # A metastore may wait for our locks.
        "SET LOCAL lock_timeout = '5s'; SET LOCAL jit = off; SET LOCAL work_mem = '64MB';",
        # Documents must not depend on the settings of the server.
        "SET LOCAL timezone = 'UTC'; SET LOCAL extra_float_digits = 1; SET LOCAL bytea_output = 'hex';",
        *_section("about", _ABOUT),
        *_section("schema", _SCHEMA),
        # The schema comes before the first query that needs every column, so that missing ones are reported.
        f"\\echo '{MARK}marks'",
        f"{_CUTS} \\gset",
        f"{_MARKS} \\gset",
        "COPY (SELECT :'marks'::jsonb) TO STDOUT;",
    ]
    if marks is not None:
        lines += [
            f"SELECT {_text(json.dumps(dict(marks)))} AS known \\gset",
            f"{_CHANGED_TABLES} \\gset",
            f"{_CHANGED_RANGES} \\gset",
        ]
    for name, query in (
        ("access", _ACCESS),
        ("catalogs", _CATALOGS),
        ("databases", _DATABASES),
        ("functions", _FUNCTIONS),
        ("names", _NAMES),
        ("columns", _COLUMNS.format(condition=columns)),
        ("tables", _TABLES.format(condition=tables)),
        ("partitions", _PARTITIONS.format(condition=partitions)),
    ):
        lines += _section(name, query)
    return "\n".join([*lines, "COMMIT;", f"\\echo '{END}'", ""])


def _section(name: str, query: str) -> list[str]:
    return [f"\\echo '{MARK}{name}'", f"COPY ({query}) TO STDOUT;"]
