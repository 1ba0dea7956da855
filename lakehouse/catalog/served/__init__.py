"""A read-only metastore of a commit, with Hive's Thrift interface."""
