"""The settings of clients: a small JSON file, on a node or on the control machine."""

from __future__ import annotations

import getpass
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lakehouse_clients.errors import ClientError

VARIABLE = "LAKEHOUSE_CLIENT"
USER_VARIABLE = "HADOOP_USER_NAME"
ENDPOINTS_VARIABLE = "LAKEHOUSE_ENDPOINTS"
ENDPOINTS = Path("build/endpoints.json")


@dataclass(frozen=True)
class Settings:
    """One cluster for one user.

    `metastore` is a `thrift://` URI, `warehouse` the `hdfs://` URI below which the tables lie.
    `hadoop_conf_dir` holds the core-site.xml and hdfs-site.xml that name the NameNode; where there is no such
    folder, `hdfs` names it as properties.
    """

    metastore: str
    warehouse: str
    user: str
    group: str
    hadoop_conf_dir: str | None = None
    hdfs: Mapping[str, str] = field(default_factory=dict)


def load(path: str | os.PathLike[str] | None = None, user: str | None = None) -> Settings:
    """Read the settings: `path`, else $LAKEHOUSE_CLIENT, else build/endpoints.json of the control machine.

    The user is the argument, else $HADOOP_USER_NAME, else the file's, else the user of this process. Raises
    ClientError if there is no such file or a key is missing.
    """
    file = Path(path or os.environ.get(VARIABLE) or os.environ.get(ENDPOINTS_VARIABLE) or ENDPOINTS)
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ClientError(
            f"{file}: no such file",
            f"on a client node run lakehouse-python; outside of the repository set {ENDPOINTS_VARIABLE} "
            f"to its {ENDPOINTS}, which make lakehouse writes",
        ) from None
    except (OSError, ValueError) as error:
        raise ClientError(f"{file}: cannot be read: {error}", f"less {file}") from None
    user_name = user or os.environ.get(USER_VARIABLE)
    try:
        return from_endpoints(data, user_name) if "namenode" in data else from_node(data, user_name)
    except (KeyError, TypeError, AttributeError) as error:
        raise ClientError(f"{file}: lacks {error}", "let the playbook write it again") from None


def from_node(data: Mapping[str, Any], user: str | None) -> Settings:
    """Return the settings that the role python_clients wrote on a node."""
    return Settings(
        metastore=data["metastore"],
        warehouse=data["warehouse"],
        user=user or data.get("user") or getpass.getuser(),
        group=data["group"],
        hadoop_conf_dir=data.get("hadoop_conf_dir"),
        hdfs=data.get("hdfs", {}),
    )


def from_endpoints(data: Mapping[str, Any], user: str | None) -> Settings:
    """Return the settings of a machine outside of the cluster, where the nodes' names mean nothing.

    The NameNode is named by its address, and DataNodes are reached by theirs, which is the Hadoop client's
    default; those of docker compose by their names, because Docker assigns their addresses. The cluster need
    not have an account for the user of this process, so that the default user is Spark's.
    """
    name, machine = data["nameservice"], data["namenode"]["host"]
    return Settings(
        metastore=f"thrift://{data['metastore']['address']}:{data['metastore']['port']}",
        warehouse=data["warehouse"],
        user=user or data["users"]["spark"],
        group=data["group"],
        hdfs={
            "fs.defaultFS": f"hdfs://{name}",
            "dfs.nameservices": name,
            f"dfs.ha.namenodes.{name}": "nn1",
            f"dfs.namenode.rpc-address.{name}.nn1": (
                f"{data['hosts'][machine]['address']}:{data['namenode']['rpc_port']}"
            ),
            "dfs.client.use.datanode.hostname": "true" if data.get("compose_project") else "false",
            "dfs.replication": str(data["replication"]),
            "dfs.client.block.write.replace-datanode-on-failure.policy": "NEVER",
        },
    )
