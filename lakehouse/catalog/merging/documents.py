"""Documents of one object become one, value by value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakehouse.catalog import diff
from lakehouse.catalog.documents import Document, in_order, of_data
from lakehouse.catalog.merging.sides import Choice, Clash, Side, Three, at

Path = tuple[str, ...]

# Where documents hold values by name, and what a value there is called.
_MAPS: Mapping[Path, str] = {
    (): "",
    ("parameters",): "parameter ",
    ("storage",): "",
    ("storage", "parameters"): "storage parameter ",
    ("storage", "serde"): "serde ",
    ("storage", "serde", "parameters"): "serde parameter ",
}
_COLUMNS: Path = ("storage", "columns")
# Lists of documents, each with a name of its own.
_LISTS: Mapping[Path, str] = {
    _COLUMNS: f"{diff.COLUMN} ",
    ("constraints",): "constraint ",
    ("privileges",): "privilege ",
    ("roles",): "role ",
}
_FIELDS = {**_MAPS, **_LISTS}
_DATA: Path = (diff.DATA,)
_CREATED: Path = (diff.CREATED,)
# Other than None, which a parameter may be.
_NOTHING: Any = object()


@dataclass(frozen=True)
class _Data:
    """Which state of its files a table has, and the parameters that say so: they change as one."""

    said: Document
    parameters: Document


def merged(said: Three[Document | None], choice: Choice) -> tuple[dict[str, Any], list[Clash]]:
    """Return the document that an object becomes, and what each side has changed to something else.

    Where there was none, both have to be the same but for when they were created.
    """
    parts = said.each(lambda one: _flat(one or {}))
    found: dict[Path, Any] = {}
    clashes: list[Clash] = []
    for path in dict.fromkeys([*parts.ours, *parts.theirs]):
        values = at(parts, path, _NOTHING)
        if path == _DATA and not choice.data:
            value = values.ours
        elif not (values.apart or (said.base is None and values.ours != values.theirs)):
            value = values.clean
        elif _as_old(path, values.ours) == _as_old(path, values.theirs):
            value = min(values[1:], key=_age)
        else:
            value = values.of(choice.side)
            clashes.append(Clash(_field(path), values.each(_told)))
        if value is not _NOTHING:
            found[path] = value
    names = parts.each(_columns)
    order, clash = _order(names, [path[-1] for path in found if path[:-1] == _COLUMNS], choice)
    return _whole(found, order), [*clashes, *([clash] if clash else [])]


def _flat(said: Document) -> dict[Path, Any]:
    """Return a document as values by their places in it."""
    found, data = dict(_walk(said, ())), {}
    for path in [one for one in found if one[:-1] == ("parameters",) and of_data(said, one[-1])]:
        data[path[-1]] = found.pop(path)
    if diff.DATA in said:
        found[_DATA] = _Data(said[diff.DATA], data)
    return found


def _walk(said: Document, above: Path) -> Iterator[tuple[Path, Any]]:
    for key, value in said.items():
        path = (*above, key)
        if path in _MAPS:
            yield from _walk(value, path)
        elif path in _LISTS:
            seen: dict[str, int] = {}
            for one in value:
                name = diff.label(one, ordered=path == ("constraints",))
                seen[name] = seen.get(name, 0) + 1
                # Nothing may be lost, whatever a database holds twice.
                yield (*path, f"{name} ({seen[name]})" if seen[name] > 1 else name), one
        else:
            yield path, value


def _whole(found: Mapping[Path, Any], columns: Sequence[str]) -> dict[str, Any]:
    """Return the document that has these values."""
    said: dict[str, Any] = {}
    for path, value in found.items():
        if path == _DATA:
            said[diff.DATA] = value.said
            if value.parameters:
                said.setdefault("parameters", {}).update(value.parameters)
        elif path[:-1] != _COLUMNS:
            here = said
            for word in path[:-1]:
                here = here.setdefault(word, {})
            here[path[-1]] = value
    for path in _LISTS.keys() - {_COLUMNS}:
        if path[0] in said:
            said[path[0]] = in_order(said[path[0]].values())
    if columns:
        said.setdefault("storage", {})["columns"] = [found[*_COLUMNS, one] for one in columns]
    return said


def _columns(part: Iterable[Path]) -> list[str]:
    return [path[-1] for path in part if path[:-1] == _COLUMNS]


def _order(names: Three[list[str]], kept: Iterable[str], choice: Choice) -> tuple[list[str], Clash | None]:
    """Return columns in the order of the side that has changed it, and ours where none has.

    What the other side alone has comes behind the column that it is behind there; ours before theirs.
    """
    wanted = set(kept)
    common = set(names.ours) & set(names.theirs) & set(names.base or names.ours)
    orders = names.each(lambda listed: tuple(one for one in listed if one in common))
    first_is_theirs = choice.side is Side.THEIRS if orders.apart else orders.clean != orders.ours
    first, second = (names.theirs, names.ours) if first_is_theirs else (names.ours, names.theirs)
    found = [one for one in first if one in wanted]
    alone, place = set(first) - set(second), 0
    for one in second:
        if one in found:
            place = found.index(one) + 1
        elif one in wanted:
            while not first_is_theirs and place < len(found) and found[place] in alone:
                place += 1
            found.insert(place, one)
            place += 1
    clash = Clash(diff.ORDER, names.each(lambda listed: listed or None)) if orders.apart else None
    return found, clash


def _field(path: Path) -> str:
    """Return what a value is called, as a difference calls it."""
    return f"{_FIELDS[path[:-1]]}{path[-1]}"


def _as_old(path: Path, value: Any) -> Any:
    """Return a value but for when it was created, which is no difference."""
    if path == _CREATED:
        return None
    return {**value, diff.CREATED: 0} if isinstance(value, dict) else value


def _age(value: Any) -> int:
    said = value.get(diff.CREATED) if isinstance(value, dict) else value
    return said if isinstance(said, int) else 0


def _told(value: Any) -> Any:
    """Return a value for people and programs."""
    return None if value is _NOTHING else value.said if isinstance(value, _Data) else value
