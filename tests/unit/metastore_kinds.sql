-- One of each kind that a metastore of Hive 3.1.3 may hold: what a commit must have, to the last text.
INSERT INTO "CTLGS" VALUES (2, 'other', 'a second catalog', 'hdfs://lake/other');
INSERT INTO "DBS" VALUES (10, 'what is sold', 'hdfs://lake/warehouse/sales.db', 'sales', 'ann', 'USER', 'hive'),
  (11, 'elsewhere', 'hdfs://lake/other/far.db', 'far', 'bob', 'USER', 'other');
INSERT INTO "DATABASE_PARAMS" VALUES (10, 'owner-team', 'shop');
INSERT INTO "DB_PRIVS" VALUES (1, 1700000001, 10, 1, 'ann', 'USER', 'carl', 'USER', 'CREATE', 'SQL');
INSERT INTO "GLOBAL_PRIVS" VALUES (1, 1700000002, 1, 'root', 'USER', 'admin', 'ROLE', 'ALL', 'SQL');
INSERT INTO "ROLES" VALUES (1, 1700000003, 'root', 'analysts');
INSERT INTO "ROLE_MAP" VALUES (1, 1700000004, 0, 'ann', 'USER', 'dora', 'USER', 1);
INSERT INTO "FUNCS" VALUES (1, 'org.example.Mask', 1700000005, 10, 'mask_it', 1, 'ann', 'USER');
INSERT INTO "FUNC_RU" VALUES (1, 1, 'hdfs://lake/jars/mask.jar', 0);
-- A table that is partitioned, bucketed, sorted and skewed.
INSERT INTO "CDS" VALUES (20), (21), (22), (23), (24);
INSERT INTO "COLUMNS_V2" VALUES (20, 'which', 'id', 'bigint', 0), (20, NULL, 'city', 'string', 1),
  (20, NULL, 'spot', 'struct<x:double,y:double>', 2), (21, NULL, 'id', 'bigint', 0), (22, NULL, 'one', 'int', 0),
  (23, NULL, 'k', 'int', 0), (24, 'old', 'id', 'int', 0);
INSERT INTO "SERDES" VALUES
  (30, 'of orders', 'org.example.OrderSerde', 'for orders', 'org.example.Writer', 'org.example.Reader', 2),
  (31, NULL, 'org.example.ViewSerde', NULL, NULL, NULL, NULL), (32, NULL, 'org.example.IceSerde', NULL, NULL, NULL, NULL),
  (33, NULL, 'org.example.PlainSerde', NULL, NULL, NULL, NULL), (34, 'of a day', 'org.example.DaySerde', NULL, NULL, NULL, NULL),
  (35, NULL, 'org.example.DeltaSerde', NULL, NULL, NULL, NULL);
INSERT INTO "SERDE_PARAMS" VALUES (30, 'field.delim', E'\t'), (30, 'back', E'a\\b\\\\c'), (34, 'quote', '"it''s"'),
  (35, 'path', 'hdfs://lake/warehouse/sales.db/trips');
INSERT INTO "SDS" VALUES
  (40, 'org.example.In', false, 'hdfs://lake/warehouse/sales.db/orders', 8, 'org.example.Out', 30, 20, true),
  (41, NULL, false, NULL, -1, NULL, 31, 21, false),
  (42, NULL, false, 'hdfs://lake/warehouse/sales.db/ice', 0, NULL, 32, 22, false),
  (43, 'org.example.TextIn', true, 'hdfs://lake/other/far.db/plain', -1, 'org.example.TextOut', 33, 23, false),
  (44, 'org.example.DayIn', false, 'hdfs://lake/warehouse/sales.db/orders/ds=2026-01-01/hr=00', 8, 'org.example.DayOut', 34, 24, false),
  (45, 'org.example.In', false, 'hdfs://lake/warehouse/sales.db/orders/ds=2026-01-02/hr=a%3Db', 8, 'org.example.Out', 30, 20, false),
  (46, NULL, false, 'hdfs://lake/warehouse/sales.db/trips-__PLACEHOLDER__', -1, NULL, 35, 23, false);
INSERT INTO "SD_PARAMS" VALUES (40, 'sd-key', 'sd-value');
INSERT INTO "BUCKETING_COLS" VALUES (40, 'id', 0);
INSERT INTO "SORT_COLS" VALUES (40, 'city', 1, 0);
INSERT INTO "SKEWED_STRING_LIST" VALUES (50), (51);
INSERT INTO "SKEWED_STRING_LIST_VALUES" VALUES (50, 'Berlin', 0), (51, 'Paris', 0);
INSERT INTO "SKEWED_COL_NAMES" VALUES (40, 'city', 0);
INSERT INTO "SKEWED_VALUES" VALUES (40, 50, 0), (40, 51, 1);
INSERT INTO "SKEWED_COL_VALUE_LOC_MAP" VALUES (40, 50, 'hdfs://lake/warehouse/sales.db/orders/city=Berlin');
INSERT INTO "TBLS" VALUES
  (60, 1700000010, 10, 0, 'ann', 'USER', 5, 40, 'orders', 'EXTERNAL_TABLE', NULL, NULL, false),
  (61, 1700000011, 10, 0, 'ann', 'USER', 0, 41, 'seen', 'VIRTUAL_VIEW', 'SELECT `id` FROM `sales`.`orders`', E'select id\nfrom orders', false),
  (62, 1700000012, 10, 0, 'ann', 'USER', 0, 42, 'ice', 'EXTERNAL_TABLE', NULL, NULL, false),
  (63, 1700000013, 11, 1700000099, 'bob', 'USER', 0, 43, 'plain', 'MANAGED_TABLE', NULL, NULL, true),
  (64, 1700000014, 10, 0, 'ann', 'USER', 0, 46, 'trips', 'EXTERNAL_TABLE', NULL, NULL, false);
