"""Commits and changes as lines that a person reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from lakehouse.catalog import documents
from lakehouse.catalog.diff import COLUMN, KEY, Action, Change
from lakehouse.catalog.store import Entry
from lakehouse.terminal import printable as escaped
from plugins.module_utils.lakehouse.counting import counted

_SIGNS = {Action.ADDED: "+", Action.REMOVED: "-", Action.CHANGED: "~"}
_LONGEST = 300
# As far as a year has four digits.
_LAST_SECOND = 253402300800


def change(one: Change) -> str:
    """Return a change as one line, such as `~ table hive.a.b: column city: none -> string`."""
    # A name may hold whatever its engine lets it.
    return printable(_change(one))


def _change(one: Change) -> str:
    head = f"{_SIGNS[one.action]} {one.kind} {one.name}".rstrip()
    if one.action is Action.CHANGED:
        return f"{head}: {one.field}: {value(one.field, one.before)} -> {value(one.field, one.after)}"
    said = one.after or one.before or {}
    if one.kind == "table":
        columns = len(said.get("storage", {}).get("columns", ()))
        tail = [
            one.table_format,
            many(columns, "column"),
            *([many(one.partitions, "partition")] * bool(one.partitions)),
        ]
        return f"{head}: {', '.join(tail)}"
    return f"{head}: {said['location']}" if said.get("location") else head


def value(field: str, said: Any) -> str:
    """Return a value for people: a column by its type and comment, text as it is, and all else as JSON."""
    if said is None:
        return "none"
    if isinstance(said, dict) and field.removeprefix("statistics: ").startswith((f"{COLUMN} ", f"{KEY} ")):
        text = " ".join(
            filter(None, [said.get("type"), f"({said['comment']})" if said.get("comment") else ""])
        )
    elif isinstance(said, str):
        text = said
    else:
        text = documents.line({"": said}).removeprefix('{"":').removesuffix("}")
    text = printable(text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({counted(len(text), 'letter')})"


def printable(text: str) -> str:
    """Return a text as one line without what would steer a terminal: who makes a table may comment on it."""
    return escaped(" ".join(text.split()))


def summary(changes: Sequence[Change]) -> str:
    """Return what changed in a line, such as `1 table added, 2 tables changed`; "" for nothing."""
    objects = Counter({(one.action, one.kind, one.name): 1 for one in changes})
    counted = Counter((action, kind) for action, kind, _ in objects)
    return ", ".join(f"{many(count, kind)} {action}" for (action, kind), count in sorted(counted.items()))


def entry(one: Entry, names: Iterable[str] = ()) -> str:
    """Return a commit as one line."""
    named = f" ({', '.join(names)})" if names else ""
    return printable(f"{one.short}{named} {when(one.time)} {one.author.partition(' <')[0]}: {one.subject}")


def head(one: Entry) -> Iterator[str]:
    """Give the lines that say what a commit is."""
    yield f"commit {one.id}"
    yield printable(f"author {one.author}")
    yield f"read   {when(one.time)}"
    yield from ("", *(f"    {printable(line)}".rstrip() for line in one.message.splitlines()), "")


def when(moment: int) -> str:
    """Return a time for people, in UTC; the number of a commit that says another one than there are."""
    if not 0 <= moment < _LAST_SECOND:
        return f"{moment} s"
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M:%SZ}"


def many(count: int, what: str) -> str:
    """Return a number with its word, such as `2 tables`."""
    plural = what if count == 1 or what == "access" else f"{what}s"
    return f"{count} {plural}"
