"""Phases that several commands share."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from lakehouse import artifacts, report, run
from lakehouse.artifacts import manifest, releases
from lakehouse.errors import LakehouseError
from lakehouse.local import nodes
from lakehouse.local.compose import addresses, dotenv, images, names, owner, stack
from lakehouse.local.compose.dotenv import Settings
from lakehouse.local.nodes import docker_api
from lakehouse.model import inventory, placement, profile, services, specs
from lakehouse.phases import PASSED, Phase, Phases
from lakehouse.report import CENSUS, record
from lakehouse.tables import census_page, census_program
from lakehouse.validation import secrets, variables

REPORT = run.BUILD / "report"
PHASES = REPORT / "phases.json"
# Marks what `make drills` runs and `make test` leaves out.
LONG = "longdrill"
# Arguments of pytest for the tests of `make test`; the slowest are shown, for who wants it faster.
_SLOWEST = "--durations=20"
_SHORT = ["-m", f"not {LONG}", _SLOWEST]
# Those of a cluster: files that do not disturb each other side by side, then what has to be alone on it.
CLUSTER_TESTS = {
    "cluster tests": [
        "-m", f"not (alone or drill or {LONG})", "--numprocesses", "2", "--dist", "loadfile", _SLOWEST,
    ],
    "drills": ["-m", f"(alone or drill) and not {LONG}", _SLOWEST],
}  # fmt: skip
_CENSUS_SECONDS = 3600.0
# The folders of the two suites.
SMOKE, MATRIX = "smoke", "suites/matrix"
# The cluster of `make test` alone: no other data is on it.
TEST_INVENTORY = run.ROOT / "tests" / "inventory"
COMPOSE_TESTS = run.ROOT / "tests" / "compose"
# What its tests start where they need it.
_EVERYTHING = "all,past"


def bill() -> manifest.Manifest:
    """The bill of materials."""
    return manifest.load(run.ROOT / run.BILL)


def is_local(path: str) -> bool:
    """Whether the inventory's machines are containers on this computer."""
    return any("local_nodes_cluster" in host.variables for host in inventory.load(path).hosts)


def confirm(phases: Phases, path: str, typed: str | None) -> None:
    """Raise LakehouseError where a user's nodes would be removed, unless their cluster's name was typed.

    With it they are removed, whichever checkout has made them.
    """
    of_tests = Path(path).resolve() == TEST_INVENTORY
    if not is_local(path) or (of_tests and not typed):
        return
    docker(phases, path)
    cluster = inventory.load(path).hosts[0].variables["local_nodes_cluster"]
    if typed == cluster:
        nodes.down(path, phases.log, whosever=True)
    elif not of_tests and any(node.state != "absent" for node in nodes.status(path)):
        raise LakehouseError(
            f"this begins by removing the nodes of {cluster} with their data; nothing was removed",
            f"repeat with CONFIRM={cluster}",
        )


def is_core(path: str) -> bool:
    """Whether the inventory asks for the small profile."""
    return profile.of(path) == profile.CORE


def keep_profile(phases: Phases, path: str, requested: str | None = None) -> None:
    """Record the requested profile for later runs; log the one that continues if none is requested."""
    if line := profile.remember(path, requested):
        phases.log(line)


def fetch(phases: Phases, *, core: bool = False, names: Collection[str] | None = None) -> None:
    """Fill the cache and build the release archives: of these components, of the small profile, or all."""
    with phases.phase("artifacts"):
        materials, cache = bill(), artifacts.cache_dir()
        if names is None:
            every = materials.components.items()
            names = [name for name, part in every if not core or part.profile == "core"]
        artifacts.fetch(materials, names, cache, phases.log)
        for name in names:
            releases.ensure(materials, name, cache, phases.log)


def engine(phases: Phases) -> None:
    """Ensure that a Docker Engine answers."""
    with phases.phase("docker", spinner=False):
        if run.shown(["scripts/ensure-docker"]):
            raise LakehouseError("no Docker Engine answers", "scripts/ensure-docker")


def docker(phases: Phases, path: str) -> None:
    """Ensure that a Docker Engine answers, if the inventory's machines are to be containers."""
    if is_local(path):
        engine(phases)


def up(phases: Phases, path: str, *, bare: bool = False) -> None:
    """Make the local nodes run, new ones if they are to be ``bare``; leave real machines alone."""
    docker(phases, path)
    if is_local(path):
        if bare:
            nodes.down(path, phases.log)
        with phases.phase("nodes"):
            nodes.up(path, phases.log)


