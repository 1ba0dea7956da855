"""Parts of one tree in place of those of another one."""

from __future__ import annotations

from collections.abc import Collection

from lakehouse.catalog import build
from lakehouse.catalog.merging.sides import Three, at
from lakehouse.catalog.store import Writer


def replaced(writer: Writer, ids: Three[str | None], places: Collection[tuple[str, ...]]) -> str | None:
    """Return our folder with what theirs has at these places; None where nothing is left."""
    if not places:
        return ids.ours
    if () in places:
        return ids.theirs
    folders = ids.each(lambda number: writer.tree(number) if number else {})
    below: dict[str, list[tuple[str, ...]]] = {}
    for word, *rest in places:
        below.setdefault(word, []).append(tuple(rest))
    made = dict(folders.ours)
    for word, rests in below.items():
        number = replaced(writer, at(folders, word, None), rests)
        if number:
            made[word] = number
        else:
            made.pop(word, None)
    return build.folder(writer, made) if made else None