INSERT INTO "TABLE_PARAMS" VALUES (60, 'EXTERNAL', 'TRUE'), (60, 'comment', 'zürich ☃'), (60, 'numFiles', '7'),
  (60, 'spark.sql.statistics.totalSize', '70'), (62, 'table_type', 'ICEBERG'),
  (62, 'metadata_location', 'hdfs://lake/warehouse/sales.db/ice/metadata/00001-a.metadata.json'),
  (62, 'current-snapshot-id', '4242'), (62, 'current-snapshot-summary', '{"added-records":"1"}'), (62, 'uuid', 'u-1'),
  (64, 'spark.sql.sources.provider', 'delta');
INSERT INTO "PARTITION_KEYS" VALUES (60, 'the day', 'ds', 'string', 0), (60, NULL, 'hr', 'string', 1);
INSERT INTO "PARTITIONS" VALUES (70, 1700000020, 0, 'ds=2026-01-01/hr=00', 44, 60),
  (71, 1700000021, 1700000098, 'ds=2026-01-02/hr=a%3Db', 45, 60);
INSERT INTO "PARTITION_KEY_VALS" VALUES (70, '2026-01-01', 0), (70, '00', 1), (71, '2026-01-02', 0), (71, 'a=b', 1);
INSERT INTO "PARTITION_PARAMS" VALUES (70, 'why', 'because'), (70, 'numRows', '1000');
INSERT INTO "PART_PRIVS" VALUES (1, 1700000030, 0, 'ann', 'USER', 70, 'eve', 'USER', 'SELECT', 'SQL');
INSERT INTO "PART_COL_PRIVS" VALUES (1, 'city', 1700000031, 0, 'ann', 'USER', 70, 'finn', 'USER', 'UPDATE', 'SQL');
INSERT INTO "TBL_PRIVS" VALUES (1, 1700000032, 1, 'ann', 'USER', 'gus', 'USER', 'INSERT', 60, 'SQL');
INSERT INTO "TBL_COL_PRIVS" VALUES (1, 'id', 1700000033, 0, 'ann', 'USER', 'hal', 'USER', 'DELETE', 60, 'SQL');
INSERT INTO "TAB_COL_STATS" ("CS_ID", "CAT_NAME", "DB_NAME", "TABLE_NAME", "COLUMN_NAME", "COLUMN_TYPE", "TBL_ID", "BIG_DECIMAL_LOW_VALUE",
  "NUM_NULLS", "LAST_ANALYZED", "DOUBLE_LOW_VALUE", "BIT_VECTOR")
  VALUES (1, 'hive', 'sales', 'orders', 'city', 'string', 60, '1.5', 3, 1700000034, 0.1, '\x00ff');
INSERT INTO "PART_COL_STATS" ("CS_ID", "CAT_NAME", "DB_NAME", "TABLE_NAME", "PARTITION_NAME", "COLUMN_NAME", "COLUMN_TYPE", "PART_ID",
  "BIG_DECIMAL_HIGH_VALUE", "NUM_NULLS", "LAST_ANALYZED")
  VALUES (1, 'hive', 'sales', 'orders', 'ds=2026-01-01/hr=00', 'city', 'string', 70, '9.25', 4, 1700000035);
-- A primary key, and a foreign key to it whose column is a partition key.
INSERT INTO "KEY_CONSTRAINTS" ("CHILD_CD_ID", "CHILD_INTEGER_IDX", "CHILD_TBL_ID", "PARENT_CD_ID", "PARENT_INTEGER_IDX", "PARENT_TBL_ID",
  "POSITION", "CONSTRAINT_NAME", "CONSTRAINT_TYPE", "UPDATE_RULE", "DELETE_RULE", "ENABLE_VALIDATE_RELY", "DEFAULT_VALUE") VALUES
  (NULL, NULL, NULL, 23, 0, 63, 1, 'pk_plain', 0, NULL, NULL, 4, NULL),
  (NULL, 0, 60, 23, 0, 63, 1, 'fk_orders', 1, 2, 3, 4, NULL),
  (NULL, NULL, NULL, 20, 1, 60, 1, 'default_city', 4, NULL, NULL, 4, '''Rome''');
INSERT INTO "MV_CREATION_METADATA" VALUES (1, 'other', 'far', 'plain', 'sales.orders:1:9', 1700000036);
INSERT INTO "MV_TABLES_USED" VALUES (1, 60);
