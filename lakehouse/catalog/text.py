"""Format commits and changes as lines for people."""

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


def change(change: Change) -> str:
    """Format a change as one line, such as `~ table hive.a.b: column city: none -> string`."""
    # Names may contain control characters.
    return printable(_change(change))


def _change(change: Change) -> str:
    head = f"{_SIGNS[change.action]} {change.kind} {change.name}".rstrip()
    if change.action is Action.CHANGED:
        before, after = value(change.field, change.before), value(change.field, change.after)
        return f"{head}: {change.field}: {before} -> {after}"
    document = change.after or change.before or {}
    if change.kind == "table":
        columns = len(document.get("storage", {}).get("columns", ()))
        tail = [
            change.table_format,
            many(columns, "column"),
            *([many(change.partitions, "partition")] * bool(change.partitions)),
        ]
        return f"{head}: {', '.join(tail)}"
    return f"{head}: {document['location']}" if document.get("location") else head


def value(field: str, content: Any) -> str:
    """Format a value: a column by its type and comment, text unchanged, and everything else as JSON."""
    if content is None:
        return "none"
    if isinstance(content, dict) and field.removeprefix("statistics: ").startswith((f"{COLUMN} ", f"{KEY} ")):
        comment = f"({content['comment']})" if content.get("comment") else ""
        text = " ".join(filter(None, [content.get("type"), comment]))
    elif isinstance(content, str):
        text = content
    else:
        text = documents.line({"": content}).removeprefix('{"":').removesuffix("}")
    text = printable(text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({counted(len(text), 'letter')})"


def printable(text: str) -> str:
    """Return a text as one line without control characters, which names and comments may contain."""
    return escaped(" ".join(text.split()))


def summary(changes: Sequence[Change]) -> str:
    """Return a summary of changes, such as `1 table added, 2 tables changed`; "" without changes."""
    objects = Counter({(change.action, change.kind, change.name): 1 for change in changes})
    totals = Counter((action, kind) for action, kind, _ in objects)
    return ", ".join(f"{many(count, kind)} {action}" for (action, kind), count in sorted(totals.items()))


def entry(commit: Entry, names: Iterable[str] = ()) -> str:
    """Format a commit as one line."""
    labels = f" ({', '.join(names)})" if names else ""
    author = commit.author.partition(" <")[0]
    return printable(f"{commit.short}{labels} {when(commit.time)} {author}: {commit.subject}")


def head(commit: Entry) -> Iterator[str]:
    """Give the header lines of a commit."""
    yield f"commit {commit.id}"
    yield printable(f"author {commit.author}")
    yield f"read   {when(commit.time)}"
    yield from ("", *(f"    {printable(line)}".rstrip() for line in commit.message.splitlines()), "")


def when(moment: int) -> str:
    """Format a time in UTC, or as seconds if it is out of range."""
    if not 0 <= moment < _LAST_SECOND:
        return f"{moment} s"
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M:%SZ}"


def many(count: int, noun: str) -> str:
    """Return a number with its noun, such as `2 tables`."""
    plural = noun if count == 1 or noun == "access" else f"{noun}s"
    return f"{count} {plural}"
