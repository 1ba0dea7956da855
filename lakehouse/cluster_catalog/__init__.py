"""The history of the catalog: commits of what the metastore holds, and what changed between them."""
