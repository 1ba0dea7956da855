"""With equal knobs, a node and a container that play the same host have equal files.

The nodes are those of inventory/local, one for each host of inventory/compose and with the sizes of that one.
An address of a node is a name for a container; whatever else differs is declared here, with its reason.
"""

from __future__ import annotations

import difflib
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any

import pytest
import yaml

from tests.render import golden_files, rendering

Files = dict[str, str]
COMPOSE = rendering.REPOSITORY / rendering.INVENTORIES["compose"]
ADDRESS = "172.28.0.{}"

# What stands with the sizes of inventory/compose and is no size: a node keeps its own.
OF_CONTAINERS: dict[str, tuple[str, ...]] = {
    "postgresql_listen_addresses": (),
    "postgresql_clients": (),
    "postgresql_federation_clients": (),
    "postgresql_tls": (),
    "catalog_past_address": (),
    "trino_node": ("node.bind-ip",),
    "flink_config": (
        "jobmanager.bind-host",
        "rest.bind-address",
        "taskmanager.bind-host",
        "sql-gateway.endpoint.rest.address",
        "sql-gateway.endpoint.rest.bind-address",
    ),
    "hdfs_namenode_hdfs_site": ("dfs.namenode.datanode.registration.ip-hostname-check",),
}

# What inventory/local says of its JVMs, and inventory/compose leaves as these roles ship it.
AS_SHIPPED = {"spark": "spark_java_options", "trino": "trino_java_options"}


@dataclass(frozen=True)
class Different:
    """A line of a node that is another for a container; an empty one is not there."""

    path: str
    node: str
    container: str
    reason: str


ALL_ADDRESSES = "the address of a container is known once it runs; only published ports can be reached"
GATEWAY = "the gateway is a container of its own, beside the JobManager's"
SAMENET = "the address of a container is known once it runs; its network is this project's alone"
CHECK = "a container comes back with another address, which the NameNode would refuse"
LIST = "who may be a DataNode is listed by address, and that of a container is known once it runs"
BACKUP = "containers have no backups"
TIMELINE = "no timer collects commits in containers"
IDENT = "Debian's package names the file; a volume that was made before it names none"
CERTIFICATE = "a container's PostgreSQL has no certificate"
LOCAL = "127.0.0.1/32 scram-sha-256"
DESIGN = (
    *(
        Different("*/flink/*config.yaml", f'{key}: "HOST"', f'{key}: "0.0.0.0"', ALL_ADDRESSES)
        for key in (
            "jobmanager.bind-host",
            "rest.bind-address",
            "taskmanager.bind-host",
            "sql-gateway.endpoint.rest.bind-address",
        )
    ),
    Different(
        "*/flink/*config.yaml",
        'sql-gateway.endpoint.rest.address: "HOST"',
        'sql-gateway.endpoint.rest.address: "flink-sql-gateway"',
        GATEWAY,
    ),
    Different("trino/etc/trino/node.properties", "node.bind-ip=HOST", "node.bind-ip=0.0.0.0", ALL_ADDRESSES),
    Different(
        "postgres/etc/lakehouse-catalog/settings.json",
        '  "past_address": "HOST",',
        '  "past_address": "0.0.0.0",',
        ALL_ADDRESSES,
    ),
    Different(
        "*/conf.d/lakehouse.conf",
        "listen_addresses = '127.0.0.1,HOST'",
        "listen_addresses = '*'",
        ALL_ADDRESSES,
    ),
    Different(
        "*/pg_hba.conf",
        "hostssl metastore hive metastore/32 scram-sha-256",
        "host metastore hive samenet scram-sha-256",
        SAMENET,
    ),
    Different(
        "*/pg_hba.conf",
        "hostssl federation federation_reader trino/32 scram-sha-256",
        "host federation federation_reader samenet scram-sha-256",
        SAMENET,
    ),
    *(
        Different("*/pg_hba.conf", f"hostssl {login} {LOCAL}", f"host {login} {LOCAL}", CERTIFICATE)
        for login in ("metastore hive", "federation federation_reader")
    ),
    Different(
        "*/conf.d/lakehouse.conf",
        "",
        "ident_file = '/etc/postgresql/17/main/pg_ident.conf'",
        IDENT,
    ),
    *(
        Different("namenode/etc/hadoop/namenode/hdfs-site.xml", "", line, CHECK)
        for line in (
            "  <property>",
            "    <name>dfs.namenode.datanode.registration.ip-hostname-check</name>",
            "    <value>false</value>",
            "  </property>",
        )
    ),
    *(
        Different("namenode/etc/hadoop/namenode/hdfs-site.xml", line, "", LIST)
        for line in (
            "  <property>",
            "    <name>dfs.hosts</name>",
            "    <value>/etc/hadoop/namenode/datanodes.json</value>",
            "    <name>dfs.namenode.hosts.provider.classname</name>",
            "    <value>org.apache.hadoop.hdfs.server.blockmanagement.CombinedHostFileManager</value>",
            "  </property>",
        )
    ),
)
DESIGN += (
    Different(
        "*/pg_hba.conf", "local lakehouse_timeline lakehouse_timeline peer map=lakehouse", "", TIMELINE
    ),
    Different("*/pg_ident.conf", "lakehouse hive lakehouse_timeline", "", TIMELINE),
)
DESIGN += tuple(
    Different("*/conf.d/lakehouse.conf", line, "", BACKUP)
    for line in (
        "archive_command = 'pgbackrest --stanza=lakehouse archive-push %p'",
        "archive_mode = 'true'",
        "archive_timeout = '300s'",
    )
)
# What only a container is told: what it is asked, and the steps that Ansible takes on a node.
OF_CONTAINERS_ALONE = "*/etc/lakehouse/service.json"
# What only a node has: the programs of a backup, of the pipeline and of the timeline, and schematool, which
# wants systemd for its secret.
OF_NODES_ALONE = (
    "*lakehouse-backup*",
    "*lakehouse-pipeline*",
    "*lakehouse-timeline*",
    "*/sshd_config.d/lakehouse.conf",
    "*/usr/local/lib/lakehouse/*",
    "*/usr/local/bin/schematool",
)

