"""What tables need of their readers, judged by their metadata: Iceberg, Delta and Hive."""
