"""The steps from bare nodes to what the kit had made of them, and what each has to wait for."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from graphlib import TopologicalSorter

from lakehouse import endpoints, inventory, services
from lakehouse.dev.floor import imprint, probing, taking
from lakehouse.dev.floor.machines import Machines
from lakehouse.dev.floor.taking import Kit, Taken
from plugins.module_utils.lakehouse import metastore_sql, probes

# Steps that are no unit's.
FORMAT, DATABASES, SCHEMA, FOLDERS = "format", "databases", "schema", "folders in HDFS"
CLOSED = "schema is its owner's"
POSTGRESQL = "postgresql@*.service"
# What a unit waits for beside its files: a step, or another unit on each of its nodes. A unit that comes too
# early asks again only after seconds, or ends and is started again after five.
AFTER: Mapping[str, tuple[str, ...]] = {
    "hdfs-namenode.service": (FORMAT,),
    "hive-metastore.service": (CLOSED,),
    "spark-worker.service": ("spark-master.service",),
    "spark-history.service": (FOLDERS,),
    "spark-connect.service": ("spark-worker.service", FOLDERS),
    "spark-thrift.service": ("spark-worker.service", "hive-metastore.service", FOLDERS),
    "flink-taskmanager.service": ("flink-jobmanager.service",),
    "flink-history.service": (FOLDERS,),
    "lakehouse-past.service": ("hive-metastore.service", FOLDERS),
}
UNPACK = "tar --extract --absolute-names --numeric-owner"
UPDATE = "apt-get -q update"
INSTALL = (
    "DEBIAN_FRONTEND=noninteractive apt-get -qy --no-install-recommends -o DPkg::Lock::Timeout=120"
    " -o DPkg::Options::=--force-confdef -o DPkg::Options::=--force-confold install"
)
# Who runs already reads what is new for him.
READ = "systemctl daemon-reload; systemctl restart systemd-journald ssh"
# The unit's own command with more words, as its own user.
FORMAT_NAMENODE = """
unit=/etc/systemd/system/hdfs-namenode.service
value() { sed -n "s/^$1=//p" $unit; }
export HDFS_NAMENODE_START="-format -nonInteractive -clusterId $cluster"
runuser -u "$(value User)" -g "$(value Group)" -- sh -fc "$(value ExecStart)"
"""
CREATE = "cd /; runuser -u postgres -- psql -Xq --set ON_ERROR_STOP=1 --port"
INIT_SCHEMA = "schematool -initSchema"
# Where WAL is archived.
REPOSITORY = """
cd /
[ ! -e /etc/pgbackrest/pgbackrest.conf ] || runuser -u postgres -- pgbackrest --stanza=lakehouse stanza-create
"""


@dataclass(frozen=True)
class Step:
    """Something to do as soon as all of `after` is done."""

    after: tuple[str, ...]
    work: Callable[[], object]


def carry_out(steps: Mapping[str, Step]) -> None:
    """Do all steps, as many side by side as can be; raise what the first of them raises that fails."""
    order = TopologicalSorter({name: step.after for name, step in steps.items()}).static_order()
    done: dict[str, Future[None]] = {}

    def turn(step: Step) -> None:
        for name in step.after:
            done[name].result()
        step.work()

    with ThreadPoolExecutor(max_workers=len(steps)) as pool:
        for name in order:
            done[name] = pool.submit(turn, steps[name])
    for each in done.values():
        each.result()


def plan(path: str, kit: Kit) -> dict[str, Step]:
    """Return the steps by name for bare nodes of the inventory, which have to be there."""
    machines = Machines(inventory.load(path))
    lacking = {node: taken.packages - taking.asked_for(machines, node) for node, taken in kit.nodes.items()}
    common = frozenset[str].intersection(*lacking.values())
    steps: dict[str, Step] = {}
    for node, taken in kit.nodes.items():
        steps |= _installed(machines, node, taken, common, lacking[node] - common)
    steps |= _made(machines, kit)
    for node, taken in kit.nodes.items():
        steps |= _started(machines, kit, node, taken)
    every = tuple(steps)
    last = {"answers": Step(every, partial(_await, [partial(probes.ask, one) for one in kit.answers]))}
    for node, taken in kit.nodes.items():
        last[f"{node}: state"] = Step(every, partial(_await, [partial(_missing, machines, kit, node, taken)]))
    return steps | last


def lost(node: str, taken: Taken, state: frozenset[str]) -> str | None:
    """Return what was true of the kit's node and is not of this one; None where nothing is lost."""
    found = sorted(taken.state - state)
    return f"{node}: not so any more: {', '.join(found)}" if found else None


def running(taken: Taken) -> list[str]:
    """Return the units of the kit that were active on a node."""
    return sorted(unit for unit in taken.units if f"{unit} is active" in taken.state)


def behind(node: str, taken: Taken, unit: str) -> tuple[str, ...]:
    """Return the steps that a unit of a node needs: files, the releases that its own files name, packages.

    One that has no file but a drop-in is of a package of the node's own, which files follow.
    """
    paths = imprint.of_unit(unit, taken.texts)
    said = "".join(taken.texts[path] for path in paths)
    named = [folder for folder in taken.releases if f"{folder.rpartition('/releases/')[0]}/current" in said]
    packages = ["packages"] if any(path.endswith(f"/{unit}") for path in paths) else []
    return tuple(f"{node}: {what}" for what in ("files", *packages, *named))


