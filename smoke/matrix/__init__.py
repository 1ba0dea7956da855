"""The matrix: every engine, every format, every operation."""
