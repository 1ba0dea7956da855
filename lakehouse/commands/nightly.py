import shutil

from lakehouse import commands, report, run, shared_options, verbs

# The last report.
REPORT = run.BUILD / "nightly"


@commands.command()
@shared_options.started
def command(started: float | None) -> int:
    """Run both suites on docker compose, and keep the report."""
    phases = verbs.start(started)
    settings = verbs.compose_of_tests().with_values(COMPOSE_PROFILES="all")
    verbs.engine(phases)
    verbs.compose_image(phases, settings)
    with verbs.stack_of_tests(phases, settings, keep=False):
        verbs.smoke(phases, settings.inventory, environment=settings.values)
        verbs.matrix(phases, settings.inventory, environment=settings.values)
        code = report.build(run.BUILD, verbs.bill().versions)
        shutil.rmtree(REPORT, ignore_errors=True)
        shutil.copytree(verbs.REPORT, REPORT)
        return code
