"""What the kit has put on nodes, taken from them right after its run."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakehouse import artifacts, endpoints, inventory, verbs
from lakehouse.artifacts import releases
from lakehouse.dev.floor import imprint, probing
from lakehouse.dev.floor.machines import Machines
from lakehouse.inventory import Inventory
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
class Taken:
    """What the kit has put on one node, and what is true of the node then.

    `packages` are those that were asked for. `before` and `files` are archives of files, links and
    folders for data: what packages have to find, and the rest; `texts` are those of files by path. `releases`
    has by folder (`/opt/hadoop/releases/<name>`) the archive that is unpacked there. `state` has a line for
    each unit of `units` that is active and each port of the kit that is taken; `places` are these ports as
    others find them: name, address, number.
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
    """A cluster as the kit has made it: `folders` of HDFS, `answers` as probes with what was answered."""

    inventory: Inventory
    nodes: Mapping[str, Taken]
    databases: bytes
    folders: tuple[Mapping[str, Any], ...]
    answers: tuple[probing.Probe, ...]


def ports(found: Inventory) -> dict[int, str]:
    """Return the names of the kit's ports by number."""
    return {int(number): name for name, number in found.hosts[0].variables["lakehouse_ports"].items()}


def hdfs(found: Inventory) -> WebHdfs:
    """Return the NameNode, as its superuser."""
    users = found.hosts[0].variables["lakehouse_users"]
    return WebHdfs(endpoints.endpoint("namenode_http", found).uri, users["hdfs"])


def look(path: str) -> Kit:
    """Take from a cluster that the kit has just converged all that the floor needs; nothing is changed."""
    found = inventory.load(path)
    machines = Machines(found)
    port = endpoints.endpoint("postgresql", found).port
    archives = _archives()
    with ThreadPoolExecutor() as pool:
        taken = pool.map(lambda node: _taken(found, machines, node, archives), machines.nodes)
        nodes = dict(zip(machines.nodes, taken, strict=True))
    return Kit(
        inventory=found,
        nodes=nodes,
        databases=machines.run(endpoints.active("postgresql", found).name, f"port={port}{DUMP}"),
        folders=tuple(_folders(hdfs(found), "/")),
        answers=tuple(_answers(found, nodes)),
    )


def asked_for(machines: Machines, node: str) -> frozenset[str]:
    """Return the packages that a node has because they were asked for."""
    return frozenset(machines.ask(node, ASKED_FOR).split())


def state(machines: Machines, node: str, units: Iterable[str], numbers: Iterable[int]) -> frozenset[str]:
    """Return what is true of a node now, of these units and these ports."""
    return imprint.state(machines.ask(node, STATE), frozenset(units), frozenset(numbers))


def _taken(found: Inventory, machines: Machines, node: str, archives: Mapping[str, Path]) -> Taken:
    machine = next(each for each in found.hosts if each.name == node)
    install_dir, config_dir = (
        str(machine.variables[f"lakehouse_{name}_dir"]) for name in ("install", "config")
    )
    of_packages = imprint.packaged(machines.ask(node, LISTS), machines.ask(node, VERIFY))
    changed = [path for path in machines.changed(node) if path not in of_packages]
    kept = imprint.kept(changed, install_dir, config_dir)
    texts = dict(_texts(machines.run(node, PACK, _lines(kept))))
    rooms = imprint.rooms((path for path in changed if path not in kept), "\n".join(texts.values()))
    paths = [*kept, *machines.run(node, ONLY_FOLDERS, _lines(rooms)).decode().splitlines()]
    before = [path for path in kept if imprint.precedes_packages(path)]
    units, names = frozenset(imprint.units(kept)), ports(found)
    here = state(machines, node, units, names)
    installed = imprint.releases(changed, install_dir, archives)
    return Taken(
        packages=asked_for(machines, node),
        before=machines.run(node, PACK, _lines(before)),
        files=machines.run(node, PACK, _lines(path for path in paths if path not in before)),
        hosts=machines.run(node, "cat /etc/hosts"),
        texts=texts,
        releases={f"{root}/releases/{name}": archives[name] for root, name in installed.items()},
        units=units,
        state=here,
        places=tuple((names[port], where, port) for where, port in imprint.sockets(here, machine.address)),
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
            below = f"{path.rstrip('/')}/{child['pathSuffix']}"
            acl = server.call("GET", "GETACLSTATUS", below)["AclStatus"]["entries"]
            yield {"path": below, "acl": acl, **{key: child[key] for key in ("owner", "group", "permission")}}
            yield from _folders(server, below)


def _answers(found: Inventory, nodes: Mapping[str, Taken]) -> Iterator[probing.Probe]:
    places = [place for taken in nodes.values() for place in taken.places]
    yield from map(probing.answered, probing.probes_of(places))
    engines = [port for name, _, port in places if name == "trino_http"]
    if engines:
        user = found.hosts[0].variables["lakehouse_users"]["trino"]
        yield probing.trino(endpoints.endpoint("trino_http", found).uri, user, len(engines))
