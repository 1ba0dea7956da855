import click

from lakehouse import commands, run, shared_options, verbs
from lakehouse.dev import drills
from lakehouse.local import nodes
from lakehouse.model import profile
from lakehouse.phases import Phases


@commands.command()
@click.argument("names", metavar="[DRILL]...", nargs=-1)
@shared_options.cluster
@shared_options.inventory
@shared_options.started
def command(names: tuple[str, ...], confirm: str | None, inventory: str, started: float | None) -> int:
    """Run long tests that stop hosts of a cluster of their own, and write docs/drills.md.

    DRILL is a name of docs/drills.md, with _ for spaces, or due: those with changed tests (default: all).
    """
    phases = verbs.start(started)
    chosen, when = drills.named(names), drills.circumstances()
    control, nodewise, compose = (
        [drill for drill in chosen if drill.where == where]
        for where in (drills.CONTROL, drills.NODES, drills.COMPOSE)
    )
    if nodewise:
        verbs.confirm(phases, inventory, confirm)
    verbs.fetch(phases)
    # Before there are nodes, which take their share of the cores: these measure seconds.
    passed = [_passes(phases, drill, when) for drill in control]
    if nodewise:
        verbs.keep_profile(phases, inventory, profile.FULL)
        verbs.machines(phases, inventory, bare=True)
        verbs.converge(phases, inventory)
        verbs.load(phases, inventory)
        verbs.endpoints(phases, inventory)
        passed += [_passes(phases, drill, when, "--inventory", inventory) for drill in nodewise]
        nodes.down(inventory, phases.log)
    if compose:
        verbs.images_of_tests(phases)
        with verbs.stack_of_tests(phases, verbs.compose_of_tests(), keep=False):
            passed += [_passes(phases, drill, when) for drill in compose]
    return int(not all(passed))


def _passes(phases: Phases, drill: drills.Drill, when: drills.Run, *arguments: str) -> bool:
    """Run a file of drills and write its section of the page; return whether all of it passed."""
    drill.results.unlink(missing_ok=True)
    words = ["-m", verbs.LONG, f"--junit-xml={drill.results}", str(drill.path), *arguments]
    passed = verbs.timed(phases, f"drill {drill.name}", [run.program("pytest"), *words])
    drills.record(drill, when)
    return passed
