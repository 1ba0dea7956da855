"""The lakehouse as its inventory and services.yml describe it: services, hosts, endpoints, readiness."""
