"""The cluster's own history: what runs on the host of the metastore's database, beside what commits."""
