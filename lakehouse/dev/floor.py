"""The floor of `make bench`: shell commands repeat on bare nodes what the manifests of a cluster record.

`look` reads converged nodes and returns the steps. `carry_out` runs each step on bare nodes as soon as its
inputs exist, and returns once each unit is active and each probe of the manifests succeeds.
"""

from __future__ import annotations

import json
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from lakehouse import artifacts
from lakehouse.errors import LakehouseError
from lakehouse.model import inventory
from plugins.module_utils.lakehouse import hdfs_path, host_state, metastore_sql, probes

Items = list[dict[str, Any]]
# By name: the steps that precede a step, and its work.
Steps = dict[str, tuple[list[str], partial[Any]]]
LIMIT_SECONDS, PAUSE_SECONDS = 600, 0.1
# What precedes a unit, beside what it reads: a unit that starts too early retries only after seconds.
BEFORE = {
    "format": ("hdfs-namenode",),
    "schema": ("hive-metastore",),
    "folders": ("spark-history", "spark-connect", "spark-thrift", "flink-history", "lakehouse-past"),
    "spark-master": ("spark-worker",),
    "spark-worker": ("spark-connect", "spark-thrift"),
    "flink-jobmanager": ("flink-taskmanager",),
    "hive-metastore": ("spark-thrift", "lakehouse-past"),
}
# What manifests lack, beside the links that enable and mask units.
ACCOUNTS = ["/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow"]
HOST_KEY = "/etc/ssh/ssh_host_ed25519_key"
PACK = "(cat; find /etc/systemd/system -type l) | tar -cP --no-recursion --numeric-owner -T -"
UNPACK = "tar -xP --numeric-owner --overwrite"
READ = "systemctl daemon-reload; systemctl restart ssh"
INSTALL = "apt-get install -qy --no-install-recommends -o DPkg::Lock::Timeout=120"
RELEASE = 'docker exec "$0" mkdir -p "$1" && docker cp - "$0:$1" < "$2"'
# The unit's own command with more arguments, as its own user.
FORMAT = """value() { sed -n "s/^$1=//p" /etc/systemd/system/hdfs-namenode.service; }
export HDFS_NAMENODE_START="-format -nonInteractive -clusterId $cluster"
runuser -u "$(value User)" -g "$(value Group)" -- sh -fc "$(value ExecStart)"
"""
POSTGRES = "cd /; runuser -u postgres --"
REPOSITORY = f"[ ! -e /etc/pgbackrest ] || ({POSTGRES} pgbackrest --stanza=lakehouse stanza-create)"


def look(path: str) -> Steps:
    """Return the steps by which bare nodes become what the local nodes of an inventory are."""
    hosts, steps, items, answers = inventory.load(path).hosts, Steps(), Items(), Items()
    for host in hosts:
        node = f"{host.variables['local_nodes_cluster']}-{host.name}"
        manifest = _run(node, f"cat {host.variables['lakehouse_config_dir']}/{host_state.NAME}").decode()
        # Commands of probes run on their node.
        local = manifest.replace('"argv": [', f'"argv": ["docker", "exec", "{node}",')
        items_of_node = list(json.loads(local)["items"].values())
        units = _of("unit", items_of_node)
        ready = [{"unit": unit["name"], **probe} for unit in units for probe in unit["ready"]]
        names = " ".join(unit["name"] for unit in units)
        active = f"for unit in {names}; do systemctl is-active $unit || exit; done"
        steps |= _node_steps(node, items_of_node, ready)
        items += items_of_node
        answers += [*ready, {"kind": "command", "argv": ["docker", "exec", node, "sh", "-c", active]}]
    steps |= _cluster_steps(steps, items, answers, hosts[0].variables)
    for earlier, later in BEFORE.items():
        for step in (step for unit in later for step in _named(steps, unit)):
            steps[step][0].extend(_named(steps, earlier))
    return steps | {"answers": (list(steps), partial(_wait, answers))}


def _of(kind: str, items: Items) -> Items:
    return [item for item in items if item["kind"] == kind and item.get("enabled", True)]


def _named(steps: Steps, name: str) -> list[str]:
    return [step for step in steps if step.rpartition(" ")[2].partition("@")[0] == name]


