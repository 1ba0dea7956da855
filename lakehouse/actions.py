"""What each verb does. Loaded once a verb is known, for it takes seconds."""

from __future__ import annotations

import argparse

from lakehouse import artifacts, features, nodes, report, risky, run, targets, verbs
from lakehouse.artifacts import lock as locking
from lakehouse.compose import dotenv
from lakehouse.dev import bench as measuring
from lakehouse.targets import Target


def deploy(arguments: argparse.Namespace) -> int:
    """From a fresh machine to a verified lakehouse."""
    return verbs.deploy(verbs.start(arguments.started), arguments.inventory)


def test(arguments: argparse.Namespace) -> int:
    """Lint, unit, render, and a cluster of its own."""
    return verbs.test(
        verbs.start(arguments.started), arguments.inventory, keep=arguments.keep, typed=arguments.confirm
    )


def nightly(arguments: argparse.Namespace) -> int:
    """Both suites on docker compose."""
    return verbs.nightly(verbs.start(arguments.started))


def drills(arguments: argparse.Namespace) -> int:
    """Take a cluster of its own apart."""
    return verbs.drill(
        verbs.start(arguments.started), arguments.inventory, arguments.drills, arguments.confirm
    )


def bundle(arguments: argparse.Namespace) -> int:
    """Write a bundle for machines without a network."""
    verbs.bundle(verbs.start(arguments.started), arguments.inventory, arguments.output)
    return 0


def up(arguments: argparse.Namespace) -> int:
    """Start the local nodes."""
    verbs.up(verbs.start(), arguments.inventory)
    return 0


def down(arguments: argparse.Namespace) -> int:
    """Remove the local nodes."""
    verbs.down(arguments.inventory)
    return 0


def take_over(arguments: argparse.Namespace) -> int:
    """Make another checkout's local nodes this one's."""
    nodes.take_over(arguments.inventory, arguments.cluster, print)
    return 0


def show_nodes(arguments: argparse.Namespace) -> int:
    """Print a line per local node."""
    for node in nodes.status(arguments.inventory):
        print(node)  # noqa: T201 -- this is the verb's answer
    return 0


def _target(arguments: argparse.Namespace) -> Target:
    target = targets.choose(arguments.target, arguments.inventory, arguments.env_file)
    target.check()
    return target


def smoke(arguments: argparse.Namespace) -> int:
    """Run the smoke suite and write the report."""
    phases, target = verbs.start(arguments.started), _target(arguments)
    target.load(phases)
    verbs.smoke(phases, target.inventory, *arguments.selection, environment=target.environment)
    return report.build(run.BUILD, verbs.bill().versions)


def matrix(arguments: argparse.Namespace) -> int:
    """Run the matrix and write the report."""
    phases, target = verbs.start(arguments.started), _target(arguments)
    verbs.matrix(phases, target.inventory, *arguments.selection, environment=target.environment)
    return report.build(run.BUILD, verbs.bill().versions)


def fetch(_: argparse.Namespace) -> int:
    """Fill the cache of artifacts."""
    verbs.fetch(verbs.start())
    return 0


def lock(arguments: argparse.Namespace) -> int:
    """Resolve and record every artifact."""
    locking.lock(run.ROOT / arguments.bill, artifacts.cache_dir(), print, root=run.ROOT)
    return 0


def compose_up(arguments: argparse.Namespace) -> int:
    """Start the stack of docker compose."""
    verbs.compose_up(verbs.start(arguments.started), dotenv.load(arguments.env_file))
    return 0


def compose_image(arguments: argparse.Namespace) -> int:
    """Build its images."""
    verbs.compose_image(verbs.start(arguments.started), dotenv.load(arguments.env_file))
    return 0


def compose_names(arguments: argparse.Namespace) -> int:
    """Make the names of its containers known, or forgotten."""
    verbs.compose_names(dotenv.load(arguments.env_file), forget=arguments.forget)
    return 0


def compose_down(arguments: argparse.Namespace) -> int:
    """Remove its containers."""
    settings = dotenv.load(arguments.env_file)
    verbs.compose_down(settings, volumes=arguments.volumes)
    kept = "its data, its passwords and its history went with it" if arguments.volumes else "its data stays"
    print(f"{settings.project} is removed; {kept}")  # noqa: T201 -- this is the verb's answer
    return 0


def risky_tables(arguments: argparse.Namespace) -> int:
    """Print the tables that another engine reads wrongly, or that share a location; 1 if there are any."""
    target = _target(arguments)
    run.playbook("endpoints", target.inventory, environment=target.environment)
    findings = risky.find(run.BUILD / "endpoints.json")
    for line in risky.summary(findings):
        print(line)  # noqa: T201 -- this is the verb's answer
    return int(any(finding.risk.effect in features.SERIOUS for finding in findings))


def bench(arguments: argparse.Namespace) -> int:
    """Measure the numbers of docs/numbers.yml."""
    if arguments.target == targets.COMPOSE:
        return measuring.measure_compose(dotenv.load(arguments.env_file))
    return measuring.measure(arguments.inventory, arguments.confirm)
