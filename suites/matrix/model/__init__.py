"""A model of tables, and sequences of operations of which it predicts what each engine reads."""
