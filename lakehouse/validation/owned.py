"""Keys of files whose value follows from a variable of the kit: another value in one file contradicts it."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from lakehouse.model.inventory import Host
from lakehouse.validation.finding import Finding

_NAMENODE_PORTS = "lakehouse_ports.namenode_rpc and namenode_http"
_HDFS = {
    "fs.defaultFS": "lakehouse_nameservice",
    # Those of other nameservices are yours.
    "dfs.namenode.rpc-address": _NAMENODE_PORTS,
    "dfs.namenode.rpc-address.{nameservice}.*": _NAMENODE_PORTS,
    "dfs.namenode.http-address": _NAMENODE_PORTS,
    "dfs.namenode.http-address.{nameservice}.*": _NAMENODE_PORTS,
    "dfs.namenode.name.dir": "lakehouse_namenode_dirs",
    "dfs.datanode.data.dir": "lakehouse_datanode_dirs",
    "dfs.datanode.address": "lakehouse_ports.datanode_data",
    "dfs.datanode.http.address": "lakehouse_ports.datanode_http",
    "dfs.datanode.ipc.address": "lakehouse_ports.datanode_ipc",
}
# By the dict, then by the key or its pattern: the variables that every file follows.
OWNED: Mapping[str, Mapping[str, str]] = {
    "hdfs_core_site": _HDFS,
    "hdfs_site": _HDFS,
    "hdfs_namenode_hdfs_site": _HDFS,
    "hdfs_datanode_hdfs_site": _HDFS,
    "hive_metastore_hive_site": {
        **_HDFS,
        "javax.jdo.option.ConnectionURL": "lakehouse_database.name and the group postgresql",
        "javax.jdo.option.ConnectionUserName": "lakehouse_database.user",
        "hive.metastore.uris": "lakehouse_ports.metastore and the group metastore",
        "metastore.thrift.uris": "lakehouse_ports.metastore and the group metastore",
        "hive.metastore.port": "lakehouse_ports.metastore",
        "metastore.thrift.port": "lakehouse_ports.metastore",
    },
    "trino_config": {
        "coordinator": "the group trino_coordinator",
        "discovery.uri": "the group trino_coordinator",
        "http-server.http.port": "lakehouse_ports.trino_http",
    },
}


def contradictions(host: Host) -> list[Finding]:
    """Find keys that other files and hosts repeat: services would lose each other, or their data."""
    nameservice = host.variables.get("lakehouse_nameservice")
    return [
        Finding(
            "settings.owned",
            host.name,
            f"{variable} has {key}, which follows from {source}",
            f"remove it, and change {source}: other files say the same",
            "no value of its own",
        )
        for variable, owned in OWNED.items()
        if isinstance(settings := host.variables.get(variable), Mapping)
        for key in map(str, settings)
        for pattern, source in owned.items()
        if fnmatchcase(key, pattern.format(nameservice=nameservice))
    ]