def _node_steps(node: str, items: Items, ready: Items) -> Steps:
    paths = [item["path"] for item in items if item["kind"] in {"file", "directory", "link", "block"}]
    # Packages read the numbers of accounts, and where to create a database.
    early_paths = [*ACCOUNTS, *(path for path in paths if path.endswith("/createcluster.conf"))]
    early, files = (_run(node, PACK, "\n".join([*names, ""])) for names in (early_paths, [HOST_KEY, *paths]))
    packages = [item["name"] for item in _of("package", items)]
    java = " ".join(name for name in packages if "-jre" in name)
    without_java = " ".join(name for name in packages if "-jre" not in name)
    installed, written, complete = (f"{node} {step}" for step in ("packages", "files", "java"))
    steps: Steps = {
        installed: ([], partial(_run, node, f"{UNPACK}; apt-get -q update; {INSTALL} {without_java}", early)),
        written: ([installed], partial(_run, node, f"{UNPACK}; {READ}", files)),
        complete: ([installed], partial(_run, node, f"{INSTALL} {java}")),
    }
    releases = {f"{node} {item['path']}": Path(item["path"]) for item in _of("release", items)}
    for unit in (item["name"] for item in _of("unit", items)):
        text = _run(node, f"systemctl cat {unit}").decode()
        used = [step for step, path in releases.items() if f"{path.parents[1]}/current" in text]
        # A unit of a package of Debian, such as PostgreSQL, does not wait for Java.
        after = [written, *used, *([complete] if text.startswith("# /etc/") else [])]
        # Without `path` any answer will do: some values depend on units that start later.
        expected = [probe for probe in ready if probe["unit"] == unit]
        reached = [{key: probe[key] for key in probe if key != "path"} for probe in expected]
        restart = f"docker exec {node} systemctl restart {unit}"
        steps[f"{node} {unit}"] = (after, partial(_wait, reached, restart))
    needed = {step for after, _ in steps.values() for step in after}
    for step, path in releases.items():
        [archive] = artifacts.cache_dir().releases.glob(f"*-{path.name}.tar")
        work = partial(subprocess.run, ["sh", "-c", RELEASE, node, path, archive], check=True)
        steps[step] = ([] if step in needed else [complete], work)
    return steps


def _cluster_steps(steps: Steps, items: Items, answers: Items, variables: Any) -> Steps:
    units = [_named(steps, unit)[0] for unit in ("hdfs-namenode", "postgresql", "hive-metastore")]
    on_namenode, on_server, on_metastore = (partial(_run, unit.split()[0]) for unit in units)
    namenode, server, metastore = units
    database, user = (variables["lakehouse_database"][key] for key in ("name", "user"))
    owner = metastore_sql.owner_of(user)
    connect, settle = f"\\connect {database} {owner}\n", metastore_sql.settled(user, owner)
    port = f"--port {_of('sql', items)[0]['port']}"
    psql = f"{POSTGRES} psql -Xq --set ON_ERROR_STOP=1 {port}"
    roles = on_server(f"{POSTGRES} pg_dumpall {port} --roles-only | grep -v ' ROLE postgres'").decode()
    databases = {item["database"] for item in _of("sql", items)} - {"postgres"}
    created = "".join(f'create database "{name}";\n' for name in databases)
    owned = metastore_sql.owned(database, user, owner)
    format_command = f"cluster={variables['lakehouse_cluster_id']}\n{FORMAT}"
    return {
        "format": (list(steps[namenode][0]), partial(on_namenode, format_command)),
        "databases": ([server], partial(on_server, psql, f"{roles}{created}{owned}\n{connect}{settle}")),
        "tables": (["databases", *steps[metastore][0]], partial(on_metastore, "schematool -initSchema")),
        "schema": (["tables"], partial(on_server, psql, f"{connect}{metastore_sql.RUNTIME_STATS}{settle}")),
        "folders": ([namenode], partial(_create_folders, items, answers)),
        "repository": ([server, *_named(steps, "files")], partial(on_server, REPOSITORY)),
    }


def _create_folders(items: Items, answers: Items) -> None:
    _wait([probe for probe in answers if probe.get("path") == "beans.0.Safemode"])
    for item in _of("hdfs", items):
        snapshots = [item["path"]] if item["snapshots"] else []
        hdfs_path.apply(item | {"paths": [item], "snapshots": snapshots})


def carry_out(steps: Steps) -> None:
    """Run each step after those that precede it, beside all others; raise the first error."""
    futures: dict[str, Any] = {}

    def take_turn(before: list[str], work: partial[Any]) -> None:
        for name in before:
            futures[name].result()
        work()

    with ThreadPoolExecutor(len(steps)) as pool:
        for name in TopologicalSorter({name: before for name, (before, _) in steps.items()}).static_order():
            futures[name] = pool.submit(take_turn, *steps[name])
    for future in futures.values():
        future.result()


def _wait(questions: Items, command: str = "true") -> None:
    """Run a command here, then wait for the answers that probes expect."""
    subprocess.run(command.split(), check=True, timeout=LIMIT_SECONDS)
    deadline = time.monotonic() + LIMIT_SECONDS
    for probe in questions:
        while (problem := probes.ask(probe)) is not None:
            if time.monotonic() > deadline:
                raise LakehouseError(f"no right answer in {LIMIT_SECONDS} s: {problem}", "docker ps")
            time.sleep(PAUSE_SECONDS)


def _run(node: str, script: str, content: str | bytes = "") -> bytes:
    argv = f"docker exec -i -e DEBIAN_FRONTEND=noninteractive {node} bash -eo pipefail -c".split()
    data = content.encode() if isinstance(content, str) else content
    done = subprocess.run(
        [*argv, script], input=data, capture_output=True, check=False, timeout=LIMIT_SECONDS
    )
    if done.returncode:
        raise LakehouseError(f"{node}: {script}: {done.stderr[-300:].decode(errors='replace')}", "docker ps")
    return done.stdout
