"""Hosts over SSH: commands with deadlines, probes, and what they print."""
