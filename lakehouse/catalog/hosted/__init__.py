"""The programs of the cluster's own history, on the host of the metastore's database."""
