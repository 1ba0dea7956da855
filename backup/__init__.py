"""Backups of a lakehouse: what runs on its hosts, with the standard library alone.

One host, the repository's, makes them all: it asks PostgreSQL's host by SSH and HDFS by HTTP, and keeps the
copies.
"""
