import os
from concurrent.futures import ThreadPoolExecutor

import click

from lakehouse import commands, report, run, shared_options, verbs
from lakehouse.errors import LakehouseError
from lakehouse.local import nodes
from lakehouse.local.compose import names
from plugins.module_utils.lakehouse.counting import counted

FAST_CHECKS = {name: ["make", "--no-print-directory", name] for name in ("lint", "unit")}
# Minutes of queries, which `make nightly` runs.
_WITHOUT_TPCH = f"--ignore={verbs.MATRIX}/tpch"
# The real Maven's. A folder of thousands would be collected for it.
NETWORK_TESTS = "tests/unit/test_artifacts.py"


@commands.command()
@click.option("--keep", is_flag=True, help="leave the cluster running")
@shared_options.cluster
@shared_options.inventory
@shared_options.started
def command(keep: bool, confirm: str | None, inventory: str, started: float | None) -> int:
    """Run linters, unit tests, and all tests of a cluster of their own, from bare nodes on."""
    phases = verbs.start(started)
    verbs.confirm(phases, inventory, confirm)
    if names.unknown(names.of(verbs.compose_of_tests())) and not os.access(names.HOSTS, os.W_OK):
        # Reported now, not after half an hour.
        raise LakehouseError(
            f"{names.HOSTS} belongs to root, and lacks names that the tests of docker compose need",
            f"sudo make compose-names ENV_FILE={verbs.COMPOSE_TESTS.relative_to(run.ROOT) / 'test.env'}",
        )
    # Beside the first checks comes what the unit tests read of the releases, then compose's images.
    with ThreadPoolExecutor() as pool:
        releases = pool.submit(verbs.fetch, phases, core=verbs.is_core(inventory))
        if not verbs.timed(phases, "lint", FAST_CHECKS["lint"]):
            return 1
        releases.result()
        images = pool.submit(verbs.images_of_tests, phases)
        if not verbs.timed(phases, "unit", FAST_CHECKS["unit"]):
            return 1
        images.result()
    local = verbs.is_local(inventory)
    if not local:
        verbs.engine(phases)  # the tests of local nodes and of docker compose need one all the same
    verbs.machines(phases, inventory, bare=True)
    # Real machines may run the whole already.
    small = not local or verbs.is_core(inventory) or verbs.core_first(phases, inventory)
    verbs.serve(phases, inventory, _WITHOUT_TPCH)
    changed = verbs.converge(phases, inventory, "converge again")
    if changed:
        phases.log(
            f"the second converge changed {counted(changed, 'task')} (expected 0);"
            f" next: less {run.LOGS / 'site.log'}"
        )
    # Not before: now there is a Maven.
    network = verbs.timed(phases, "network tests", [run.program("pytest"), NETWORK_TESTS, "-m", "network"])
    cluster = verbs.cluster_test(phases, inventory)
    code = report.build(run.BUILD, verbs.bill().versions)
    if not keep:
        nodes.down(inventory, phases.log)
    passed = small and network and cluster and not code and not changed
    return int(not (passed and verbs.compose_test(phases, keep=keep)))
