"""Read the catalog of a metastore by Thrift, as the tree of a commit; only calls that change nothing.

The documents are those of `lakehouse.catalog.build`, at the same places. Answers come from another machine:
an object that cannot be read, or whose name Hive could not store, is left out and reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Protocol, TypeVar

from hive_metastore.ttypes import (
    AllTableConstraintsRequest,
    CheckConstraintsRequest,
    DefaultConstraintsRequest,
    ForeignKeysRequest,
    GetCatalogRequest,
    GetPrincipalsInRoleRequest,
    HiveObjectRef,
    HiveObjectType,
    NoSuchObjectException,
    NotNullConstraintsRequest,
    PrimaryKeysRequest,
    UniqueConstraintsRequest,
    UnknownDBException,
    UnknownTableException,
)
from thrift.Thrift import TException

from lakehouse.catalog import build
from lakehouse.catalog.bindings.constraints import Constraints
from lakehouse.catalog.documents import Document, without_nothing
from lakehouse.catalog.names import DEFAULT_CATALOG, Name
from lakehouse.catalog.schema import Stranger
from lakehouse.catalog.served.handler import Handler
from lakehouse.catalog.served.request import Request
from lakehouse.catalog.snapshot_reader import SnapshotReader
from lakehouse.catalog.store import Entry, Reader, Writer
from lakehouse.errors import LakehouseError
from lakehouse.metastore import calls, grants_and_constraints, model, partitions
from lakehouse.metastore.errors import MetastoreError, ReplySizeError, UnsupportedError, summary
from plugins.module_utils.lakehouse.counting import counted

# Parts of a commit that are never read.
UNREAD = (
    "column statistics",
    "versions of Delta tables",
    "privileges on columns and partitions",
    "owners of roles",
)
# Tables and partitions per request, and concurrent calls about the tables of a request.
_TABLES, _PARTITIONS, _AT_ONCE = 100, 1000, 4
# The longest name of a partition, and of anything else, that Hive's database can store.
_LONGEST_PARTITION, _LONGEST = 767, 256
# The limit of objects that cannot be read: with more, the metastore is none that can be read.
_MOST_REFUSED = 1000
_DROPPED = (NoSuchObjectException, UnknownDBException, UnknownTableException)
# How the bindings fail on an answer with values that no metastore writes.
_MALFORMED = (LookupError, TypeError, ValueError, AttributeError)
# Newer metastores answer it in place of a call for each kind.
_ALL_CONSTRAINTS = "get_all_table_constraints"
# By the field of `Constraints`: the call for a kind, its request, and the field of the answer.
_CONSTRAINTS: dict[str, tuple[str, Callable[[Name], Any], str]] = {
    "primary_keys": (
        "get_primary_keys",
        lambda name: PrimaryKeysRequest(name.database, name.table, catName=name.catalog),
        "primaryKeys",
    ),
    "foreign_keys": (
        "get_foreign_keys",
        lambda name: ForeignKeysRequest(None, None, name.database, name.table, catName=name.catalog),
        "foreignKeys",
    ),
    "unique": (
        "get_unique_constraints",
        lambda name: UniqueConstraintsRequest(name.catalog, name.database, name.table),
        "uniqueConstraints",
    ),
    "not_null": (
        "get_not_null_constraints",
        lambda name: NotNullConstraintsRequest(name.catalog, name.database, name.table),
        "notNullConstraints",
    ),
    "default": (
        "get_default_constraints",
        lambda name: DefaultConstraintsRequest(name.catalog, name.database, name.table),
        "defaultConstraints",
    ),
    "check": (
        "get_check_constraints",
        lambda name: CheckConstraintsRequest(name.catalog, name.database, name.table),
        "checkConstraints",
    ),
}
_Answer = TypeVar("_Answer")


class Calls(Protocol):
    """The calls of a metastore, as `Metastore` has them."""

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the bindings, and return its answer."""


