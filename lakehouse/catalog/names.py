"""Names of objects of the catalog, and their paths in the tree of a commit."""

from __future__ import annotations

import re
from dataclasses import asdict, astuple, dataclass
from urllib.parse import unquote_to_bytes

from lakehouse.errors import UsageError

DEFAULT_CATALOG = "hive"
_PLAIN = re.compile(rb"[^A-Za-z0-9_=,+@-]")
# A table, whose name may contain a slash, and a partition, each of whose parts contains an equals sign.
_PARTITION = re.compile(r"([^=]*?)/([^/=]+=.*)")
# The parts of `catalog.database.table`.
_MOST_PARTS = 3


@dataclass(frozen=True, order=True)
class Name:
    """A catalog, a database in it, a table or function in that, a partition of the table; "" if not set."""

    catalog: str = ""
    database: str = ""
    table: str = ""
    partition: str = ""
    function: str = ""

    def __str__(self) -> str:
        """Return `catalog.database.table/partition`, with `()` behind a function; "" for the metastore."""
        head = ".".join(part for part in (self.catalog, self.database, self.table or self.function) if part)
        tail = f"/{self.partition}" if self.partition else "()" if self.function else ""
        return f"{head}{tail}"

    def json(self) -> dict[str, str]:
        """Return the parts that are set, for JSON."""
        return {field: part for field, part in asdict(self).items() if part}

    def holds(self, other: Name) -> bool:
        """Return whether this name equals or contains `other`."""
        parts = zip(astuple(self), astuple(other), strict=True)
        return all(not part or part == other_part for part, other_part in parts)

    @property
    def thrift_database(self) -> str:
        """The name of the database in calls of Hive 3: with the catalog unless that is the default."""
        return self.database if self.catalog == DEFAULT_CATALOG else f"@{self.catalog}#{self.database}"

    @property
    def path(self) -> tuple[str, ...]:
        """The path in the tree of the catalog; that of a partition is its table's folder."""
        parts: list[str] = []
        if self.catalog:
            parts.append(escaped(self.catalog))
        if self.database:
            parts += ["db", escaped(self.database)]
        if self.table:
            parts += ["table", escaped(self.table)]
        if self.function:
            parts += ["function", f"{escaped(self.function)}.json"]
        return tuple(parts)


def parse(text: str) -> Name:
    """Parse a name as users write it: `db`, `db.table`, `catalog.db.table`, `.../ds=1`, `db.f()`.

    Names become lower case, as in the metastore, except for partitions. A slash without a partition behind
    it belongs to the name of the table. Raises UsageError for an invalid name.
    """
    match = _PARTITION.fullmatch(text.rstrip("/"))
    head, partition = (match[1], match[2]) if match else (text.rstrip("/"), "")
    head = head.lower()
    function = head.endswith("()")
    parts = head.removesuffix("()").split(".")
    parents = parts[: max(1, len(parts) - 1)]
    if (
        not all(parts)
        or len(parts) > _MOST_PARTS
        or (partition and len(parts) == 1)
        or "/" in "".join(parents)
    ):
        raise UsageError(f"{text}: no name; as in sales, sales.orders, hive.sales.orders/ds=2026-01-31")
    catalog = parts.pop(0) if len(parts) == _MOST_PARTS else DEFAULT_CATALOG
    database = parts.pop(0)
    last = parts.pop() if parts else ""
    if function:
        return Name(catalog, database, function=last)
    return Name(catalog, database, last, partition)


def escaped(name: str) -> str:
    """Escape a name for use as a file name: letters, digits and `_=,+@-` stay, other bytes become %XX."""
    return _PLAIN.sub(lambda match: b"%%%02X" % match[0][0], name.encode()).decode()


def plain(file: str) -> str:
    """Return the name of an escaped file name."""
    return unquote_to_bytes(file).decode()
