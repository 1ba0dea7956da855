"""Two states of a catalog become one, by what each has changed since a state that both come from. Pure."""
