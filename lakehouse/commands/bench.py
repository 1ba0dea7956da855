from pathlib import Path

from lakehouse import commands, shared_options
from lakehouse.dev import bench
from lakehouse.local.compose import dotenv


@commands.command()
@shared_options.cluster
@shared_options.target
@shared_options.inventory
def command(confirm: str | None, target: str, env_file: Path | None, inventory: str) -> int:
    """Measure the times of docs/benchmarks.md, into docs/numbers.yml."""
    if target == shared_options.COMPOSE:
        return bench.measure_compose(dotenv.load(env_file))
    return bench.measure(inventory, confirm)
