"""The census: metadata units of all tables, in an Iceberg table. Standard library and PySpark alone."""
