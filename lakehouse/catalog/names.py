"""What an object of the catalog is called, and where in a commit it lies."""

from __future__ import annotations

import re
from dataclasses import asdict, astuple, dataclass
from urllib.parse import unquote_to_bytes

from lakehouse.errors import UsageError

DEFAULT_CATALOG = "hive"
_PLAIN = re.compile(rb"[^A-Za-z0-9_=,+@-]")
# A table, whose name may have a slash, and a partition, whose every word has an equals sign.
_PARTITION = re.compile(r"([^=]*?)/([^/=]+=.*)")
# How deep `catalog.database.table` is.
_DEEPEST = 3


@dataclass(frozen=True, order=True)
class Name:
    """A catalog, a database of it, a table or function of that, a partition of the table: as far as given."""

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
        """Return its words for programs, as far as given."""
        return {word: name for word, name in asdict(self).items() if name}

    def holds(self, other: Name) -> bool:
        """Tell whether it is another one's own name, or of what that is in."""
        return all(not own or own == its for own, its in zip(astuple(self), astuple(other), strict=True))

    @property
    def thrift_database(self) -> str:
        """Its database as a client of Hive 3 writes it: with the catalog where that is not the default."""
        return self.database if self.catalog == DEFAULT_CATALOG else f"@{self.catalog}#{self.database}"

    @property
    def path(self) -> tuple[str, ...]:
        """Where it lies in the tree of the catalog; a partition lies in its table's folder."""
        words: list[str] = []
        if self.catalog:
            words.append(escaped(self.catalog))
        if self.database:
            words += ["db", escaped(self.database)]
        if self.table:
            words += ["table", escaped(self.table)]
        if self.function:
            words += ["function", f"{escaped(self.function)}.json"]
        return tuple(words)


def parse(text: str) -> Name:
    """Read `table` names as people write them: `db`, `db.table`, `catalog.db.table`, `.../ds=1`, `db.f()`.

    The metastore knows small letters alone, but for partitions. A slash is of the name of a table where no
    partition follows. Raises UsageError for what cannot be one.
    """
    found = _PARTITION.fullmatch(text.rstrip("/"))
    head, partition = (found[1], found[2]) if found else (text.rstrip("/"), "")
    head = head.lower()
    function = head.endswith("()")
    words = head.removesuffix("()").split(".")
    homes = words[: max(1, len(words) - 1)]
    if not all(words) or len(words) > _DEEPEST or (partition and len(words) == 1) or "/" in "".join(homes):
        raise UsageError(f"{text}: no name; as in sales, sales.orders, hive.sales.orders/ds=2026-01-31")
    catalog = words.pop(0) if len(words) == _DEEPEST else DEFAULT_CATALOG
    database = words.pop(0)
    last = words.pop() if words else ""
    if function:
        return Name(catalog, database, function=last)
    return Name(catalog, database, last, partition)


def escaped(name: str) -> str:
    """Return a name as that of a file: what is neither a letter nor a digit is %XX, but for `_=,+@-`."""
    return _PLAIN.sub(lambda found: b"%%%02X" % found[0][0], name.encode()).decode()


def plain(file: str) -> str:
    """Return the name that was escaped."""
    return unquote_to_bytes(file).decode()
