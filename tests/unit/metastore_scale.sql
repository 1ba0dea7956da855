-- A catalog of :databases databases and :tables tables (a view of each hundred), of which every second one has :few
-- partitions, and one has :many. Numbers are as Hive's own sequences give them: each object has its own.
BEGIN;
-- The keys of other tables need not be there yet.
SET LOCAL session_replication_role = replica;
INSERT INTO "DBS" SELECT 100 + d, 'database ' || d, 'hdfs://lake/warehouse/d' || d || '.db', 'd' || d, 'hive', 'USER', 'hive'
  FROM generate_series(1, :databases) d;
INSERT INTO "CDS" SELECT 100000 + t FROM generate_series(1, :tables) t;
INSERT INTO "COLUMNS_V2" SELECT 100000 + t, CASE WHEN c % 3 = 0 THEN 'says ' || c END, 'c' || c,
  (ARRAY['bigint', 'string', 'decimal(18,2)', 'timestamp'])[1 + c % 4], c
  FROM generate_series(1, :tables) t, generate_series(0, 9) c;
INSERT INTO "SERDES" ("SERDE_ID", "NAME", "SLIB") SELECT 100000 + t, NULL, 'org.apache.hadoop.hive.ql.io.orc.OrcSerde'
  FROM generate_series(1, :tables) t;
INSERT INTO "SERDE_PARAMS" SELECT 100000 + t, 'serialization.format', '1' FROM generate_series(1, :tables) t;
INSERT INTO "SDS" SELECT 100000 + t, 'org.apache.hadoop.hive.ql.io.orc.OrcInputFormat', false,
  'hdfs://lake/warehouse/d' || (1 + t % :databases) || '.db/t' || t, -1,
  'org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat', 100000 + t, 100000 + t, false FROM generate_series(1, :tables) t;
INSERT INTO "TBLS" ("TBL_ID", "CREATE_TIME", "DB_ID", "LAST_ACCESS_TIME", "OWNER", "OWNER_TYPE", "RETENTION", "SD_ID",
  "TBL_NAME", "TBL_TYPE", "VIEW_EXPANDED_TEXT", "VIEW_ORIGINAL_TEXT")
  SELECT 100000 + t, 1790000000 + t, 101 + t % :databases, 0, 'u' || t % 7, 'USER', 0, 100000 + t, 't' || t,
  CASE WHEN t % 100 = 0 THEN 'VIRTUAL_VIEW' ELSE 'EXTERNAL_TABLE' END,
  CASE WHEN t % 100 = 0 THEN 'select 1' END, CASE WHEN t % 100 = 0 THEN 'SELECT 1' END FROM generate_series(1, :tables) t;
INSERT INTO "TABLE_PARAMS" SELECT 100000 + t, key, value FROM generate_series(1, :tables) t, (VALUES
  ('EXTERNAL', 'TRUE'), ('comment', 'what it is'), ('numFiles', '12'), ('totalSize', '123456'),
  ('transient_lastDdlTime', '1790000000'), ('bucketing_version', '2')) params(key, value);
INSERT INTO "PARTITION_KEYS" SELECT 100000 + t, NULL, 'ds', 'string', 0 FROM generate_series(1, :tables) t WHERE t % 2 = 1;
INSERT INTO "PARTITIONS" SELECT 1000000 + t * 1000 + n, 1790000000, 0, 'ds=' || (date '2020-01-01' + n), 1000000 + t * 1000 + n,
  100000 + t FROM generate_series(1, :tables) t, generate_series(1, :few) n WHERE t % 2 = 1 AND t > 1;
INSERT INTO "PARTITIONS" SELECT 100000000 + n, 1790000000, 0, 'ds=' || (date '1700-01-01' + n), 100000000 + n, 100001
  FROM generate_series(1, :many) n;
INSERT INTO "PARTITION_KEY_VALS" SELECT "PART_ID", substr("PART_NAME", 4), 0 FROM "PARTITIONS";
INSERT INTO "SERDES" ("SERDE_ID", "NAME", "SLIB") SELECT "SD_ID", NULL, 'org.apache.hadoop.hive.ql.io.orc.OrcSerde' FROM "PARTITIONS";
INSERT INTO "SERDE_PARAMS" SELECT "SD_ID", 'serialization.format', '1' FROM "PARTITIONS";
INSERT INTO "SDS" SELECT p."SD_ID", s."INPUT_FORMAT", false, s."LOCATION" || '/' || "PART_NAME", -1, s."OUTPUT_FORMAT", p."SD_ID",
  s."CD_ID", false FROM "PARTITIONS" p JOIN "TBLS" t USING ("TBL_ID") JOIN "SDS" s ON s."SD_ID" = t."SD_ID";
INSERT INTO "PARTITION_PARAMS" SELECT "PART_ID", key, value FROM "PARTITIONS", (VALUES
  ('COLUMN_STATS_ACCURATE', '{"BASIC_STATS":"true"}'), ('numFiles', '1'), ('numRows', '1000'), ('rawDataSize', '8000'),
  ('totalSize', '4000'), ('transient_lastDdlTime', '1790000000')) params(key, value);
COMMIT;
VACUUM ANALYZE;