def converge(phases: Phases, path: str, name: str = "converge") -> int:
    """Run the site playbook; return how many tasks changed something."""
    with phases.phase(name) as warn:
        return run.playbook("site", path, warn=warn)


def check(phases: Phases, path: str) -> None:
    """Run the site playbook on bare nodes in check mode."""
    with phases.phase("check"):
        options = variables.options(specs.every())
        secret = set[str]().union(*(secrets.values(host, options) for host in inventory.load(path).hosts))
        would_change = run.playbook("site", path, "--check", "--diff", log="check")
        log = (run.LOGS / "check.log").read_text(encoding="utf-8")
        if not would_change or any(word in log for word in secret):
            problem = "tells a password" if would_change else "says that bare nodes need no change"
            raise LakehouseError(f"check mode {problem}", f"less {run.LOGS / 'check.log'}")


def load(phases: Phases, path: str) -> None:
    """Load the real data."""
    with phases.phase("data"):
        run.playbook("load", path)


def endpoints(phases: Phases, path: str, environment: Mapping[str, str] | None = None) -> None:
    """Write down where everything is, for the suites and the report.

    The inventory's lookups see `environment` in addition to this program's own.
    """
    with phases.phase("endpoints"):
        run.playbook("endpoints", path, environment=environment)


def smoke(phases: Phases, path: str, *selection: str, environment: Mapping[str, str] | None = None) -> bool:
    """Run the smoke suite; tell whether it passed. Its results are the report's source."""
    for old in (*REPORT.glob("*-junit.xml"), REPORT / CENSUS):
        old.unlink(missing_ok=True)
    endpoints(phases, path, environment)
    results = f"--junit-xml={REPORT / 'smoke-junit.xml'}"
    argv = [run.program("pytest"), SMOKE, results, *selection]
    return timed(phases, "smoke", argv)


def matrix(phases: Phases, path: str, *selection: str, environment: Mapping[str, str] | None = None) -> bool:
    """Run the matrix of engines, formats and operations; return whether it passed, or there is no engine."""
    endpoints(phases, path, environment)
    cluster_endpoints = record.load(run.BUILD / "endpoints.json", "make lakehouse")
    if not any(engine in cluster_endpoints for engine in services.load().engines):
        phases.log("no matrix: Spark is the one engine of this cluster")
        return True
    argv = [run.program("pytest"), MATRIX, f"--junit-xml={REPORT / 'matrix-junit.xml'}", *selection]
    return timed(phases, "matrix", argv)


def timed(phases: Phases, name: str, argv: list[str]) -> bool:
    """Run a program on this terminal as a phase; tell whether it passed."""
    with suppress(LakehouseError), phases.phase(name, spinner=False):
        if run.shown(argv):
            raise LakehouseError(f"{name} failed")
        return True
    return False


def machines(phases: Phases, path: str, *, bare: bool = False) -> None:
    """Machines that answer, and beside that everything to install on them."""
    keep_profile(phases, path)
    core = is_core(path)
    with ThreadPoolExecutor() as pool:
        for side in [pool.submit(fetch, phases, core=core), pool.submit(up, phases, path, bare=bare)]:
            side.result()
    if bare:
        check(phases, path)


def serve(phases: Phases, path: str, *selection: str) -> None:
    """From machines to services, data and the results of both suites: of the matrix what is selected."""
    converge(phases, path)
    load(phases, path)
    smoke(phases, path)
    matrix(phases, path, *selection)


def census(phases: Phases, path: str) -> None:
    """Describe all tables, and write a page of them into the report; a failure is one of its problems."""
    cluster = placement.read(inventory.load(path))
    if not cluster.inventory.group("clients"):
        phases.log("no census: no host is in the group clients")
        return
    with suppress(LakehouseError), phases.phase("census"):
        for program in (census_program.collector(cluster), census_program.reporter(cluster)):
            reply = census_program.run(program, _CENSUS_SECONDS)
            if not census_program.is_whole(program, reply):
                finding = census_program.result(program, reply, 0).worst[0]
                phases.log(str(finding))
                raise LakehouseError(finding.fact, finding.next)
        report.write(REPORT / CENSUS, census_page.render(program, reply.document))


def compose_image(phases: Phases, settings: Settings) -> None:
    """From a fresh machine to the images of the stack."""
    engine(phases)
    fetch(phases, names=images.components(settings.profiles))
    stack.build(phases, settings, bill(), renewed=True)


