"""Where a person finds what runs: the last lines of `make compose-up`."""

from __future__ import annotations

from lakehouse.compose import services
from lakehouse.compose.dotenv import Settings

# What has an address that a person or a program types, by the variable of its port.
KNOWN = {
    "SPARK_CONNECT_PORT": ("Spark Connect", "sc://{}"),
    "SPARK_MASTER_HTTP_PORT": ("Spark's jobs", "http://{}"),
    "TRINO_HTTP_PORT": ("Trino", "http://{}"),
    "FLINK_REST_PORT": ("Flink", "http://{}"),
    "FLINK_SQL_GATEWAY_PORT": ("Flink's SQL gateway", "http://{}"),
    "METASTORE_PORT": ("Hive Metastore", "thrift://{}"),
    "CATALOG_PAST_PORT": ("Metastore as it was", "thrift://{}"),
    "NAMENODE_HTTP_PORT": ("HDFS", "http://{}"),
}


def of(settings: Settings) -> list[str]:
    """Return a line for each address of the services that the profiles choose."""
    chosen = services.chosen(settings.profiles)
    ports = {variable for service in chosen for variable in service.ports}
    lines = [
        f"{name:<20} {form.format(f'{settings.published}:{settings.ports[variable]}')}"
        for variable, (name, form) in KNOWN.items()
        if variable in ports
    ]
    if any(service.name == "client" for service in chosen):
        lines.append(f"{'a place to work':<20} docker exec -it {settings.project}-client-1 bash")
    return lines
