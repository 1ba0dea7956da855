"""A cluster as a page for a browser: what a status says, and what is in HDFS."""
