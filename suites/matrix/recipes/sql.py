"""SQL that more than one engine understands."""

from __future__ import annotations

from suites.matrix.recipes.recipe import Recipe, recipe

# The fourth order, as VALUES want it.
ROW = "(4, 'fay', DATE '2024-03-01', 40.00)"
_CHANGED = f"(2, 'bob', DATE '2024-02-15', 25.00), {ROW}"


def merge(source: str, insert: str) -> str:
    """Return a MERGE of two changed orders; `source` yields `{rows}`, `insert` is what a new one needs."""
    return (
        f"MERGE INTO {{table}} AS old USING (SELECT * FROM {source.format(rows=_CHANGED)}) AS new"
        " ON old.id = new.id WHEN MATCHED THEN UPDATE SET amount = new.amount"
        f" WHEN NOT MATCHED THEN {insert}"
    )


def common(quoted: str = "day") -> dict[str, Recipe]:
    """Return the statements that hardly differ; `quoted` is the name of the column `day`, a reserved word."""
    columns = f"id, customer, {quoted}, amount"
    return {
        "read": recipe(f"SELECT {columns} FROM {{table}} ORDER BY id"),
        "insert": recipe(f"INSERT INTO {{table}} VALUES {ROW}"),
        "append": recipe(f"INSERT INTO {{table}} SELECT id + 10, customer, {quoted}, amount FROM {{table}}"),
        "update": recipe(
            "UPDATE {table} SET amount = amount + 1, customer = upper(customer)"
            f" WHERE {quoted} >= DATE '2024-02-01'"
        ),
        "delete": recipe("DELETE FROM {table} WHERE id = 2"),
        "read view": recipe(f"SELECT {columns} FROM {{view}} ORDER BY id"),
        "drop": recipe("DROP TABLE {table}"),
    }
