"""Suites that prove engines on a running lakehouse, beside the smoke suite."""