# Nodes alone have an agent in the metastore's JVM: the memory limits of containers leave no room for it.
AGENT = re.compile(r'\s-javaagent:[^\s"]+')


def knobs() -> dict[str, Any]:
    """The sizes of inventory/compose without what makes it containers, and its names."""
    sizes: dict[str, Any] = {}
    for name in ("sizes", "spark"):
        sizes |= yaml.safe_load((COMPOSE / "group_vars" / "all" / f"{name}.yml").read_text("utf-8"))
    for variable, keys in OF_CONTAINERS.items():
        value = sizes.pop(variable)
        kept = {key: value[key] for key in value if key not in keys} if keys else None
        assert not keys or set(keys) <= set(value), variable
        if kept:
            sizes[variable] = kept
    # Rendering without a host says it, for both.
    del sizes["java_architecture"]
    for role, variable in AS_SHIPPED.items():
        defaults = rendering.REPOSITORY / "roles" / role / "defaults" / "main.yml"
        sizes[variable] = yaml.safe_load(defaults.read_text("utf-8"))[variable]
    return sizes | {"lakehouse_cluster": "compose-lakehouse", "lakehouse_cluster_id": "CID-compose-lakehouse"}


@pytest.fixture(scope="module")
def addresses() -> dict[str, str]:
    """An address for each host of inventory/compose."""
    hosts = yaml.safe_load((COMPOSE / "hosts.yml").read_text("utf-8"))["all"]["hosts"]
    return {name: ADDRESS.format(100 + number) for number, name in enumerate(hosts)}


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory, addresses: dict[str, str]) -> Files:
    """The files of nodes that are as the containers, with the containers' names for addresses."""
    root = tmp_path_factory.mktemp("nodes")
    copied = rendering.copy(rendering.INVENTORIES["local"], root / "copy")
    hosts = yaml.safe_load((COMPOSE / "hosts.yml").read_text("utf-8"))
    hosts["all"]["hosts"] = {name: {"ansible_host": address} for name, address in addresses.items()}
    (copied / "hosts.yml").write_text(yaml.safe_dump(hosts), encoding="utf-8")
    # Ansible reads this one last.
    last = copied / "group_vars" / "all" / "zz-knobs.yml"
    last.write_text(yaml.safe_dump(knobs()), encoding="utf-8")
    shutil.copytree(COMPOSE / "host_vars", copied / "host_vars", dirs_exist_ok=True)
    rendering.render(copied, root / "files", *rendering.NO_SECRETS)
    names = {address: name for name, address in addresses.items()}
    pattern = re.compile("|".join(rf"\b{re.escape(address)}\b" for address in names))
    return {
        path: AGENT.sub("", pattern.sub(lambda found: names[found[0]], text))
        for path, text in golden_files.read_tree(root / "files").items()
    }


def differences(nodes: Files, containers: Files) -> Iterator[tuple[str, str, str]]:
    """Yield path, sign and text of every line that one of the two has alone."""
    for path in sorted(nodes.keys() & containers.keys()):
        old, new = nodes[path].splitlines(), containers[path].splitlines()
        for line in difflib.ndiff(old, new):
            if line[:2] in ("- ", "+ "):
                yield path, line[0], line[2:]


def declared(path: str, sign: str, line: str) -> list[Different]:
    """Return what says that the line differs."""
    host = path.split("/", maxsplit=1)[0]
    return [
        entry
        for entry in DESIGN
        if fnmatch(path, entry.path)
        and line == (entry.node.replace("HOST", host) if sign == "-" else entry.container)
    ]


def test_nodes_and_containers_have_the_same_files(nodes: Files, rendered: dict[str, Files]) -> None:
    containers = rendered["compose"]
    of_nodes = {path for path in nodes if any(fnmatch(path, pattern) for pattern in OF_NODES_ALONE)}
    assert containers.keys() - nodes.keys() == {
        path for path in containers if fnmatch(path, OF_CONTAINERS_ALONE)
    }
    assert nodes.keys() - containers.keys() == of_nodes
    assert len(nodes) > 150


def test_with_equal_knobs_the_files_are_equal(nodes: Files, rendered: dict[str, Files]) -> None:
    found = list(differences(nodes, rendered["compose"]))
    assert not [line for line in found if not declared(*line)]


def test_every_declared_difference_is_one(nodes: Files, rendered: dict[str, Files]) -> None:
    found = list(differences(nodes, rendered["compose"]))
    seen = [entry for line in found for entry in declared(*line)]
    assert not [entry for entry in DESIGN if entry not in seen]
    assert all(entry.reason for entry in DESIGN)
