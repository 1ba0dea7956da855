"""The steps from bare nodes to the snapshots of the kit's nodes, with their dependencies."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from graphlib import TopologicalSorter

from lakehouse.dev.floor import imprint, probing, taking
from lakehouse.dev.floor.machines import Machines
from lakehouse.dev.floor.taking import Kit, NodeSnapshot
from lakehouse.model import endpoints, inventory, services
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
    """Run all steps concurrently after their dependencies; raise the error of the first that fails."""
    order = TopologicalSorter({name: step.after for name, step in steps.items()}).static_order()
    futures: dict[str, Future[None]] = {}

    def run_step(step: Step) -> None:
        for name in step.after:
            futures[name].result()
        step.work()

    with ThreadPoolExecutor(max_workers=len(steps)) as pool:
        for name in order:
            futures[name] = pool.submit(run_step, steps[name])
    for future in futures.values():
        future.result()


def plan(path: str, kit: Kit) -> dict[str, Step]:
    """Return the steps by name for the bare nodes of the inventory, which must exist."""
    machines = Machines(inventory.load(path))
    lacking = {
        node: snapshot.packages - taking.asked_for(machines, node) for node, snapshot in kit.nodes.items()
    }
    common = frozenset[str].intersection(*lacking.values())
    steps: dict[str, Step] = {}
    for node, snapshot in kit.nodes.items():
        steps |= _installed(machines, node, snapshot, common, lacking[node] - common)
    steps |= _made(machines, kit)
    for node, snapshot in kit.nodes.items():
        steps |= _started(machines, kit, node, snapshot)
    all_steps = tuple(steps)
    last = {
        "answers": Step(all_steps, partial(_await, [partial(probes.ask, probe) for probe in kit.answers]))
    }
    for node, snapshot in kit.nodes.items():
        last[f"{node}: state"] = Step(
            all_steps, partial(_await, [partial(_missing, machines, kit, node, snapshot)])
        )
    return steps | last


def lost(node: str, snapshot: NodeSnapshot, state: frozenset[str]) -> str | None:
    """Return the parts of the snapshot's state that this node lacks, in a line; None if it has all."""
    missing = sorted(snapshot.state - state)
    return f"{node}: not so any more: {', '.join(missing)}" if missing else None


def running(snapshot: NodeSnapshot) -> list[str]:
    """Return the units of the kit that were active on a node."""
    return sorted(unit for unit in snapshot.units if f"{unit} is active" in snapshot.state)


def behind(node: str, snapshot: NodeSnapshot, unit: str) -> tuple[str, ...]:
    """Return the dependencies of a unit: files, the releases that its files name, packages.

    A unit with only a drop-in comes from the node's own packages, which precede the files.
    """
    paths = imprint.of_unit(unit, snapshot.texts)
    texts = "".join(snapshot.texts[path] for path in paths)
    releases = [
        folder for folder in snapshot.releases if f"{folder.rpartition('/releases/')[0]}/current" in texts
    ]
    packages = ["packages"] if any(path.endswith(f"/{unit}") for path in paths) else []
    return tuple(f"{node}: {step}" for step in ("files", *packages, *releases))


def _installed(
    machines: Machines,
    node: str,
    snapshot: NodeSnapshot,
    common: frozenset[str],
    own_packages: frozenset[str],
) -> dict[str, Step]:
    """Install packages and releases concurrently, the node's own packages first for their services."""

    def install(packages: frozenset[str], first: str) -> Callable[[], object]:
        names = shlex.join(sorted(packages))
        return partial(machines.run, node, f"{first}; {f'{INSTALL} {names}' if names else 'true'}")

    def before() -> None:
        machines.run(node, f"cat > /etc/hosts; mkdir -p {shlex.join(snapshot.releases)}", snapshot.hosts)
        machines.run(node, UNPACK, snapshot.before)

    steps = {
        "before": Step((), before),
        "own packages": Step(("before",), install(own_packages, UPDATE)),
        "files": Step(("own packages",), partial(machines.run, node, f"{UNPACK}; {READ}", snapshot.files)),
        "packages": Step(("own packages",), install(common, "true")),
    }
    required_steps = {name for unit in running(snapshot) for name in behind(node, snapshot, unit)}
    for folder, archive in snapshot.releases.items():
        # Releases that no service needs are unpacked last.
        after = "before" if f"{node}: {folder}" in required_steps else "packages"
        steps[folder] = Step((after,), partial(machines.unpack, node, archive, folder))
    return {
        f"{node}: {name}": Step(tuple(f"{node}: {dependency}" for dependency in step.after), step.work)
        for name, step in steps.items()
    }


