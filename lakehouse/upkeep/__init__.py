"""Upkeep of tables by policies: compaction, expiry, orphan removal and statistics, with PySpark."""
