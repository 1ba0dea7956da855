"""The smoke suite: what a user of the lakehouse relies on, asked of a cluster that runs."""
