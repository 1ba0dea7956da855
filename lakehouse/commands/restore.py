import click

from lakehouse import commands, shared_options
from lakehouse.backup import restore, table_restore
from lakehouse.errors import UsageError
from lakehouse.rolling import run
from lakehouse.shared_options import ChangeOptions


@commands.command(exclusive=[("table", "database", "to")])
@click.argument("backup", required=False)
@click.option("--table", metavar="DATABASE.NAME", help="only this table, while the cluster runs")
@click.option("--database", metavar="DATABASE", help="only the tables of this database")
@click.option("--to", metavar="TIME", help="catalog as of a time after the backup, with its UTC offset")
@click.option("--as", "new_name", metavar="NAME", help="with --table: restore it under this name")
@shared_options.change
def command(
    backup: str | None,
    table: str | None,
    database: str | None,
    to: str | None,
    new_name: str | None,
    options: ChangeOptions,
) -> int:
    """Restore a cluster, a database or a table from a backup.

    BACKUP is the one to restore (default: the newest).
    """
    if new_name and not table:
        raise UsageError("--as is another name for the one table that --table names")
    values = {"backup": backup, "table": table, "database": database, "as": new_name, "to": to}
    arguments = {name: value or "" for name, value in values.items()}
    return run.carry_out(options, restore.VERB, table_restore.prepare_restore, arguments)
