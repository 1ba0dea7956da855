"""The history of the catalog: what a Hive Metastore holds, as commits of a git repository."""
