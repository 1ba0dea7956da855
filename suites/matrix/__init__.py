"""The matrix: what every engine does with every table format, declared as data and executed cell by cell."""
