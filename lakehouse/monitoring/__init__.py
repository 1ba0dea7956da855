"""What people see of the metrics that Prometheus collects: panels, and the metrics that expressions read."""
