"""Snapshots of nodes, taken right after a run of the kit."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakehouse import artifacts, verbs
from lakehouse.artifacts import releases
from lakehouse.dev.floor import imprint, probing
from lakehouse.dev.floor.machines import Machines
from lakehouse.model import endpoints, inventory
from lakehouse.model.inventory import Inventory
from plugins.module_utils.lakehouse.webhdfs import WebHdfs

LISTS = "cat /var/lib/dpkg/info/*.list"
# It exits with 1 where something is changed.
VERIFY = "dpkg --verify || true"
ASKED_FOR = "apt-mark showmanual"
STATE = r"""
systemctl list-units --plain --no-legend --state=active --type=service,timer | awk '{print "unit", $1}'
ss -Hltn | awk '{print "socket", $4}'
"""
PACK = "tar --create --absolute-names --no-recursion --numeric-owner --files-from=-"
# Data stays where it is.
ONLY_FOLDERS = r"xargs -rd '\n' -I @ find @ -maxdepth 0 -type d"
# Roles with what the server keeps of their passwords, and empty databases. The rest of a database's dump is
# restored by its owner: PostgreSQL rejects its superuser in that of the metastore.
DUMP = r"""
cd /
as() { runuser -u postgres -- "$@"; }
as pg_dumpall --port $port --roles-only | grep -v ' ROLE postgres'
own="select datname, pg_get_userbyid(datdba) from pg_database where datname !~ '^(postgres|template.)$'"
as psql --port $port -XAtF ' ' -c "$own" | while read -r name owner; do
  echo '\connect postgres postgres'
  as pg_dump --port $port --username $owner --create --schema-only --exclude-schema '*' "$name" </dev/null |
    sed "s/^\\\\connect .*/& $owner/"
done
"""


@dataclass(frozen=True)
class NodeSnapshot:
    """The files and packages of the kit on one node, and the state of the node.

    `packages` are the manually installed ones. `before` and `files` are archives of files, links and folders
    for data: those that must precede the packages, and the others; `texts` are the files' contents by path.
    `releases` has by folder (`/opt/hadoop/releases/<name>`) the archive that is unpacked there. `state` has a
    line for each active unit of `units` and each port of the kit with a listener; `places` are these ports as
    other machines reach them: name, address, number.
    """

    packages: frozenset[str]
    before: bytes
    files: bytes
    hosts: bytes
    texts: Mapping[str, str]
    releases: Mapping[str, Path]
    units: frozenset[str]
    state: frozenset[str]
    places: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True)
class Kit:
    """A cluster after a run of the kit: `folders` of HDFS, `answers` are probes with expected answers."""

    inventory: Inventory
    nodes: Mapping[str, NodeSnapshot]
    databases: bytes
    folders: tuple[Mapping[str, Any], ...]
    answers: tuple[probing.Probe, ...]


def ports(inventory: Inventory) -> dict[int, str]:
    """Return the names of the kit's ports by number."""
    return {int(number): name for name, number in inventory.hosts[0].variables["lakehouse_ports"].items()}


def hdfs(inventory: Inventory) -> WebHdfs:
    """Return a client of the NameNode, as its superuser."""
    users = inventory.hosts[0].variables["lakehouse_users"]
    return WebHdfs(endpoints.endpoint("namenode_http", inventory).uri, users["hdfs"])


def look(path: str) -> Kit:
    """Return the snapshot of a cluster that the kit has just converged; the cluster is unchanged."""
    source = inventory.load(path)
    machines = Machines(source)
    port = endpoints.endpoint("postgresql", source).port
    archives = _archives()
    with ThreadPoolExecutor() as pool:
        snapshots = pool.map(lambda node: _snapshot(source, machines, node, archives), machines.nodes)
        nodes = dict(zip(machines.nodes, snapshots, strict=True))
    return Kit(
        inventory=source,
        nodes=nodes,
        databases=machines.run(endpoints.active("postgresql", source).name, f"port={port}{DUMP}"),
        folders=tuple(_folders(hdfs(source), "/")),
        answers=tuple(_answers(source, nodes)),
    )


