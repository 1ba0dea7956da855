"""Column statistics in a merge: those of columns that the merged table lacks are removed."""

from __future__ import annotations

from lakehouse.catalog import build
from lakehouse.catalog.documents import Document, pretty, without_nothing
from lakehouse.catalog.merging.folders import replaced
from lakehouse.catalog.merging.references import Catalog, changed
from lakehouse.catalog.merging.sides import Three
from lakehouse.catalog.store import Writer

_OF_COLUMN = "spark.sql.statistics.colStats."


def without_columns(writer: Writer, trees: Three[str | None], tree: str) -> str:
    """Return a merged tree without the statistics of columns that the other side has dropped.

    Those of partitions stay: a restore writes none, and clients request existing columns only.
    """
    names = changed(writer, trees.base, trees.ours) & changed(writer, trees.base, trees.theirs)
    merged = Catalog(writer, tree)
    number = writer.tree(tree).get(build.STATISTICS)
    patch, paths = build.Folder(), []
    for table in (name for name in names if name.table):
        path = (*table.path, build.TABLE)
        statistics, document = merged.document(table, build.STATISTICS), merged.document(table)
        if not statistics or not document:
            continue
        remaining = _of_columns(statistics, _column_names(document))
        if remaining != statistics:
            paths.append(path)
            if remaining:
                patch.put(path, writer.add_blob(pretty(remaining)))
    if not paths:
        return tree
    new_number = replaced(writer, Three(None, number, patch.write(writer)), paths)
    parts = {**writer.tree(tree), build.STATISTICS: new_number}
    return build.folder(writer, {part: part_number for part, part_number in parts.items() if part_number})


def _column_names(table: Document) -> set[str]:
    return {str(column["name"]).lower() for column in table.get("storage", {}).get("columns") or ()}


def _of_columns(statistics: Document, columns: set[str]) -> Document:
    """Return the statistics of these columns, and those of the table."""
    rows = [row for row in statistics.get("columns") or () if str(row.get("COLUMN_NAME")).lower() in columns]
    parameters = {
        key: value for key, value in (statistics.get("parameters") or {}).items() if _is_of(key, columns)
    }
    return without_nothing({**statistics, "columns": rows, "parameters": parameters})


def _is_of(parameter: str, columns: set[str]) -> bool:
    if not parameter.startswith(_OF_COLUMN):
        return True
    # Such as colStats.<column>.min, in which the name of the column may contain dots.
    column = parameter.removeprefix(_OF_COLUMN).rpartition(".")[0]
    return column.lower() in columns
