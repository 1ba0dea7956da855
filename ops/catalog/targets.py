"""Whose catalog a verb is about: that of the machines of an inventory, or of a stack of docker compose."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from lakehouse import defaults, endpoints, inventory, state
from lakehouse.catalog.hosted import local
from lakehouse.catalog.source import Ask, Source, listed_versions
from lakehouse.compose import dotenv, history, owner, running
from lakehouse.compose import stack as composing
from lakehouse.compose.dotenv import Settings
from lakehouse.errors import LakehouseError, UsageError
from lakehouse.inventory import Inventory
from lakehouse.nodes import docker_api
from lakehouse.shared_options import COMPOSE, CatalogOptions
from ops.catalog import live, sync
from ops.clients import Files
from ops.outcome import Finding, Outcome
from ops.status import placement
from ops.status.placement import Cluster
from plugins.module_utils.lakehouse.webhdfs import WebHdfs

_DATABASE = "postgres"


@dataclass(frozen=True)
class Target:
    """A metastore with a history: its name, and where this checkout has the repository.

    `look`, `query` and `recover` are commands: they show how it is, ask its database, and bring files back.
    `node` runs the programs of its own history, None where there is none. `written` is called when something
    was written into the repository.
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
    """Return what the options name."""
    if options.target == COMPOSE:
        return stack(dotenv.load(options.env_file))
    return machines(placement.read(inventory.load(options.inventory)))


def option(options: CatalogOptions) -> str:
    """Return how a command says that it is about the same."""
    if options.target != COMPOSE:
        return f"-i {options.inventory}"
    env_file = ["--env-file", str(options.env_file)] if options.env_file else []
    return shlex.join(["--target", COMPOSE, *env_file])


def only_machines(options: CatalogOptions, what: str, instead: str) -> None:
    """Raise UsageError where a stack is meant by what only machines can."""
    if options.target == COMPOSE:
        raise UsageError(f"{what} is for machines, and not for a stack of docker compose", instead)


def left_out(
    target: Target, strangers: Iterable[Sequence[str]], unversioned: Iterable[str]
) -> tuple[Finding, ...]:
    """Return a finding for each object of the metastore that no commit contains."""
    unknown = (
        Finding("catalog.left_out", Outcome.DEGRADED, where, what, target.query) for where, what in strangers
    )
    fact = "a Delta table whose version cannot be had"
    unasked = (
        Finding("catalog.unversioned", Outcome.DEGRADED, name, fact, target.look) for name in unversioned
    )
    return (*unknown, *unasked)


def machines(cluster: Cluster) -> Target:
    """Return the machines of an inventory; the repository is a copy, if the cluster has its own history."""
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
    """Return a stack of docker compose, whose history is this checkout's."""
    database = defaults.defaults()["lakehouse_database"]
    asked = ["-U", database["user"], "-d", database["name"], "-c", "TABLE ..."]
    return Target(
        name=f"compose-{settings.project}",
        place=history.place(settings),
        look=f"{_call(settings)} ps --all",
        query=f"{_call(settings)} exec {_DATABASE} psql {shlex.join(asked)}",
        # Containers have no backups.
        recover=".venv/bin/lakehouse catalog log ... --target compose",
        root=str(defaults.defaults()["lakehouse_root"]),
        node=None,
        source=cache(partial(_source, settings)),
        files=lambda: _files(settings, inventory.load(settings.inventory)),
        written=partial(history.readable, settings),
    )


def _source(settings: Settings) -> Source:
    """Return what reads the catalog of a stack; LakehouseError where it is another checkout's, or not up."""
    with docker_api.connect() as client:
        owner.refuse(client, settings)
        running.require(client, settings, {_DATABASE, "namenode"})
    found = inventory.load(settings.inventory)
    versions = listed_versions(_files(settings, found).names)
    return Source(f"compose-{settings.project}", _ask(settings, found), versions)


def _ask(settings: Settings, found: Inventory) -> Ask:
    """Return what asks the database of a stack, as its container's user: no password is on the way."""
    host = endpoints.active("postgresql", found)
    call = composing.compose(settings, "exec", "--no-TTY", _DATABASE, *live.psql(host))
    asked = local.database(call, settings.values)

    @contextmanager
    def ask(script: str) -> Iterator[Iterator[bytes]]:
        try:
            with asked(script) as lines:
                yield lines
        except LakehouseError as error:
            # Doctor asks machines alone.
            error.next_command = f"{_call(settings)} ps --all"
            raise

    return ask


def _files(settings: Settings, found: Inventory) -> Files:
    """Return HDFS at the ports of this computer, which are those of the containers."""
    place, user = settings.published, str(found.hosts[0].variables["lakehouse_users"]["hdfs"])
    url = endpoints.uri("namenode_http", place, settings.port("namenode_http"))
    hdfs = WebHdfs(url, user, {host.name: place for host in found.hosts})
    return Files(hdfs, f"{_call(settings)} ps --all")


def _call(settings: Settings) -> str:
    """Return the call of docker compose that means a stack that is there, for a person."""
    return f"docker compose --project-name {settings.project}"


def _nothing() -> None:
    """Do nothing: the repository is its owner's alone."""
