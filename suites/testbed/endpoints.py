"""Where the cluster is: `build/endpoints.json`, which Ansible writes from the inventory, as typed data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lakehouse.report import record
from lakehouse.report.record import Record

DEFAULT_PATH = Path("build/endpoints.json")
VARIABLE = "LAKEHOUSE_ENDPOINTS"


@dataclass(frozen=True)
class Host:
    """A machine: its inventory name, its address for clients and the groups that say what runs on it."""

    name: str
    address: str
    groups: frozenset[str]


@dataclass(frozen=True)
class Service:
    """A daemon, by the machine it runs on (an inventory name) and its port."""

    host: str
    address: str
    port: int


@dataclass(frozen=True)
class NameNode:
    """The NameNode: its machine, and its HTTP address for fsck, /jmx and WebHDFS."""

    host: str
    http: str


@dataclass(frozen=True)
class Spark:
    """The standalone cluster: its master, and where drivers run."""

    master: str
    home: str
    conf_dir: str
    client: str
    connect_host: str
    connect_url: str
    connect_unit: str


@dataclass(frozen=True)
class Trino:
    """The coordinator: its machine, and the HTTP address that clients use."""

    host: str
    http: str


@dataclass(frozen=True)
class Flink:
    """The session cluster: its JobManager's machine, and the HTTP addresses of its services."""

    host: str
    rest: str
    sql_gateway: str
    history: str | None


@dataclass(frozen=True, repr=False)
class Endpoints:
    """One cluster as a client sees it. `warehouse` is the URI of `root`, the HDFS folder of all tables.

    An engine that is not deployed is None. `project` is docker compose's, None where hosts are machines.
    """

    path: Path
    inventory: str
    project: str | None
    nameservice: str
    root: str
    warehouse: str
    replication: int
    group: str
    hosts: Mapping[str, Host]
    namenode: NameNode
    metastore: Service
    postgresql: Service
    database: str
    database_role: str
    spark: Spark
    trino: Trino | None
    flink: Flink | None
    units: Mapping[str, str]
    users: Mapping[str, str]
    readers: tuple[str, ...]

    def in_group(self, group: str) -> tuple[Host, ...]:
        """Machines of an inventory group, in the order of the inventory."""
        return tuple(host for host in self.hosts.values() if group in host.groups)

    @property
    def spare_datanode(self) -> Host:
        """The last DataNode's machine that is neither the NameNode's nor the client's, or the last of all."""
        busy = {self.namenode.host, self.spark.connect_host}
        return min(reversed(self.in_group("datanodes")), key=lambda host: host.name in busy)

    def name_of(self, address: str) -> str:
        """Inventory name of the machine with that `address:port`; the address itself if no machine has it."""
        bare = address.partition(":")[0]
        return next((host.name for host in self.hosts.values() if bare in (host.address, host.name)), address)

    def address_of(self, name: str) -> str:
        """Address of the machine of that inventory name; the name itself if there is none."""
        return self.hosts[name].address if name in self.hosts else name

    def uri(self, path: str) -> str:
        """URI of a path of HDFS."""
        return self.warehouse.removesuffix(self.root) + path

    @property
    def report(self) -> Path:
        """Folder of the report that these tests feed."""
        return self.path.parent / "report"


def load(path: Path) -> Endpoints:
    """Read the file; LakehouseError names what is missing or wrong, and the command that writes it."""
    data = record.load(path, "make lakehouse")
    hosts = {name: _host(name, entry) for name, entry in data["hosts"].items()}
    namenode, metastore, postgresql = data["namenode"], data["metastore"], data["postgresql"]
    return Endpoints(
        path=path,
        inventory=data.text("inventory"),
        project=data.text("compose_project") if "compose_project" in data else None,
        nameservice=data.text("nameservice"),
        root=data.text("root"),
        warehouse=data.text("warehouse"),
        replication=data.count("replication"),
        group=data.text("group"),
        hosts=hosts,
        namenode=NameNode(namenode.text("host"), namenode.text("http")),
        metastore=Service(metastore.text("host"), metastore.text("address"), metastore.count("port")),
        postgresql=Service(
            postgresql.text("host"), hosts[postgresql.text("host")].address, postgresql.count("port")
        ),
        database=postgresql.text("database"),
        database_role=postgresql.text("role"),
        spark=_spark(data["spark"], data["spark_connect"]),
        trino=_trino(data["trino"]) if "trino" in data else None,
        flink=_flink(data["flink"]) if "flink" in data else None,
        units={name: unit.text() for name, unit in data["units"].items()},
        users={name: user.text() for name, user in data["users"].items()},
        readers=tuple(reader.text() for reader in data["readers"].entries()) if "readers" in data else (),
    )


def _host(name: str, entry: Record) -> Host:
    return Host(name, entry.text("address"), frozenset(group.text() for group in entry["groups"].entries()))


def _trino(entry: Record) -> Trino:
    return Trino(host=entry.text("host"), http=entry.text("http"))


def _spark(spark: Record, connect: Record) -> Spark:
    return Spark(
        master=spark.text("master"),
        home=spark.text("home"),
        conf_dir=spark.text("conf_dir"),
        client=spark.text("client"),
        connect_host=connect.text("host"),
        connect_url=connect.text("url"),
        connect_unit=connect.text("unit"),
    )


def _flink(flink: Record) -> Flink:
    return Flink(
        host=flink.text("host"),
        rest=flink.text("rest"),
        sql_gateway=flink.text("sql_gateway"),
        history=flink.text("history") if "history" in flink else None,
    )
