"""Where a person finds what runs: the last lines of `make compose-up`."""

from __future__ import annotations

from lakehouse.local.compose import dotenv, services
from lakehouse.local.compose.dotenv import Settings
from lakehouse.model import endpoints

# Listeners with a URI that a person or a program types.
NAMES = {
    "spark_connect": "Spark Connect",
    "spark_master_http": "Spark's jobs",
    "trino_http": "Trino",
    "flink_rest": "Flink",
    "flink_sql_gateway": "Flink's SQL gateway",
    "metastore": "Hive Metastore",
    "catalog_past": "Metastore as it was",
    "namenode_http": "HDFS",
}


def of(settings: Settings) -> list[str]:
    """Return a line for each address of the services that the profiles choose."""
    chosen = services.chosen(settings.profiles)
    ports = {variable for service in chosen for variable in service.ports}
    lines = [
        f"{name:<20} {endpoints.uri(listener, settings.published, settings.port(listener))}"
        for listener, name in NAMES.items()
        if dotenv.port_variable(listener) in ports
    ]
    if any(service.name == "client" for service in chosen):
        lines.append(f"{'a place to work':<20} docker exec -it {settings.project}-client-1 bash")
    return lines
