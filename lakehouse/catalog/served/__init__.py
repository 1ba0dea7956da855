"""A commit as a metastore: what it answers to each call of Hive's Thrift interface."""