def _installed(
    machines: Machines, node: str, taken: Taken, common: frozenset[str], own: frozenset[str]
) -> dict[str, Step]:
    """Releases beside packages: first a node's own, whose services can begin while others are installed."""

    def install(packages: frozenset[str], first: str) -> Callable[[], object]:
        names = shlex.join(sorted(packages))
        return partial(machines.run, node, f"{first}; {f'{INSTALL} {names}' if names else 'true'}")

    def before() -> None:
        machines.run(node, f"cat > /etc/hosts; mkdir -p {shlex.join(taken.releases)}", taken.hosts)
        machines.run(node, UNPACK, taken.before)

    steps = {
        "before": Step((), before),
        "own packages": Step(("before",), install(own, UPDATE)),
        "files": Step(("own packages",), partial(machines.run, node, f"{UNPACK}; {READ}", taken.files)),
        "packages": Step(("own packages",), install(common, "true")),
    }
    waited_for = {name for unit in running(taken) for name in behind(node, taken, unit)}
    for folder, archive in taken.releases.items():
        # What no service needs makes way for the others.
        after = "before" if f"{node}: {folder}" in waited_for else "packages"
        steps[folder] = Step((after,), partial(machines.unpack, node, archive, folder))
    return {
        f"{node}: {name}": Step(tuple(f"{node}: {each}" for each in step.after), step.work)
        for name, step in steps.items()
    }


def _started(machines: Machines, kit: Kit, node: str, taken: Taken) -> dict[str, Step]:
    """A step for each unit that ran: it is done when the unit listens where it did."""
    steps = {}
    for unit in running(taken):
        after = [*behind(node, taken, unit)]
        for name in AFTER.get(unit, ()):
            hosts = [each for each, other in kit.nodes.items() if name in running(other)]
            after += [f"{each}: {name}" for each in hosts] if "." in name else [name]
        steps[f"{node}: {unit}"] = Step(tuple(after), partial(_start, machines, kit, node, unit))
    return steps


def _start(machines: Machines, kit: Kit, node: str, unit: str) -> None:
    # One that its package has started reads its files.
    machines.run(node, f"systemctl restart {shlex.quote(unit)}")
    own = own_ports(unit)
    places = [(address, port) for name, address, port in kit.nodes[node].places if name in own]
    _await([partial(probing.closed, *place) for place in places])


def own_ports(unit: str) -> set[str]:
    """Return the names of the ports of a unit's row in the catalogue."""
    rows = services.load().services.values()
    return {
        listener.name for row in rows if fnmatch(unit, f"{row.unit}.service") for listener in row.listeners
    }


def _made(machines: Machines, kit: Kit) -> dict[str, Step]:
    """What happens once in a cluster's life."""
    found, variables = kit.inventory, kit.inventory.hosts[0].variables
    namenode, database, metastore = (
        endpoints.active(service, found).name for service in ("namenode", "postgresql", "metastore")
    )
    cluster, port = variables["lakehouse_cluster_id"], endpoints.endpoint("postgresql", found).port
    server = tuple(
        f"{database}: {unit}" for unit in running(kit.nodes[database]) if fnmatch(unit, POSTGRESQL)
    )
    files = tuple(f"{node}: files" for node in kit.nodes)
    create, settle = f"{CREATE} {port}", settled(variables["lakehouse_database"])
    return {
        FORMAT: Step(
            behind(namenode, kit.nodes[namenode], "hdfs-namenode.service"),
            partial(machines.run, namenode, f"cluster={shlex.quote(cluster)}{FORMAT_NAMENODE}"),
        ),
        DATABASES: Step(server, partial(machines.run, database, create, kit.databases + settle)),
        SCHEMA: Step(
            (DATABASES, *behind(metastore, kit.nodes[metastore], "hive-metastore.service")),
            partial(machines.run, metastore, INIT_SCHEMA),
        ),
        CLOSED: Step((SCHEMA,), partial(machines.run, database, create, settle)),
        FOLDERS: Step((f"{namenode}: hdfs-namenode.service",), partial(_folders, kit)),
        "repository": Step((*server, *files), partial(machines.run, database, REPOSITORY)),
    }


def settled(login: Mapping[str, str]) -> bytes:
    """Return what lets the metastore's role make its schema, and what takes it from there, as the owner.

    One table of the kit is beside those of the metastore's own tool; it may only be made after them.
    """
    user, owner = login["user"], metastore_sql.owner_of(login["user"])
    there = "select to_regclass('public.\"VERSION\"') is not null as complete \\gset"
    script = (
        f"{there}\n\\if :complete\n{metastore_sql.RUNTIME_STATS}\\endif\n{metastore_sql.settled(user, owner)}"
    )
    return f"\\connect {login['name']} {owner}\n{script}".encode()


def _folders(kit: Kit) -> None:
    """Make the folders of HDFS as soon as it can be written."""
    server = taking.hdfs(kit.inventory)
    _await([partial(probes.ask, one) for one in kit.answers if one.get("path") == probing.SAFE_MODE])
    for folder in kit.folders:
        path = folder["path"]
        server.call("PUT", "MKDIRS", path)
        server.call("PUT", "SETOWNER", path, owner=folder["owner"], group=folder["group"])
        server.call("PUT", "SETPERMISSION", path, permission=folder["permission"])
        if folder["acl"]:
            server.call("PUT", "MODIFYACLENTRIES", path, aclspec=",".join(folder["acl"]))


def _missing(machines: Machines, kit: Kit, node: str, taken: Taken) -> str | None:
    return lost(node, taken, taking.state(machines, node, taken.units, taking.ports(kit.inventory)))


def _await(questions: Collection[Callable[[], str | None]]) -> None:
    for question in questions:
        probing.await_right(question)