def compose_up(phases: Phases, settings: Settings) -> None:
    """From a fresh machine to a stack whose every service answers."""
    engine(phases)
    stack.check(phases, settings, bill())
    _refuse_foreign(settings)
    fetch(phases, names=images.components(settings.profiles))
    stack.build(phases, settings, bill())
    stack.render(phases, settings)
    stack.up(phases, settings)
    for line in addresses.of(settings):
        phases.log(line)
    if names.unknown(names.of(settings)):
        command = names.command(settings)
        phases.log(f"programs on this computer that read HDFS need its names; next: {command}")


def compose_names(settings: Settings, *, forget: bool) -> None:
    """Write the names of the containers to the hosts file of this computer, or remove them."""
    entry = "" if forget else names.of(settings)
    try:
        names.write(entry)
    except PermissionError as error:
        raise LakehouseError(f"{names.HOSTS} belongs to root", names.command(settings)) from error


def compose_down(settings: Settings, *, volumes: bool) -> None:
    """Remove the stack; its data only with `volumes`."""
    _refuse_foreign(settings)
    stack.down(settings, volumes=volumes)


def _refuse_foreign(settings: Settings) -> None:
    with docker_api.connect() as client:
        owner.refuse(client, settings)


def cluster_test(phases: Phases, path: str) -> bool:
    """The tests of a cluster that runs; all of them are run, whichever fail."""
    pytest = [run.program("pytest"), "tests/cluster", "--inventory", path]
    passed = [timed(phases, name, [*pytest, *chosen]) for name, chosen in CLUSTER_TESTS.items()]
    return all(passed)


def core_first(phases: Phases, path: str) -> bool:
    """Converge the small profile on bare nodes, before the whole comes on top; tell whether it was small."""
    keep_profile(phases, path, profile.CORE)
    try:
        with phases.phase("converge core") as warn:
            # What is kept must do, whatever the person's own environment says.
            run.playbook("site", path, environment={profile.VARIABLE: ""}, warn=warn)
        tests = [run.program("pytest"), "tests/cluster/core_profile.py", "--inventory", path]
        return timed(phases, "core tests", tests)
    finally:
        keep_profile(phases, path, profile.FULL)


def images_of_tests(phases: Phases) -> None:
    """The images of everything that the tests of docker compose start."""
    compose_image(phases, compose_of_tests().with_values(COMPOSE_PROFILES=_EVERYTHING))


def compose_test(phases: Phases, *, keep: bool) -> bool:
    """The stack of docker compose, under names and ports of its own. Both suites on it are `nightly`'s."""
    settings = compose_of_tests()
    endpoints = settings.rendered / "endpoints.json"
    with stack_of_tests(phases, settings, keep=keep):
        with phases.phase("compose endpoints"):
            target = f"lakehouse_endpoints_file={endpoints}"
            run.playbook("endpoints", settings.inventory, "--extra-vars", target, environment=settings.values)
        return timed(phases, "compose tests", [run.program("pytest"), str(COMPOSE_TESTS), *_SHORT])


@contextmanager
def stack_of_tests(phases: Phases, settings: Settings, *, keep: bool) -> Iterator[None]:
    """A stack from nothing, with data, whose DataNodes this computer finds; nothing is left unless `keep`."""
    added = bool(names.unknown(names.of(settings)))
    # With what an earlier run has left, nothing would be from nothing; to remove it takes docker compose.
    stack.check(phases, settings, bill())
    # Of whichever checkout: no other data is in the stack of the tests.
    stack.down(settings, volumes=True)
    try:
        compose_up(phases, settings)
        if added:
            compose_names(settings, forget=False)
        with phases.phase("compose data"):
            stack.load(settings)
        yield
    finally:
        if not keep:
            compose_down(settings, volumes=True)
        if added:
            compose_names(settings, forget=True)


def compose_of_tests() -> Settings:
    """The stack of the tests, and nothing of a person's own: what is set in the environment would win."""
    return dotenv.load(COMPOSE_TESTS / "test.env", environment={})


def start(started: float | None = None) -> Phases:
    """Begin a new list of phases; ``started`` (seconds since the epoch) is when the make target began."""
    phases = Phases(PHASES)
    phases.reset()
    if started:
        phases.record(Phase("tools", started, round(time.time() - started, 3), PASSED))
    return phases


def down(path: str) -> None:
    """Remove the local nodes with everything that is on them."""
    if is_local(path):
        nodes.down(path, print)
    else:
        raise LakehouseError(
            f"{path} has real machines, which are never removed",
            f".venv/bin/ansible-playbook -i {path} playbooks/teardown.yml",
        )
