"""The lakehouse kit's control side: artifacts, local nodes, phases and the report."""
