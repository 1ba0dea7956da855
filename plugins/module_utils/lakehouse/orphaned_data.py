"""Data that this machine was installed with, and that the desired configuration no longer names.

A format or a schema looks at the new place, which is empty. Here the old place is read from what is
installed: a daemon's unit, the configuration that it names, and the running NameNode.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

from ansible.module_utils.lakehouse import credentials
from ansible.module_utils.lakehouse.environment_file import environment_of
from ansible.module_utils.lakehouse.findings import finding
from ansible.module_utils.lakehouse.hdfs_storage import inspect, read_version
from ansible.module_utils.lakehouse.metastore_schema import Database, uses
from ansible.module_utils.lakehouse.probes import fetch, lookup
from ansible.module_utils.lakehouse.refused import RefusedError

UNITS = Path("etc/systemd/system")
CLASS_PATH = re.compile(r"\s-cp (\S+)")
SECRETS = re.compile(r"^EnvironmentFile=(\S+)$", re.MULTILINE)
DIRECTORIES = {"hdfs_name": "dfs.namenode.name.dir", "hdfs_data": "dfs.datanode.data.dir"}
VARIABLES = {"hdfs_name": "lakehouse_namenode_dirs", "hdfs_data": "lakehouse_datanode_dirs"}
# Where a metastore of an older kit has its password: a variable of the unit's EnvironmentFile.
PASSWORD = "METASTORE_DATABASE_PASSWORD"  # noqa: S105 -- the name of a variable
URL = "javax.jdo.option.ConnectionURL"
NAMENODE = "/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo"


def check(
    root: Path, service: dict[str, Any], forsaken: Sequence[str], cluster_id: str = ""
) -> list[dict[str, str]]:
    """Find what a service's ``storage`` would leave behind; ``forsaken`` names places that are given up."""
    storage, unit = service["storage"], service.get("unit", "")
    if storage["kind"] == "metastore":
        return _catalog(root, unit, storage, forsaken)
    if storage["kind"] in DIRECTORIES:
        return _directories(root, unit, storage, forsaken, cluster_id)
    return []


def installed(root: Path, unit: str, file: str) -> dict[str, str]:
    """Return the properties of the first such file on the class path of an installed unit, if any."""
    match = CLASS_PATH.search(_text(root / UNITS / unit))
    for folder in match[1].split(":") if match else []:
        path = root / folder.lstrip("/") / file
        if path.is_file():
            properties = ET.parse(path).getroot().iter("property")  # noqa: S314 -- root's own file
            return {row.findtext("name", ""): row.findtext("value", "") for row in properties}
    return {}


def _directories(
    root: Path, unit: str, storage: dict[str, Any], forsaken: Sequence[str], cluster_id: str
) -> list[dict[str, str]]:
    kind, desired = storage["kind"], storage["paths"]
    name_dir = kind == "hdfs_name"
    properties = installed(root, unit, "hdfs-site.xml")
    places = [path.replace("file://", "") for path in properties.get(DIRECTORIES[kind], "").split(",")]
    if name_dir:
        places += running(properties)
    old = [path for path in dict.fromkeys(places) if path and path not in {*desired, *forsaken}]
    # An incomplete format is the only state without data: no unit has ever started on it.
    formatted = [path for path in old if inspect(_below(root, path), name_dir=name_dir).state == "formatted"]
    if name_dir and _is_copied(root, formatted, desired, cluster_id):
        return []
    subject = f"{unit.removesuffix('.service')}, and {VARIABLES[kind]} names"
    return [_left("hdfs.moved", subject, path, ", ".join(desired)) for path in formatted]


def running(properties: dict[str, str]) -> list[str]:
    """The directories of the NameNode that runs, whatever its file says by now; none if none answers."""
    for name, address in properties.items():
        if name.startswith("dfs.namenode.http-address"):
            try:
                answer = json.loads(fetch(f"http://{address}{NAMENODE}"))
                return list(json.loads(lookup(answer, "beans.0.NameDirStatuses"))["active"])
            except (OSError, ValueError, LookupError, TypeError):
                return []
    return []


def _is_copied(root: Path, old_directories: list[str], desired: list[str], cluster_id: str) -> bool:
    """Whether a new directory of the NameNode holds the same file system: each is a full copy."""
    directories = [inspect(_below(root, path), name_dir=True) for path in desired]
    ready = [
        storage for storage in directories if (storage.state, storage.cluster_id) == ("formatted", cluster_id)
    ]
    pools = {_pool(storage.path) for storage in ready}
    return bool(pools) and pools == {_pool(_below(root, path)) for path in old_directories}


def _pool(directory: str) -> str | None:
    return read_version(Path(directory) / "current" / "VERSION").get("blockpoolID")


def _catalog(root: Path, unit: str, storage: dict[str, Any], forsaken: Sequence[str]) -> list[dict[str, str]]:
    properties = installed(root, unit, "hive-site.xml")
    if URL not in properties:
        return []
    url = urlsplit(properties[URL].removeprefix("jdbc:"))
    host, old = str(url.hostname), url.path.lstrip("/")
    is_same_server = host == storage["host"] or _address(host) == storage["address"]
    place = f"{host}/{old}"
    if place in forsaken or (is_same_server and old == storage["database"]):
        return []
    try:
        database = Database(
            {
                "host": host,
                "port": url.port or 5432,
                "database": old,
                "user": properties["javax.jdo.option.ConnectionUserName"],
                "password": _password(root, unit, properties),
            }
        )
        used = uses(database)
    except (RefusedError, OSError, KeyError) as error:
        used = [f"it cannot be looked at: {' '.join(str(error).split())}"]
    new = f"{storage['host']}/{storage['database']}"
    subject = f"{unit.removesuffix('.service')} ({'; '.join(used)}), and lakehouse_database names"
    return [_left("metastore.moved", subject, place, new)] if used else []


def _password(root: Path, unit: str, properties: dict[str, str]) -> str:
    """Return the password of an installed metastore; empty where no file has one."""
    if place := properties.get(credentials.PROVIDER):
        return credentials.password_in(_below(root, place.removeprefix(credentials.SCHEME))) or ""
    secrets = SECRETS.search(_text(root / UNITS / unit))
    return environment_of(str(_below(root, secrets[1])))[PASSWORD] if secrets else ""


def _left(check: str, subject: str, old: str, new: str) -> dict[str, str]:
    return finding(
        check,
        f"{old} holds the data of {subject} {new} instead",
        f"nothing was touched; move the data from {old} to {new} while the service is stopped, or name {old}"
        f" again, or give it up for ever with lakehouse_forsaken: ['{old}']",
    )


def _address(host: str) -> str:
    try:
        return socket.gethostbyname(host)
    except OSError:
        return ""


def _below(root: Path, path: str) -> str:
    return str(root / path.lstrip("/"))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""
