"""Three-way merge of two states of a catalog and their common base. Pure."""
