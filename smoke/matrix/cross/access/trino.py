"""What people may do through Trino: statements, and every procedure that the release brings."""

from __future__ import annotations

from collections.abc import Mapping

from smoke.matrix.cross.access.acts import Act, Ground
from smoke.matrix.cross.engines import TRINO, name
from smoke.tables import Table


def said(statement: str, **settings: object) -> Act:
    """Return the act of sending a statement; `{table}` is the table's full name in Trino."""

    def do(ground: Ground, who: str, table: Table) -> None:
        ground.trino(who).sql(statement.format(table=name(TRINO, table)))

    return Act(do, **settings)  # type: ignore[arg-type]


ACTS: Mapping[str, Act] = {
    "`SELECT`": said("SELECT id FROM {table}"),
    "`INSERT`": said("INSERT INTO {table} VALUES 3"),
}
