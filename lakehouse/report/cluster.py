"""The cluster as `endpoints.json` describes it: hosts, what they run, and the addresses to remember."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lakehouse.model import endpoints as catalogue
from lakehouse.report import record
from lakehouse.report.record import Record

FLINK = {"Flink": "rest", "Flink SQL": "sql_gateway", "Flink history": "history"}


@dataclass(frozen=True)
class Host:
    """A machine, its address and the inventory groups that say what runs on it."""

    name: str
    address: str
    groups: tuple[str, ...]


@dataclass(frozen=True)
class Address:
    """Where a service is reached: what a client is given, and its page or REST root if it has one."""

    service: str
    url: str
    http: str = ""


@dataclass(frozen=True)
class Cluster:
    """One inventory after its services have been placed."""

    name: str
    inventory: str
    nameservice: str
    warehouse: str
    replication: int
    hosts: tuple[Host, ...]
    addresses: tuple[Address, ...]


def read(path: Path) -> Cluster:
    """Read `endpoints.json`; LakehouseError names what is missing or wrong."""
    endpoints = record.load(path, "make lakehouse")
    return Cluster(
        name=endpoints.text("cluster"),
        inventory=endpoints.text("inventory"),
        nameservice=endpoints.text("nameservice"),
        warehouse=endpoints.text("warehouse"),
        replication=endpoints.count("replication"),
        hosts=tuple(_host(name, entry) for name, entry in endpoints["hosts"].items()),
        addresses=tuple(_addresses(endpoints)),
    )


def _host(name: str, entry: Record) -> Host:
    return Host(name, entry.text("address"), tuple(group.text() for group in entry["groups"].entries()))


def _addresses(endpoints: Record) -> Iterator[Address]:
    namenode, metastore, spark = endpoints["namenode"], endpoints["metastore"], endpoints["spark"]
    rpc = catalogue.uri("namenode_rpc", namenode.text("host"), namenode.count("rpc_port"))
    yield Address("NameNode", rpc, _optional(namenode, "http"))
    yield Address("Metastore", catalogue.uri("metastore", metastore.text("address"), metastore.count("port")))
    yield Address("Spark master", spark.text("master"), _optional(spark, "master_http"))
    if "history_http" in spark:
        yield Address("Spark history", spark.text("history_http"), spark.text("history_http"))
    if "flink" in endpoints:
        flink = endpoints["flink"]
        for service, key in FLINK.items():
            if key in flink:
                yield Address(service, flink.text(key), flink.text(key))
    known_sections = {"namenode", "metastore", "spark", "flink"}
    # Sections of further engines have a `url`, or at least `http`.
    for key, section in endpoints.items():
        if key not in known_sections and ("url" in section or "http" in section):
            http = _optional(section, "http")
            yield Address(key.replace("_", " ").title(), _optional(section, "url") or http, http)


def _optional(section: Record, key: str) -> str:
    return section.text(key) if key in section else ""
