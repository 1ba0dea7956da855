"""One ordered timeline of the commits of all tables, in a database of the kit's PostgreSQL."""
