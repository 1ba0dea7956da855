import click

from lakehouse import commands, shared_options
from lakehouse.rolling import run
from lakehouse.shared_options import ChangeOptions
from lakehouse.upgrade import preparation


@commands.command()
@click.argument("component", default="all")
@click.option(
    "--to", metavar="VERSION", help="required version in versions.yml; for postgresql, the version to install"
)
@shared_options.bill
@click.option("--finalize", is_flag=True, help="with hadoop: finalize the upgrade of HDFS; ends rollback")
@shared_options.force("upgrade although these versions were never tested together")
@click.option(
    "--ready",
    type=float,
    default=240.0,
    metavar="SECONDS",
    help="seconds to wait for readiness before rolling back",
)
@shared_options.wait
@shared_options.change
def command(
    component: str,
    to: str | None,
    bill: str,
    finalize: bool,
    force: bool,
    ready: float,
    wait: float,
    options: ChangeOptions,
) -> int:
    """Switch to the releases of versions.yml, with rollback on failure.

    COMPONENT is postgresql, or a version of versions.yml, such as iceberg (default: all versions of it).
    """
    arguments = {
        "component": component,
        "to": to,
        "bill": bill,
        "force": force,
        "wait": wait,
        "ready": ready,
        "finalize": finalize,
    }
    return run.carry_out(options, preparation.VERB, preparation.prepare, arguments)
