"""Replace parts of a tree by those of another one."""

from __future__ import annotations

from collections.abc import Collection

from lakehouse.catalog import build
from lakehouse.catalog.merging.sides import Three, at
from lakehouse.catalog.store import Writer


def replaced(writer: Writer, ids: Three[str | None], places: Collection[tuple[str, ...]]) -> str | None:
    """Return our folder with the entries of theirs at these paths; None if it is empty then."""
    if not places:
        return ids.ours
    if () in places:
        return ids.theirs
    folders = ids.each(lambda number: writer.tree(number) if number else {})
    by_name: dict[str, list[tuple[str, ...]]] = {}
    for name, *tail in places:
        by_name.setdefault(name, []).append(tuple(tail))
    merged = dict(folders.ours)
    for name, tails in by_name.items():
        number = replaced(writer, at(folders, name, None), tails)
        if number:
            merged[name] = number
        else:
            merged.pop(name, None)
    return build.folder(writer, merged) if merged else None
