-- Managed by the lakehouse kit: a change made here is lost at the next run.
CREATE CATALOG `hive` WITH (
  'hadoop-conf-dir' = '/etc/hadoop',
  'hive-conf-dir' = '/etc/flink/hive',
  'type' = 'hive'
);
CREATE CATALOG `iceberg` WITH (
  'cache-enabled' = 'false',
  'catalog-type' = 'hive',
  'hadoop-conf-dir' = '/etc/hadoop',
  'type' = 'iceberg',
  'unique-table-location' = 'true',
  'uri' = 'thrift://metastore:9083',
  'warehouse' = 'hdfs://lakehouse/lakehouse/iceberg'
);
USE CATALOG `iceberg`;
SET 'execution.runtime-mode' = 'batch';
SET 'sql-client.execution.result-mode' = 'tableau';
