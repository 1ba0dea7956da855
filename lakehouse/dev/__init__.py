"""For those who change the kit: generated pages, known keys, measured times."""
