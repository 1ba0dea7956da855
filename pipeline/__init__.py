"""Data for the lakehouse: PySpark jobs that load real and sample tables into Iceberg and Delta."""