def _started(machines: Machines, kit: Kit, node: str, snapshot: NodeSnapshot) -> dict[str, Step]:
    """Return a step for each unit that ran: it starts the unit and waits for its listeners."""
    steps = {}
    for unit in running(snapshot):
        after = [*behind(node, snapshot, unit)]
        for name in AFTER.get(unit, ()):
            hosts = [host for host, host_snapshot in kit.nodes.items() if name in running(host_snapshot)]
            after += [f"{host}: {name}" for host in hosts] if "." in name else [name]
        steps[f"{node}: {unit}"] = Step(tuple(after), partial(_start, machines, kit, node, unit))
    return steps


def _start(machines: Machines, kit: Kit, node: str, unit: str) -> None:
    # A unit that its package has started reads its files.
    machines.run(node, f"systemctl restart {shlex.quote(unit)}")
    ports = own_ports(unit)
    places = [(address, port) for name, address, port in kit.nodes[node].places if name in ports]
    _await([partial(probing.closed, *place) for place in places])


def own_ports(unit: str) -> set[str]:
    """Return the names of the ports of a unit's row in the catalogue."""
    rows = services.load().services.values()
    return {
        listener.name for row in rows if fnmatch(unit, f"{row.unit}.service") for listener in row.listeners
    }


def _made(machines: Machines, kit: Kit) -> dict[str, Step]:
    """Return the steps that run once per cluster."""
    cluster_inventory, variables = kit.inventory, kit.inventory.hosts[0].variables
    namenode, database, metastore = (
        endpoints.active(service, cluster_inventory).name
        for service in ("namenode", "postgresql", "metastore")
    )
    cluster, port = (
        variables["lakehouse_cluster_id"],
        endpoints.endpoint("postgresql", cluster_inventory).port,
    )
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
    """Return the SQL that grants the metastore's role the creation of its schema, or settles a complete one.

    The kit's own table can only be created after those of the metastore's tool.
    """
    user, owner = login["user"], metastore_sql.owner_of(login["user"])
    is_complete = "select to_regclass('public.\"VERSION\"') is not null as complete \\gset"
    script = (
        f"{is_complete}\n\\if :complete\n{metastore_sql.RUNTIME_STATS}\\endif\n"
        f"{metastore_sql.settled(user, owner)}"
    )
    return f"\\connect {login['name']} {owner}\n{script}".encode()


def _folders(kit: Kit) -> None:
    """Create the folders of HDFS after it has left safe mode."""
    server = taking.hdfs(kit.inventory)
    _await([partial(probes.ask, probe) for probe in kit.answers if probe.get("path") == probing.SAFE_MODE])
    for folder in kit.folders:
        path = folder["path"]
        server.call("PUT", "MKDIRS", path)
        server.call("PUT", "SETOWNER", path, owner=folder["owner"], group=folder["group"])
        server.call("PUT", "SETPERMISSION", path, permission=folder["permission"])
        if folder["acl"]:
            server.call("PUT", "MODIFYACLENTRIES", path, aclspec=",".join(folder["acl"]))


def _missing(machines: Machines, kit: Kit, node: str, snapshot: NodeSnapshot) -> str | None:
    return lost(node, snapshot, taking.state(machines, node, snapshot.units, taking.ports(kit.inventory)))


def _await(questions: Collection[Callable[[], str | None]]) -> None:
    for question in questions:
        probing.await_right(question)
