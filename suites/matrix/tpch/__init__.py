"""TPC-H: the 22 queries on every engine and format, against what DuckDB computes on the source files."""