@dataclass(frozen=True)
class Reading:
    """The tree of a metastore's catalog, and what it lacks.

    `unsupported` are the calls that the metastore does not answer, `left_out` the reasons of these and the
    fields that no document has, and `refused` the objects that cannot be read.
    """

    tree: str
    identity: str
    counts: dict[str, int]
    unsupported: frozenset[str]
    left_out: tuple[Stranger, ...]
    refused: tuple[Stranger, ...]


class CommitCalls:
    """The calls of the metastore that serves a commit, or the current catalog, in this process."""

    def __init__(self, reader: Reader, tree: str) -> None:
        """Raise LakehouseError if the format of the commit is not supported."""
        request = Request(SnapshotReader(reader, tree), Entry(tree, tree, (), "", 0, ""), _ignore)
        self._handler = Handler(request, _damaged)

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method, as `Metastore.call`; LakehouseError if the commit is damaged."""
        variant = calls.variants(method)[0]
        return variant.answer(getattr(self._handler, variant.method)(*variant.arguments(*arguments)))


def read(metastore: Calls, writer: Writer, unsupported: Iterable[str] = ()) -> Reading:
    """Write the catalog of a metastore as the tree of a commit, without the calls in `unsupported`.

    An object that is dropped meanwhile is skipped. Raises MetastoreError if the metastore does not answer, or
    cannot return too many objects, and the error that it declares if it refuses the names of databases.
    """
    return _CatalogReader(metastore, writer, unsupported).read()


class _CatalogReader:
    def __init__(self, metastore: Calls, writer: Writer, unsupported: Iterable[str]) -> None:
        self._metastore, self._writer = metastore, writer
        self._root = build.Folder()
        self._counts = dict.fromkeys(("databases", "tables", "partitions", "functions"), 0)
        # The calls that the metastore does not answer, with the reason, and those that it has answered.
        self._unsupported, self._answered = dict.fromkeys(unsupported, ""), set[str]()
        # By reason: the first object, and the number of objects.
        self._lost: dict[str, tuple[str, int]] = {}
        self._refused: dict[str, tuple[str, int]] = {}
        self._lock = Lock()

    def read(self) -> Reading:
        for catalog in self._catalogs():
            for database in self._databases(catalog):
                self._database(database)
        self._access()
        tree = self._root.write(self._writer)
        # Another call answers the same.
        reasons = {method: why for method, why in self._unsupported.items() if method != _ALL_CONSTRAINTS}
        return Reading(
            tree=tree,
            identity=self._writer.tree(tree)[build.CATALOG],
            counts=self._counts,
            unsupported=frozenset(self._unsupported),
            left_out=(
                *(Stranger(_subject(method), why) for method, why in reasons.items()),
                *_listed(self._lost),
            ),
            refused=_listed(self._refused),
        )

    # Catalogs, databases, functions

    def _catalogs(self) -> Iterator[Name]:
        answer = self._optional("", "get_catalogs")
        if answer is None:
            yield Name(DEFAULT_CATALOG)
            return
        for name in map(Name, self._valid("", answer.names)):
            self._put(name, self._call(name, "get_catalog", GetCatalogRequest(name.catalog)), _catalog)
            yield name

    def _databases(self, catalog: Name) -> Iterator[Name]:
        # Metastores without catalogs know no other form of this call.
        if catalog.catalog == DEFAULT_CATALOG:
            answer = self._metastore.call("get_all_databases")
        else:
            pattern = replace(catalog, database="*").thrift_database
            answer = self._metastore.call("get_databases", pattern)
        for name in self._valid(str(catalog), answer):
            yield replace(catalog, database=name)

    def _database(self, name: Name) -> None:
        answer = self._call(name, "get_database", name.thrift_database)
        privileges = self._privileges(name, HiveObjectType.DATABASE)
        if not self._put(name, answer, model.database, {"privileges": privileges}):
            return
        self._counts["databases"] += 1
        functions = self._optional(name, "get_functions", name.thrift_database, "*")
        for function in self._valid(str(name), functions):
            function_name = replace(name, function=function)
            answer = self._call(function_name, "get_function", name.thrift_database, function)
            self._counts["functions"] += self._put(function_name, answer, model.function)
        self._tables(name)

    # Tables and partitions

    def _tables(self, database: Name) -> None:
        catalog = None if database.catalog == DEFAULT_CATALOG else database.catalog

        def request(names: list[str]) -> Sequence[Any]:
            return list(self._metastore.call("get_table_objects_by_name", database.database, names, catalog))

        names = self._valid(str(database), self._call(database, "get_all_tables", database.thrift_database))
        for start in range(0, len(names), _TABLES):
            chunk = names[start : start + _TABLES]
            answers = {
                answer.tableName: answer
                for answer in partitions.requested(self._careful(database, request), chunk, _TABLES)
            }
            tables = [replace(database, table=name) for name in chunk if name in answers]
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                for name, attached in zip(tables, pool.map(self._attached, tables), strict=True):
                    self._table(name, answers[name.table], attached)

    def _attached(self, table: Name) -> Document:
        return {
            "constraints": self._constraints(table),
            "privileges": self._privileges(table, HiveObjectType.TABLE),
        }

    def _table(self, name: Name, answer: Any, attached: Document) -> None:
        if self._put(name, answer, model.table, attached):
            self._counts["tables"] += 1
            if answer.partitionKeys:
                count = build.put_partitions(self._root, self._writer, name, self._partitions(name))
                self._counts["partitions"] += count

    def _partitions(self, table: Name) -> Iterator[tuple[Document, Document]]:
        def request(names: list[str]) -> Sequence[Any]:
            return list(
                self._metastore.call("get_partitions_by_names", table.thrift_database, table.table, names)
            )

        answer = self._call(table, "get_partition_names", table.thrift_database, table.table, -1)
        names = self._valid(str(table), answer, _LONGEST_PARTITION)
        ask = self._careful(table, request)
        for start in range(0, len(names), _PARTITIONS):
            chunk = names[start : start + _PARTITIONS]
            for name, partition in partitions.by_names(ask, chunk, _PARTITIONS).items():
                if described := self._described(replace(table, partition=name), partition, _partition(name)):
                    yield described.document, described.volatile

    # Constraints, privileges, roles

    def _constraints(self, table: Name) -> list[dict[str, Any]]:
        request = AllTableConstraintsRequest(table.database, table.table, table.catalog)
        answer = self._optional(table, _ALL_CONSTRAINTS, request)
        rows = Constraints()
        for kind, (method, make_request, field) in _CONSTRAINTS.items():
            of_kind = (
                answer.allTableConstraints if answer else self._optional(table, method, make_request(table))
            )
            setattr(rows, kind, getattr(of_kind, field, None) or [])
        return self._converted(table, lambda: grants_and_constraints.constraints(rows)) or []

    def _privileges(self, name: Name, kind: int) -> list[dict[str, Any]]:
        reference = HiveObjectRef(
            kind, name.database or None, name.table or None, [], None, name.catalog or None
        )
        grants = self._optional(name, "list_privileges", None, None, reference) or ()
        return self._converted(name, lambda: grants_and_constraints.privileges(grants)) or []

    def _access(self) -> None:
        members = {
            role: answer.principalGrants if answer else ()
            for role in self._valid("roles", self._optional("", "get_role_names"))
            for answer in [self._optional("", "get_principals_in_role", GetPrincipalsInRoleRequest(role))]
        }
        roles = self._converted(Name(), lambda: grants_and_constraints.roles(members)) or []
        privileges = self._privileges(Name(), HiveObjectType.GLOBAL)
        build.put_access(self._root, self._writer, roles, privileges)

    # Calls, and what they answer

    def _put(
        self,
        name: Name,
        answer: Any,
        convert: Callable[[Any, Any], model.Described],
        attached: Document | None = None,
    ) -> bool:
        """Put the document of an answer, with rows of other calls; return whether there is one."""
        described = self._described(name, answer, convert) if answer is not None else None
        if described:
            rows = {key: build.sorted_rows(value) for key, value in (attached or {}).items()}
            content = without_nothing({**described.document, **rows})
            build.put_object(self._root, self._writer, name, content, described.volatile)
        return described is not None

    def _described(
        self, name: Name, answer: Any, convert: Callable[[Any, Any], model.Described]
    ) -> model.Described | None:
        return self._converted(name, lambda: convert(answer, self._report_field))

    def _converted(self, name: Name, convert: Callable[[], _Answer]) -> _Answer | None:
        """Return the conversion of an answer; None, and a report, for an answer that no metastore gives."""
        try:
            return convert()
        except _MALFORMED as error:
            self._refuse(name, f"the answer is malformed: {type(error).__name__}: {summary(error)}")
            return None

    def _call(self, name: Name, method: str, *arguments: Any) -> Any:
        """Call a method about an object; None where it is gone, or the metastore refuses the call."""
        try:
            return self._metastore.call(method, *arguments)
        except _DROPPED:
            return None
        except (TException, ReplySizeError) as error:
            self._refuse(name, summary(error))
            return None

    def _optional(self, name: Name | str, method: str, *arguments: Any) -> Any:
        """Call a method that older metastores lack, or refuse to every client; None without an answer."""
        if method in self._unsupported:
            return None
        try:
            answer = self._metastore.call(method, *arguments)
        except _DROPPED:
            return None
        except UnsupportedError as error:
            self._unsupported.setdefault(method, error.message)
            return None
        except (TException, ReplySizeError) as error:
            if method in self._answered:
                self._refuse(name, f"{_subject(method)}: {summary(error)}")
            else:
                self._unsupported.setdefault(method, summary(error))
            return None
        self._answered.add(method)
        return answer

    def _careful(self, parent: Name, request: partitions.Ask) -> partitions.Ask:
        """Return a request that leaves out the one object that the metastore refuses to return."""

        def ask(names: list[str]) -> Sequence[Any]:
            try:
                return request(names)
            except _DROPPED:
                return ()
            except (TException, ReplySizeError) as error:
                if len(names) > 1:
                    raise
                self._refuse(f"{parent} {names[0]}", summary(error))
                return ()

        return ask

    def _valid(self, parent: str, names: Iterable[str] | None, longest: int = _LONGEST) -> list[str]:
        """Return the distinct names that Hive could store, sorted."""
        distinct = sorted(set(names or ()))
        for name in distinct:
            if not 0 < len(name) <= longest:
                self._refuse(
                    f"{parent} {name[:_LONGEST]}".strip(), f"a name of {counted(len(name), 'letter')}"
                )
        return [name for name in distinct if 0 < len(name) <= longest]

    def _report_field(self, name: str, field: str) -> None:
        self._add(self._lost, name, f"{field}: no commit holds it")

    def _refuse(self, name: Name | str, why: str) -> None:
        self._add(self._refused, str(name), why)
        if sum(count for _, count in self._refused.values()) > _MOST_REFUSED:
            raise MetastoreError(
                f"more than {counted(_MOST_REFUSED, 'object')} cannot be read; the last is {name}: {why}"
            )

    def _add(self, reasons: dict[str, tuple[str, int]], name: str, why: str) -> None:
        with self._lock:
            first, count = reasons.get(why, (name, 0))
            reasons[why] = first, count + 1


def _catalog(answer: Any, report_field: Any) -> model.Described:
    return model.catalog(answer.catalog, report_field)


def _partition(name: str) -> Callable[[Any, Any], model.Described]:
    return lambda answer, report_field: model.partition(name, answer, report_field)


def _subject(method: str) -> str:
    """Return what a method returns, such as `primary keys`."""
    return method.removeprefix("get_").removeprefix("list_").replace("_", " ")


def _listed(reasons: dict[str, tuple[str, int]]) -> tuple[Stranger, ...]:
    return tuple(
        Stranger(first, why if count == 1 else f"{why}; the same of {counted(count - 1, 'more object')}")
        for why, (first, count) in reasons.items()
    )


def _ignore(*_: str) -> None:
    """Ignore what Thrift cannot hold: no metastore could return it."""


def _damaged(why: str) -> None:
    raise LakehouseError(why)
