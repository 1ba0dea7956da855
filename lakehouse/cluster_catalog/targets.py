"""The target of a verb: the machines of an inventory, or a stack of docker compose."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from lakehouse.catalog import psql
from lakehouse.catalog.psql import Ask
from lakehouse.catalog.source import Source, listed_versions
from lakehouse.clients import Files
from lakehouse.cluster_catalog import live, sync
from lakehouse.errors import LakehouseError, UsageError
from lakehouse.local.compose import dotenv, history, owner, running
from lakehouse.local.compose import stack as composing
from lakehouse.local.compose.dotenv import Settings
from lakehouse.local.nodes import docker_api
from lakehouse.model import defaults, endpoints, inventory, placement, state
from lakehouse.model.inventory import Inventory
from lakehouse.model.placement import Cluster
from lakehouse.outcome import Finding, Outcome
from lakehouse.shared_options import COMPOSE, CatalogOptions
from plugins.module_utils.lakehouse.webhdfs import WebHdfs

_DATABASE = "postgres"


@dataclass(frozen=True)
class Target:
    """A metastore with a history: its name, and the path of this checkout's repository.

    `look`, `query` and `recover` are commands that show its state, query its database, and restore files.
    `node` runs the programs of its own history, None without any. `written` is called after a write to the
    repository.
    """

    name: str
    place: Path
    look: str
    query: str
    recover: str
    # The folder of HDFS above all tables.
    root: str
    node: sync.Node | None
    source: Callable[[], Source]
    files: Callable[[], Files]
    written: Callable[[], None]


def choose(options: CatalogOptions) -> Target:
    """Return the target that the options select."""
    if options.target == COMPOSE:
        return stack(dotenv.load(options.env_file))
    return machines(placement.read(inventory.load(options.inventory)))


def option(options: CatalogOptions) -> str:
    """Return the options of a command for the same target."""
    if options.target != COMPOSE:
        return f"-i {options.inventory}"
    env_file = ["--env-file", str(options.env_file)] if options.env_file else []
    return shlex.join(["--target", COMPOSE, *env_file])


def only_machines(options: CatalogOptions, feature: str, instead: str) -> None:
    """Raise UsageError for a stack, if only machines are supported."""
    if options.target == COMPOSE:
        raise UsageError(f"{feature} is for machines, and not for a stack of docker compose", instead)


def left_out(
    target: Target, strangers: Iterable[Sequence[str]], unversioned: Iterable[str]
) -> tuple[Finding, ...]:
    """Return a finding for each object of the metastore that no commit contains."""
    stranger_findings = (
        Finding("catalog.left_out", Outcome.DEGRADED, where, reason, target.query)
        for where, reason in strangers
    )
    fact = "a Delta table whose version cannot be had"
    unversioned_findings = (
        Finding("catalog.unversioned", Outcome.DEGRADED, name, fact, target.look) for name in unversioned
    )
    return (*stranger_findings, *unversioned_findings)


def machines(cluster: Cluster) -> Target:
    """Return the target of an inventory; the repository is a copy if the cluster has its own history."""
    name, path = str(cluster.variable("lakehouse_cluster")), cluster.inventory.path
    psql = shlex.join(["psql", *live.login(cluster.active("postgresql")), "-c", "TABLE ..."])
    return Target(
        name=name,
        place=state.folder(path, name) / history.STORE,
        look=f".venv/bin/lakehouse status -i {path}",
        query=f".venv/bin/lakehouse exec -i {path} postgresql -- runuser -u postgres -- {psql}",
        recover=f".venv/bin/lakehouse restore --table ... -i {path}",
        root=str(cluster.variable("lakehouse_root")),
        node=sync.node(cluster),
        source=cache(partial(live.source, cluster)),
        files=partial(Files.of, cluster),
        written=_nothing,
    )


def stack(settings: Settings) -> Target:
    """Return the target of a stack of docker compose, whose history is that of this checkout."""
    database = defaults.defaults()["lakehouse_database"]
    psql_options = ["-U", database["user"], "-d", database["name"], "-c", "TABLE ..."]
    return Target(
        name=f"compose-{settings.project}",
        place=history.place(settings),
        look=f"{_call(settings)} ps --all",
        query=f"{_call(settings)} exec {_DATABASE} psql {shlex.join(psql_options)}",
        # Containers have no backups.
        recover=".venv/bin/lakehouse catalog log ... --target compose",
        root=str(defaults.defaults()["lakehouse_root"]),
        node=None,
        source=cache(partial(_source, settings)),
        files=lambda: _files(settings, inventory.load(settings.inventory)),
        written=partial(history.readable, settings),
    )


def _source(settings: Settings) -> Source:
    """Return the source of a stack's catalog; LakehouseError if it is another checkout's, or not running."""
    with docker_api.connect() as client:
        owner.refuse(client, settings)
        running.require(client, settings, {_DATABASE, "namenode"})
    stack_inventory = inventory.load(settings.inventory)
    versions = listed_versions(_files(settings, stack_inventory).names)
    return Source(f"compose-{settings.project}", _ask(settings, stack_inventory), versions)


def _ask(settings: Settings, stack_inventory: Inventory) -> Ask:
    """Return a function that queries the database of a stack as its container's user, without a password."""
    host = endpoints.active("postgresql", stack_inventory)
    call = composing.compose(settings, "exec", "--no-TTY", _DATABASE, *live.psql(host))
    query = psql.database(call, settings.values)

    @contextmanager
    def ask(script: str) -> Iterator[Iterator[bytes]]:
        try:
            with query(script) as lines:
                yield lines
        except LakehouseError as error:
            # Doctor supports machines only.
            error.next_command = f"{_call(settings)} ps --all"
            raise

    return ask


def _files(settings: Settings, stack_inventory: Inventory) -> Files:
    """Return the HDFS of a stack at its published ports."""
    place, user = settings.published, str(stack_inventory.hosts[0].variables["lakehouse_users"]["hdfs"])
    url = endpoints.uri("namenode_http", place, settings.port("namenode_http"))
    hdfs = WebHdfs(url, user, {host.name: place for host in stack_inventory.hosts})
    return Files(hdfs, f"{_call(settings)} ps --all")


def _call(settings: Settings) -> str:
    """Return the command of docker compose for an existing stack, for messages."""
    return f"docker compose --project-name {settings.project}"


def _nothing() -> None:
    """Do nothing: no other user needs access to the repository."""
