"""What engines have counted by column, in a merge: nothing is left of columns that the table has not."""

from __future__ import annotations

from lakehouse.catalog import build
from lakehouse.catalog.documents import Document, pretty, without_nothing
from lakehouse.catalog.merging.folders import replaced
from lakehouse.catalog.merging.references import Catalog, changed
from lakehouse.catalog.merging.sides import Three
from lakehouse.catalog.store import Writer

_OF_COLUMN = "spark.sql.statistics.colStats."


def without_columns(writer: Writer, trees: Three[str | None], tree: str) -> str:
    """Return a merged tree without statistics of columns that one side counted and the other one dropped.

    Those of partitions stay: a restore brings back none, and a client asks for columns that are there.
    """
    both = changed(writer, trees.base, trees.ours) & changed(writer, trees.base, trees.theirs)
    merged = Catalog(writer, tree)
    number = writer.tree(tree).get(build.STATISTICS)
    patch, paths = build.Folder(), []
    for name in (one for one in both if one.table):
        path = (*name.path, build.TABLE)
        counted, said = merged.document(name, build.STATISTICS), merged.document(name)
        if counted and said and (left := _left(counted, _names(said))) != counted:
            paths.append(path)
            if left:
                patch.put(path, writer.add_blob(pretty(left)))
    if not paths:
        return tree
    stays = replaced(writer, Three(None, number, patch.made(writer)), paths)
    found = {**writer.tree(tree), build.STATISTICS: stays}
    return build.folder(writer, {part: one for part, one in found.items() if one})


def _names(said: Document) -> set[str]:
    return {str(one["name"]).lower() for one in said.get("storage", {}).get("columns") or ()}


def _left(counted: Document, columns: set[str]) -> Document:
    """Return statistics of these columns alone."""
    rows = [one for one in counted.get("columns") or () if str(one.get("COLUMN_NAME")).lower() in columns]
    parameters = {
        key: value for key, value in (counted.get("parameters") or {}).items() if _is_of(key, columns)
    }
    return without_nothing({**counted, "columns": rows, "parameters": parameters})


def _is_of(parameter: str, columns: set[str]) -> bool:
    if not parameter.startswith(_OF_COLUMN):
        return True
    # Such as colStats.<column>.min: a name may have dots.
    column = parameter.removeprefix(_OF_COLUMN).rpartition(".")[0]
    return column.lower() in columns
