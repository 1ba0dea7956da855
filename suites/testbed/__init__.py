"""The testbed: a running cluster as tests see it, its services, sessions of its engines, tables and proof."""
