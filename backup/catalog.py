"""The SQL that reads a catalog whole: every database, table and partition as Thrift has them, a row each."""

from __future__ import annotations

# Of a storage descriptor `s`. The order of columns and keys is their meaning.
_STORAGE = """jsonb_build_object(
    'location', s."LOCATION", 'input', s."INPUT_FORMAT", 'output', s."OUTPUT_FORMAT",
    'compressed', s."IS_COMPRESSED", 'subfolders', s."IS_STOREDASSUBDIRECTORIES", 'buckets', s."NUM_BUCKETS",
    'columns', (SELECT coalesce(jsonb_agg(jsonb_build_object(
        'name', c."COLUMN_NAME", 'type', c."TYPE_NAME", 'comment', c."COMMENT")
        ORDER BY c."INTEGER_IDX"), '[]')
      FROM "COLUMNS_V2" c WHERE c."CD_ID" = s."CD_ID"),
    'bucketed', (SELECT coalesce(jsonb_agg(b."BUCKET_COL_NAME" ORDER BY b."INTEGER_IDX"), '[]')
      FROM "BUCKETING_COLS" b WHERE b."SD_ID" = s."SD_ID"),
    'sorted', (SELECT coalesce(jsonb_agg(jsonb_build_array(o."COLUMN_NAME", o."ORDER")
        ORDER BY o."INTEGER_IDX"), '[]')
      FROM "SORT_COLS" o WHERE o."SD_ID" = s."SD_ID"),
    'parameters', (SELECT coalesce(jsonb_object_agg(p."PARAM_KEY", p."PARAM_VALUE"), '{}')
      FROM "SD_PARAMS" p WHERE p."SD_ID" = s."SD_ID"),
    'serde', (SELECT jsonb_build_object('name', e."NAME", 'library', e."SLIB", 'parameters',
        (SELECT coalesce(jsonb_object_agg(p."PARAM_KEY", p."PARAM_VALUE"), '{}')
         FROM "SERDE_PARAMS" p WHERE p."SERDE_ID" = e."SERDE_ID"))
      FROM "SERDES" e WHERE e."SERDE_ID" = s."SERDE_ID"))"""
_DATABASES = """SELECT jsonb_build_object('database', jsonb_build_object(
    'name', d."NAME", 'description', d."DESC", 'location', d."DB_LOCATION_URI",
    'owner', d."OWNER_NAME", 'owner_type', d."OWNER_TYPE", 'parameters',
    (SELECT coalesce(jsonb_object_agg(p."PARAM_KEY", p."PARAM_VALUE"), '{}')
     FROM "DATABASE_PARAMS" p WHERE p."DB_ID" = d."DB_ID")))
  FROM "DBS" d ORDER BY d."NAME" """
_TABLES = f"""SELECT jsonb_build_object('table', jsonb_build_object(
    'database', d."NAME", 'name', t."TBL_NAME", 'type', t."TBL_TYPE",
    'owner', t."OWNER", 'owner_type', t."OWNER_TYPE", 'retention', t."RETENTION",
    'view', t."VIEW_ORIGINAL_TEXT", 'view_expanded', t."VIEW_EXPANDED_TEXT",
    'rewrite', t."IS_REWRITE_ENABLED",
    'keys', (SELECT coalesce(jsonb_agg(jsonb_build_object(
        'name', k."PKEY_NAME", 'type', k."PKEY_TYPE", 'comment', k."PKEY_COMMENT")
        ORDER BY k."INTEGER_IDX"), '[]')
      FROM "PARTITION_KEYS" k WHERE k."TBL_ID" = t."TBL_ID"),
    'parameters', (SELECT coalesce(jsonb_object_agg(p."PARAM_KEY", p."PARAM_VALUE"), '{{}}')
      FROM "TABLE_PARAMS" p WHERE p."TBL_ID" = t."TBL_ID"),
    'storage', CASE WHEN s."SD_ID" IS NOT NULL THEN {_STORAGE} END))
  FROM "TBLS" t JOIN "DBS" d USING ("DB_ID") LEFT JOIN "SDS" s USING ("SD_ID")
  ORDER BY d."NAME", t."TBL_NAME" """
_PARTITIONS = f"""SELECT jsonb_build_object('partition', jsonb_build_object(
    'database', d."NAME", 'table', t."TBL_NAME",
    'values', (SELECT jsonb_agg(v."PART_KEY_VAL" ORDER BY v."INTEGER_IDX")
      FROM "PARTITION_KEY_VALS" v WHERE v."PART_ID" = p."PART_ID"),
    'parameters', (SELECT coalesce(jsonb_object_agg(a."PARAM_KEY", a."PARAM_VALUE"), '{{}}')
      FROM "PARTITION_PARAMS" a WHERE a."PART_ID" = p."PART_ID"),
    'storage', CASE WHEN s."SD_ID" IS NOT NULL THEN {_STORAGE} END))
  FROM "PARTITIONS" p JOIN "TBLS" t USING ("TBL_ID") JOIN "DBS" d USING ("DB_ID")
  LEFT JOIN "SDS" s ON s."SD_ID" = p."SD_ID"
  ORDER BY p."PART_NAME" """
# Each prints a document of JSON on a line; of COPY, whose one escape in such a line is a doubled backslash.
QUERIES = tuple(f"COPY ({query}) TO STDOUT" for query in (_DATABASES, _TABLES, _PARTITIONS))


def row(line: str) -> str:
    """Return the document of a line that COPY has printed."""
    return line.replace("\\\\", "\\")
