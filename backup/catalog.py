"""The SQL that reads a catalog whole: every database, table and partition as Thrift has them."""

from __future__ import annotations

# Functions of the session, which go with it. The order of columns and keys is their meaning.
FUNCTIONS = """
CREATE FUNCTION pg_temp.storage(bigint) RETURNS json LANGUAGE sql STABLE AS $$
  SELECT json_build_object(
    'location', s."LOCATION", 'input', s."INPUT_FORMAT", 'output', s."OUTPUT_FORMAT",
    'compressed', s."IS_COMPRESSED", 'subfolders', s."IS_STOREDASSUBDIRECTORIES", 'buckets', s."NUM_BUCKETS",
    'columns', (SELECT coalesce(json_agg(json_build_object(
        'name', c."COLUMN_NAME", 'type', c."TYPE_NAME", 'comment', c."COMMENT")
        ORDER BY c."INTEGER_IDX"), '[]')
      FROM "COLUMNS_V2" c WHERE c."CD_ID" = s."CD_ID"),
    'bucketed', (SELECT coalesce(json_agg(b."BUCKET_COL_NAME" ORDER BY b."INTEGER_IDX"), '[]')
      FROM "BUCKETING_COLS" b WHERE b."SD_ID" = s."SD_ID"),
    'sorted', (SELECT coalesce(json_agg(json_build_array(o."COLUMN_NAME", o."ORDER")
        ORDER BY o."INTEGER_IDX"), '[]')
      FROM "SORT_COLS" o WHERE o."SD_ID" = s."SD_ID"),
    'parameters', (SELECT coalesce(json_object_agg(p."PARAM_KEY", p."PARAM_VALUE"), '{}')
      FROM "SD_PARAMS" p WHERE p."SD_ID" = s."SD_ID"),
    'serde', (SELECT json_build_object('name', e."NAME", 'library', e."SLIB", 'parameters',
        (SELECT coalesce(json_object_agg(p."PARAM_KEY", p."PARAM_VALUE"), '{}')
         FROM "SERDE_PARAMS" p WHERE p."SERDE_ID" = e."SERDE_ID"))
      FROM "SERDES" e WHERE e."SERDE_ID" = s."SERDE_ID"))
  FROM "SDS" s WHERE s."SD_ID" = $1 $$;
CREATE FUNCTION pg_temp.partitions(bigint) RETURNS json LANGUAGE sql STABLE AS $$
  SELECT coalesce(json_agg(json_build_object(
    'values', (SELECT json_agg(v."PART_KEY_VAL" ORDER BY v."INTEGER_IDX")
      FROM "PARTITION_KEY_VALS" v WHERE v."PART_ID" = p."PART_ID"),
    'parameters', (SELECT coalesce(json_object_agg(a."PARAM_KEY", a."PARAM_VALUE"), '{}')
      FROM "PARTITION_PARAMS" a WHERE a."PART_ID" = p."PART_ID"),
    'storage', pg_temp.storage(p."SD_ID")) ORDER BY p."PART_NAME"), '[]')
  FROM "PARTITIONS" p WHERE p."TBL_ID" = $1 $$;
CREATE FUNCTION pg_temp.catalog() RETURNS json LANGUAGE sql STABLE AS $$
  SELECT json_build_object(
    'databases', (SELECT coalesce(json_agg(json_build_object(
        'name', d."NAME", 'description', d."DESC", 'location', d."DB_LOCATION_URI",
        'owner', d."OWNER_NAME", 'owner_type', d."OWNER_TYPE", 'parameters',
        (SELECT coalesce(json_object_agg(p."PARAM_KEY", p."PARAM_VALUE"), '{}')
         FROM "DATABASE_PARAMS" p WHERE p."DB_ID" = d."DB_ID")) ORDER BY d."NAME"), '[]') FROM "DBS" d),
    'tables', (SELECT coalesce(json_agg(json_build_object(
        'database', d."NAME", 'name', t."TBL_NAME", 'type', t."TBL_TYPE",
        'owner', t."OWNER", 'owner_type', t."OWNER_TYPE", 'retention', t."RETENTION",
        'view', t."VIEW_ORIGINAL_TEXT", 'view_expanded', t."VIEW_EXPANDED_TEXT",
        'rewrite', t."IS_REWRITE_ENABLED",
        'keys', (SELECT coalesce(json_agg(json_build_object(
            'name', k."PKEY_NAME", 'type', k."PKEY_TYPE", 'comment', k."PKEY_COMMENT")
            ORDER BY k."INTEGER_IDX"), '[]')
          FROM "PARTITION_KEYS" k WHERE k."TBL_ID" = t."TBL_ID"),
        'parameters', (SELECT coalesce(json_object_agg(p."PARAM_KEY", p."PARAM_VALUE"), '{}')
          FROM "TABLE_PARAMS" p WHERE p."TBL_ID" = t."TBL_ID"),
        'storage', pg_temp.storage(t."SD_ID"),
        'partitions', pg_temp.partitions(t."TBL_ID")) ORDER BY d."NAME", t."TBL_NAME"), '[]')
      FROM "TBLS" t JOIN "DBS" d USING ("DB_ID"))) $$;
"""
