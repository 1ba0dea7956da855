"""The command line: one verb per thing that a person wants."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lakehouse import artifacts, features, nodes, report, risky, run, targets, verbs
from lakehouse.artifacts import lock
from lakehouse.compose import settings as compose_settings
from lakehouse.dev import bench
from lakehouse.errors import LakehouseError
from lakehouse.targets import Target

DEFAULT_INVENTORY = "inventory/local"


def _deploy(arguments: argparse.Namespace) -> int:
    return verbs.deploy(verbs.start(arguments.started), arguments.inventory)


def _test(arguments: argparse.Namespace) -> int:
    return verbs.test(
        verbs.start(arguments.started), arguments.inventory, keep=arguments.keep, typed=arguments.confirm
    )


def _nightly(arguments: argparse.Namespace) -> int:
    return verbs.nightly(verbs.start(arguments.started))


def _up(arguments: argparse.Namespace) -> int:
    verbs.up(verbs.start(), arguments.inventory)
    return 0


def _down(arguments: argparse.Namespace) -> int:
    verbs.down(arguments.inventory)
    return 0


def _take_over(arguments: argparse.Namespace) -> int:
    nodes.take_over(arguments.inventory, arguments.cluster, print)
    return 0


def _status(arguments: argparse.Namespace) -> int:
    for node in nodes.status(arguments.inventory):
        print(node)  # noqa: T201 -- this is the verb's answer
    return 0


def _target(arguments: argparse.Namespace) -> Target:
    target = targets.choose(arguments.target, arguments.inventory, arguments.env_file)
    target.check()
    return target


def _smoke(arguments: argparse.Namespace) -> int:
    phases, target = verbs.start(arguments.started), _target(arguments)
    target.load(phases)
    verbs.smoke(phases, target.inventory, *arguments.selection, environment=target.environment)
    return report.build(run.BUILD, verbs.bill().versions)


def _matrix(arguments: argparse.Namespace) -> int:
    phases, target = verbs.start(arguments.started), _target(arguments)
    verbs.matrix(phases, target.inventory, *arguments.selection, environment=target.environment)
    return report.build(run.BUILD, verbs.bill().versions)


def _fetch(_: argparse.Namespace) -> int:
    verbs.fetch(verbs.start())
    return 0


def _lock(_: argparse.Namespace) -> int:
    lock.lock(run.ROOT / "versions.yml", artifacts.cache_dir(), print)
    return 0


def _compose_up(arguments: argparse.Namespace) -> int:
    verbs.compose_up(verbs.start(arguments.started), compose_settings.load(arguments.env_file))
    return 0


def _compose_image(arguments: argparse.Namespace) -> int:
    verbs.compose_image(verbs.start(arguments.started), compose_settings.load(arguments.env_file))
    return 0


def _compose_names(arguments: argparse.Namespace) -> int:
    verbs.compose_names(compose_settings.load(arguments.env_file), forget=arguments.forget)
    return 0


def _compose_down(arguments: argparse.Namespace) -> int:
    settings = compose_settings.load(arguments.env_file)
    verbs.compose_down(settings, volumes=arguments.volumes)
    kept = "its data and its passwords went with it" if arguments.volumes else "its data stays"
    print(f"{settings.project} is removed; {kept}")  # noqa: T201 -- this is the verb's answer
    return 0


def _risky_tables(arguments: argparse.Namespace) -> int:
    target = _target(arguments)
    run.playbook("endpoints", target.inventory, environment=target.environment)
    findings = risky.find(run.BUILD / "endpoints.json")
    for line in risky.summary(findings):
        print(line)  # noqa: T201 -- this is the verb's answer
    return int(any(finding.risk.effect in {features.WRONG, features.UNKNOWN} for finding in findings))


def _bench(arguments: argparse.Namespace) -> int:
    if arguments.target == targets.COMPOSE:
        return bench.measure_compose(compose_settings.load(arguments.env_file))
    return bench.measure(arguments.inventory, arguments.confirm)


def parser() -> argparse.ArgumentParser:
    """The arguments of every verb."""
    top = argparse.ArgumentParser(
        prog="lakehouse", description="Three bare machines become a verified lakehouse."
    )
    verb = top.add_subparsers(required=True, metavar="verb")

    def add(name: str, action: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        one = verb.add_parser(name, help=text, description=text)
        one.set_defaults(action=action)
        one.add_argument(
            "-i", "--inventory", default=DEFAULT_INVENTORY, help="inventory (default: %(default)s)"
        )
        one.add_argument(
            "--started", type=float, help="when the calling program began, in seconds since the epoch"
        )
        return one

    add("deploy", _deploy, "from a fresh machine to a verified lakehouse")
    tested = add("test", _test, "lint, unit, render, and a cluster of its own")
    tested.add_argument("--keep", action="store_true", help="leave the cluster running")
    add("nightly", _nightly, "both suites on docker compose, and a restart of Docker")
    add("up", _up, "start the local nodes")
    add("down", _down, "remove the local nodes and their data")
    add("status", _status, "show the local nodes")
    add("take-over", _take_over, "make another checkout's local nodes this one's").add_argument(
        "cluster", help="the cluster's name"
    )
    suites = (
        add("smoke", _smoke, "run the smoke suite and write the report"),
        add("matrix", _matrix, "run every engine on every format and write the report"),
    )
    for suite in suites:
        suite.add_argument("selection", nargs="*", help="arguments for pytest")
    measured = add("bench", _bench, "measure what the README promises, into build/bench/")
    for removing in (tested, measured):
        removing.add_argument("--confirm", metavar="CLUSTER", help="name of the cluster that may be removed")
    risks = add(
        "risky-tables", _risky_tables, "list tables that another engine reads wrongly; 1 if there are any"
    )
    for question in (*suites, risks, measured):
        question.add_argument(
            "--target",
            choices=targets.KINDS,
            default=targets.MACHINES,
            help="whom to ask (default: %(default)s)",
        )
        question.add_argument(
            "--env-file", type=Path, help="settings of docker compose (default: compose/.env)"
        )
    _add_compose(verb.add_parser("compose", help="the stack of docker compose").add_subparsers(required=True))
    bill = verb.add_parser("artifacts", help="fetch or lock the files of versions.yml").add_subparsers(
        required=True
    )
    bill.add_parser("fetch", help="fill the cache").set_defaults(action=_fetch)
    bill.add_parser("lock", help="resolve and record every file").set_defaults(action=_lock)
    return top


def _add_compose(verb: Any) -> None:
    for name, action, text in (
        ("up", _compose_up, "build, render and start the stack, and wait until every service answers"),
        ("image", _compose_image, "build the images"),
        ("names", _compose_names, "make the names of the containers lead to this computer, in /etc/hosts"),
        ("down", _compose_down, "remove the containers and keep the data"),
    ):
        one = verb.add_parser(name, help=text, description=text)
        one.set_defaults(action=action)
        one.add_argument("--env-file", type=Path, help="settings (default: compose/.env)")
        one.add_argument("--started", type=float, help="when the calling program began")
        if name == "names":
            one.add_argument("--forget", action="store_true", help="take them out again")
        if name == "down":
            one.add_argument("--volumes", action="store_true", help="remove the data too")


def main(argv: list[str] | None = None) -> int:
    """Run the verb; a LakehouseError is one line, never a traceback."""
    arguments = parser().parse_args(argv)
    try:
        return int(arguments.action(arguments))
    except LakehouseError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 -- the one place that speaks to a person
        return 1
    except OSError as error:
        said = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        print(f"error: {said}; next: df -h, ls -ld {error.filename or '.'}", file=sys.stderr)  # noqa: T201 -- as above
        return 1
    except KeyboardInterrupt:
        print("interrupted; next: run the same command again", file=sys.stderr)  # noqa: T201 -- as above
        return 130


if __name__ == "__main__":
    sys.exit(main())
