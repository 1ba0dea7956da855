-- Managed by the lakehouse kit: a change made here is lost at the next run.
CREATE CATALOG `hive` WITH (
  'hadoop-conf-dir' = '/etc/proving/hadoop',
  'hive-conf-dir' = '/etc/proving/flink/hive',
  'type' = 'hive'
);
CREATE CATALOG `iceberg` WITH (
  'cache-enabled' = 'false',
  'catalog-type' = 'hive',
  'hadoop-conf-dir' = '/etc/proving/hadoop',
  'type' = 'iceberg',
  'unique-table-location' = 'true',
  'uri' = 'thrift://beta2:19083',
  'warehouse' = 'hdfs://proving/ground/iceberg'
);
USE CATALOG `iceberg`;
SET 'execution.runtime-mode' = 'batch';
SET 'sql-client.execution.result-mode' = 'tableau';
