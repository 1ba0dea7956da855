"""Merge the documents of one object, value by value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakehouse.catalog import diff
from lakehouse.catalog.documents import Document, in_order, of_data
from lakehouse.catalog.merging.sides import Choice, Clash, Side, Three, at

Path = tuple[str, ...]

# The paths of nested documents, with the prefix of the fields in them.
_MAPS: Mapping[Path, str] = {
    (): "",
    ("parameters",): "parameter ",
    ("storage",): "",
    ("storage", "parameters"): "storage parameter ",
    ("storage", "serde"): "serde ",
    ("storage", "serde", "parameters"): "serde parameter ",
}
_COLUMNS: Path = ("storage", "columns")
# The paths of lists of documents, each with its own name, with the prefix of their fields.
_LISTS: Mapping[Path, str] = {
    _COLUMNS: f"{diff.COLUMN} ",
    ("constraints",): "constraint ",
    ("privileges",): "privilege ",
    ("roles",): "role ",
}
_FIELDS = {**_MAPS, **_LISTS}
_DATA: Path = (diff.DATA,)
_CREATED: Path = (diff.CREATED,)
# A missing value; a parameter may be None.
_NOTHING: Any = object()


@dataclass(frozen=True)
class _Data:
    """The state of a table's files, and the parameters about it: they change together."""

    state: Document
    parameters: Document


def merged(documents: Three[Document | None], choice: Choice) -> tuple[dict[str, Any], list[Clash]]:
    """Return the merged document of an object, and the conflicts.

    Without a base, both sides must be equal, except for the time of creation.
    """
    parts = documents.each(lambda document: _flat(document or {}))
    merged_values: dict[Path, Any] = {}
    clashes: list[Clash] = []
    for path in dict.fromkeys([*parts.ours, *parts.theirs]):
        values = at(parts, path, _NOTHING)
        if path == _DATA and not choice.data:
            value = values.ours
        elif not (values.apart or (documents.base is None and values.ours != values.theirs)):
            value = values.clean
        elif _without_created(path, values.ours) == _without_created(path, values.theirs):
            value = min(values[1:], key=_age)
        else:
            value = values.of(choice.side)
            clashes.append(Clash(_field(path), values.each(_shown)))
        if value is not _NOTHING:
            merged_values[path] = value
    names = parts.each(_columns)
    order, clash = _order(names, [path[-1] for path in merged_values if path[:-1] == _COLUMNS], choice)
    return _unflattened(merged_values, order), [*clashes, *([clash] if clash else [])]


def _flat(document: Document) -> dict[Path, Any]:
    """Return the values of a document by their paths."""
    values, data = dict(_walk(document, ())), {}
    for path in [path for path in values if path[:-1] == ("parameters",) and of_data(document, path[-1])]:
        data[path[-1]] = values.pop(path)
    if diff.DATA in document:
        values[_DATA] = _Data(document[diff.DATA], data)
    return values


def _walk(document: Document, parent: Path) -> Iterator[tuple[Path, Any]]:
    for key, value in document.items():
        path = (*parent, key)
        if path in _MAPS:
            yield from _walk(value, path)
        elif path in _LISTS:
            counts: dict[str, int] = {}
            for row in value:
                name = diff.label(row, ordered=path == ("constraints",))
                counts[name] = counts.get(name, 0) + 1
                # Duplicates in a database are numbered, so that none is lost.
                yield (*path, f"{name} ({counts[name]})" if counts[name] > 1 else name), row
        else:
            yield path, value


def _unflattened(values: Mapping[Path, Any], columns: Sequence[str]) -> dict[str, Any]:
    """Return the document that has these values."""
    document: dict[str, Any] = {}
    for path, value in values.items():
        if path == _DATA:
            document[diff.DATA] = value.state
            if value.parameters:
                document.setdefault("parameters", {}).update(value.parameters)
        elif path[:-1] != _COLUMNS:
            parent = document
            for key in path[:-1]:
                parent = parent.setdefault(key, {})
            parent[path[-1]] = value
    for path in _LISTS.keys() - {_COLUMNS}:
        if path[0] in document:
            document[path[0]] = in_order(document[path[0]].values())
    if columns:
        document.setdefault("storage", {})["columns"] = [values[*_COLUMNS, column] for column in columns]
    return document


def _columns(paths: Iterable[Path]) -> list[str]:
    return [path[-1] for path in paths if path[:-1] == _COLUMNS]


def _order(names: Three[list[str]], merged: Iterable[str], choice: Choice) -> tuple[list[str], Clash | None]:
    """Return the merged columns in the order of the side that has changed it, or else in ours.

    A column of the other side alone follows its predecessor there; ours come before theirs.
    """
    columns = set(merged)
    common = set(names.ours) & set(names.theirs) & set(names.base or names.ours)
    orders = names.each(lambda side: tuple(name for name in side if name in common))
    first_is_theirs = choice.side is Side.THEIRS if orders.apart else orders.clean != orders.ours
    first, second = (names.theirs, names.ours) if first_is_theirs else (names.ours, names.theirs)
    order = [name for name in first if name in columns]
    only_first, position = set(first) - set(second), 0
    for name in second:
        if name in order:
            position = order.index(name) + 1
        elif name in columns:
            while not first_is_theirs and position < len(order) and order[position] in only_first:
                position += 1
            order.insert(position, name)
            position += 1
    clash = Clash(diff.ORDER, names.each(lambda side: side or None)) if orders.apart else None
    return order, clash


def _field(path: Path) -> str:
    """Return the name of a value's field, as in `diff.fields`."""
    return f"{_FIELDS[path[:-1]]}{path[-1]}"


def _without_created(path: Path, value: Any) -> Any:
    """Return a value without its time of creation, which is no difference."""
    if path == _CREATED:
        return None
    return {**value, diff.CREATED: 0} if isinstance(value, dict) else value


def _age(value: Any) -> int:
    created = value.get(diff.CREATED) if isinstance(value, dict) else value
    return created if isinstance(created, int) else 0


def _shown(value: Any) -> Any:
    """Return a value for the message and JSON of a conflict."""
    return None if value is _NOTHING else value.state if isinstance(value, _Data) else value
