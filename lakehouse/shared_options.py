"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any

import click

DEFAULT_INVENTORY = "inventory/local"
# What `--target` takes. A stack of docker compose has the inventory of its settings.
TARGETS = MACHINES, COMPOSE = "nodes", "compose"
_LAST_PORT = 65535

Function = Callable[..., int | None]
Decorator = Callable[[Function], Function]


@dataclass(frozen=True)
class ChangeOptions:
    """How a command that changes a cluster is run."""

    inventory: str
    as_json: bool = False
    dry_run: bool = False
    yes: bool = False
    confirm: str | None = None
    break_lock: str | None = None


@dataclass(frozen=True)
class CatalogOptions:
    """Whose catalog history a command works on, and how it prints its result."""

    inventory: str
    target: str = MACHINES
    env_file: Path | None = None
    store: Path | None = None
    as_json: bool = False


@dataclass(frozen=True)
class MergeOptions(CatalogOptions):
    """A commit whose changes a branch takes, and how conflicts are decided."""

    commit: str = ""
    into: str | None = None
    message: str | None = None
    author: str | None = None
    ours: bool = False
    theirs: bool = False
    no_data: bool = False


inventory = click.option(
    "-i", "--inventory", metavar="PATH", default=DEFAULT_INVENTORY, help="inventory of hosts"
)
started = click.option("--started", type=float, metavar="EPOCH", help="start time of the calling program")
as_json = click.option("--json", "as_json", is_flag=True, help="print JSON")
port_type = click.IntRange(0, _LAST_PORT)
env_file = click.option(
    "--env-file",
    type=click.Path(path_type=Path),
    show_default="compose/.env",
    help="settings of docker compose",
)
cluster = click.option("--confirm", metavar="CLUSTER", help="name of the cluster that may be removed")
bill = click.option("--bill", metavar="FILE", default="versions.yml", help="path below the kit's folder")
no_data = click.option("--no-data", is_flag=True, help="ignore new rows of Iceberg and Delta tables")
message = click.option("-m", "--message", metavar="TEXT", show_default="what changed", help="message")
author = click.option("--author", metavar="NAME", show_default="your account", help="'Ann <ann@example.org>'")
_target = click.option(
    "--target", type=click.Choice(TARGETS), default=MACHINES, help="deployment to run against"
)
store = click.option(
    "--store",
    type=click.Path(path_type=Path),
    show_default=".state/<cluster>/catalog.git",
    help="repository of the history",
)


def target(function: Function) -> Function:
    """Run against machines, or a stack of docker compose."""
    return _target(env_file(function))


def wait(function: Function) -> Function:
    """Wait for a gate."""
    text = "seconds to wait for a gate"
    return click.option("--wait", type=float, default=300.0, metavar="SECONDS", help=text)(function)


def force(text: str) -> Decorator:
    """Go on in spite of what `text` names."""
    return click.option("--force", is_flag=True, help=text)


def limit(seconds: float) -> Decorator:
    """End the work after some time."""
    return click.option("--limit", type=float, default=seconds, metavar="SECONDS", help="timeout")


def _packed(kind: type[Any], *options: Decorator) -> Decorator:
    """Pass the values of options as one argument, `options`."""
    names = [field.name for field in fields(kind)]

    def decorate(function: Function) -> Function:
        @wraps(function)
        def packed(**values: Any) -> int | None:
            packed_values = {name: values.pop(name) for name in names}
            return function(**values, options=kind(**packed_values))

        decorated: Function = packed
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


change = _packed(
    ChangeOptions,
    click.option("--dry-run", is_flag=True, help="show the plan and change nothing"),
    click.option("--yes", is_flag=True, help="skip confirmation of a non-destructive change"),
    click.option("--confirm", metavar="NAME", help="confirm a destructive change by naming what it changes"),
    click.option(
        "--break-lock",
        metavar="RUN@MACHINE:MARK",
        help="break the lock of a run that no longer responds, named as in the message that reports it",
    ),
    as_json,
    inventory,
)
catalog = _packed(CatalogOptions, target, store, as_json, inventory)
merge = _packed(
    MergeOptions,
    click.argument("commit"),
    click.option(
        "--into", metavar="BRANCH", show_default="a new one, from main", help="branch that gets the commit"
    ),
    message,
    author,
    click.option("--ours", is_flag=True, help="resolve conflicts with the values of the branch"),
    click.option("--theirs", is_flag=True, help="resolve conflicts with the values of the other side"),
    no_data,
    target,
    store,
    as_json,
    inventory,
)