def asked_for(machines: Machines, node: str) -> frozenset[str]:
    """Return the packages that a node has because they were asked for."""
    return frozenset(machines.ask(node, ASKED_FOR).split())


def state(machines: Machines, node: str, units: Iterable[str], numbers: Iterable[int]) -> frozenset[str]:
    """Return what is true of a node now, of these units and these ports."""
    return imprint.state(machines.ask(node, STATE), frozenset(units), frozenset(numbers))


def _snapshot(
    inventory: Inventory, machines: Machines, node: str, archives: Mapping[str, Path]
) -> NodeSnapshot:
    machine = next(host for host in inventory.hosts if host.name == node)
    install_dir, config_dir = (
        str(machine.variables[f"lakehouse_{name}_dir"]) for name in ("install", "config")
    )
    of_packages = imprint.packaged(machines.ask(node, LISTS), machines.ask(node, VERIFY))
    changed = [path for path in machines.changed(node) if path not in of_packages]
    kept_paths = imprint.kept(changed, install_dir, config_dir)
    texts = dict(_texts(machines.run(node, PACK, _lines(kept_paths))))
    rooms = imprint.rooms((path for path in changed if path not in kept_paths), "\n".join(texts.values()))
    paths = [*kept_paths, *machines.run(node, ONLY_FOLDERS, _lines(rooms)).decode().splitlines()]
    before = [path for path in kept_paths if imprint.precedes_packages(path)]
    units, names = frozenset(imprint.units(kept_paths)), ports(inventory)
    current_state = state(machines, node, units, names)
    installed = imprint.releases(changed, install_dir, archives)
    return NodeSnapshot(
        packages=asked_for(machines, node),
        before=machines.run(node, PACK, _lines(before)),
        files=machines.run(node, PACK, _lines(path for path in paths if path not in before)),
        hosts=machines.run(node, "cat /etc/hosts"),
        texts=texts,
        releases={f"{root}/releases/{name}": archives[name] for root, name in installed.items()},
        units=units,
        state=current_state,
        places=tuple(
            (names[port], where, port) for where, port in imprint.sockets(current_state, machine.address)
        ),
    )


def _archives() -> dict[str, Path]:
    """Return the archives of the bill of materials by the names that their releases have on a node."""
    cache = artifacts.cache_dir()
    parts = verbs.bill().components.values()
    return {releases.release_id(part): releases.archive(part, cache) for part in parts}


def _lines(paths: Iterable[str]) -> bytes:
    return "".join(f"{path}\n" for path in paths).encode()


def _texts(archive: bytes) -> Iterator[tuple[str, str]]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            if member.isreg() and (stream := tar.extractfile(member)):
                yield member.name, stream.read().decode(errors="replace")


def _folders(server: WebHdfs, path: str) -> Iterator[dict[str, Any]]:
    """Yield every folder below a path, with its owner, mode and access control list, the upper ones first."""
    for child in server.call("GET", "LISTSTATUS", path)["FileStatuses"]["FileStatus"]:
        if child["type"] == "DIRECTORY":
            folder_path = f"{path.rstrip('/')}/{child['pathSuffix']}"
            acl = server.call("GET", "GETACLSTATUS", folder_path)["AclStatus"]["entries"]
            yield {
                "path": folder_path,
                "acl": acl,
                **{key: child[key] for key in ("owner", "group", "permission")},
            }
            yield from _folders(server, folder_path)


def _answers(inventory: Inventory, nodes: Mapping[str, NodeSnapshot]) -> Iterator[probing.Probe]:
    places = [place for snapshot in nodes.values() for place in snapshot.places]
    yield from map(probing.answered, probing.probes_of(places))
    engines = [port for name, _, port in places if name == "trino_http"]
    if engines:
        user = inventory.hosts[0].variables["lakehouse_users"]["trino"]
        yield probing.trino(endpoints.endpoint("trino_http", inventory).uri, user, len(engines))
