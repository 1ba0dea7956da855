"""`lakehouse sql`: statements on an engine, through its own client on a host of the cluster."""
