import click

from lakehouse import commands, shared_options
from lakehouse.rolling import removal, run
from lakehouse.shared_options import ChangeOptions


@commands.command()
@click.argument("component")
@click.option("--data", is_flag=True, help="delete its data on the hosts too")
@shared_options.change
def command(component: str, data: bool, options: ChangeOptions) -> int:
    """Uninstall a component without a host in the inventory.

    COMPONENT is trino or flink.
    """
    return run.carry_out(options, removal.VERB, removal.prepare, {"component": component, "data": data})
