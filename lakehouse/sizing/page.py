"""docs/sizing.md: the model's sizes of common machines, written by ``make docs``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path

from lakehouse import run
from lakehouse.sizing import fixed
from lakehouse.sizing.facts import Cluster
from lakehouse.sizing.placements import MACHINES, NODES, Machine, colocated, separated
from lakehouse.sizing.plan import Plan, Sizes, plan

PAGE = run.ROOT / "docs" / "sizing.md"
TEXT = Path(__file__).with_name("page.md")
COLUMNS = (
    "Machine",
    "Nodes",
    "NameNode / handlers",
    "DataNode",
    "Metastore / pool",
    "PostgreSQL",
    "Spark executors of a worker",
    "Cores: all / application",
    "Trino heap / query in the cluster",
    "Flink process / slots / parallelism",
    "Fullest host",
)


def pages() -> dict[Path, str]:
    """The page by its path."""
    text = TEXT.read_text(encoding="utf-8")
    tables = {"colocated": table(colocated), "separated": table(separated), "services": services()}
    for name, rows in tables.items():
        text = text.replace(f"{{{name}}}", rows)
    return {PAGE: text}


def services() -> str:
    """A row for each service whose heap the catalogue says."""
    columns = ("Service", "Variable", "Heap", "Beside it")
    rows = [
        (
            f"`{name}`",
            f"`{row.variables[0]}`",
            f"M/{row.heap.divisor}, {row.least} to {row.heap.most}",
            off_heap(row),
        )
        for name, row in fixed.FIXED.items()
    ]
    return "\n".join(_line(row) for row in (columns, ["---"] * len(columns), *rows))


def off_heap(row: fixed.Fixed) -> str:
    """Return the memory of a service's process outside of its heap."""
    heap = row.heap
    return f"max({heap.beside}, {100 * heap.overhead:g} %)" if heap.beside or heap.overhead else "nothing"


def table(layout: Callable[[Machine, int], Cluster]) -> str:
    """A row for each machine and number of nodes; a dash is what is not placed."""
    rows = [_line(COLUMNS), _line("---" for _ in COLUMNS)]
    rows += [
        _line(_cells(machine, nodes, layout(machine, nodes))) for machine, nodes in product(MACHINES, NODES)
    ]
    return "\n".join(rows)


def _cells(machine: Machine, nodes: int, cluster: Cluster) -> list[str]:
    size_plan = plan(cluster)
    sizes = {
        service: size_plan.sizes[cluster.having(service)[0].name]
        for service in ("namenode", "datanode", "spark_worker", "trino", "flink_taskmanager")
        if cluster.having(service)
    }
    master = sizes["namenode"]
    return [
        f"{machine.memory_gib} GiB / {machine.cores}, {machine.disk_gb / 1000:g} TB",
        str(nodes),
        f"{master['hdfs_namenode_heap_mb']} / {master['hdfs_namenode_handlers']}",
        str(sizes["datanode"]["hdfs_datanode_heap_mb"]),
        f"{master['hive_metastore_heap_mb']} / {master['hive_metastore_pool_size']}",
        str(master["postgresql_shared_buffers_mb"]),
        _executors(sizes.get("spark_worker")),
        _cores(cluster, size_plan),
        _trino(sizes.get("trino")),
        _flink(sizes.get("flink_taskmanager")),
        _fullest(machine, size_plan),
    ]


def _executors(of: Sizes | None) -> str:
    if of is None:
        return "-"
    count = of["spark_worker_cores"] // of["spark_executor_cores"]
    return f"{count} x ({of['spark_executor_cores']}, {of['spark_executor_memory_mb']})"


def _cores(cluster: Cluster, size_plan: Plan) -> str:
    workers = [size_plan.sizes[host.name] for host in cluster.having("spark_worker")]
    total = sum(sizes["spark_worker_cores"] for sizes in workers)
    return f"{total} / {workers[0]['spark_application_cores']}" if workers else "-"


def _trino(of: Sizes | None) -> str:
    return f"{of['trino_heap_mb']} / {of['trino_query_max_memory_mb']}" if of else "-"


def _flink(of: Sizes | None) -> str:
    names = ("flink_taskmanager_memory_mb", "flink_taskmanager_slots", "flink_parallelism")
    return " / ".join(str(of[name]) for name in names) if of else "-"


def _fullest(machine: Machine, size_plan: Plan) -> str:
    total = max(sum(processes.values()) for processes in size_plan.processes.values())
    gap = max((gap.missing_mb for gap in size_plan.gaps), default=0)
    share = f"{100 * total / (machine.memory_gib * 1024):.1f} %"
    return f"{share}, {gap} MiB short" if gap else share


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |".replace("| --- ", "|---").replace("|--- |", "|---|")
