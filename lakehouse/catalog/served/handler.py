"""All methods of the interface for the bindings' processor; a method without a handler is refused.

The methods come from the bindings' interface, so a new one is refused until it gets a handler.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from fb303 import FacebookService
from hive_metastore import ThriftHiveMetastore
from hive_metastore.ttypes import MetaException
from thrift.Thrift import TApplicationException, TException, TType

from lakehouse.catalog.served.access_handlers import AccessHandlers
from lakehouse.catalog.served.databases import Databases
from lakehouse.catalog.served.partitions import Partitions
from lakehouse.catalog.served.request import Request
from lakehouse.catalog.served.statistics import Statistics
from lakehouse.catalog.served.tables import Tables
from lakehouse.catalog.store import Entry
from lakehouse.errors import LakehouseError

# Logs an error of the server.
Report = Callable[[str], None]
METHODS = tuple(name for name in dir(ThriftHiveMetastore.Iface) if not name.startswith("_"))


GROUPS = Databases, Tables, Partitions, Statistics, AccessHandlers
ANSWERED = {method: group for group in GROUPS for method in METHODS if hasattr(group, method)}
_READ = ("get", "show_", "isPartition")
_READ_TOO = {
    "find_columns_with_stats",
    "find_package",
    "translate_table_dryrun",
    "validate_resource_plan",
}
# Methods with the name of a read that change something: this one takes a lock.
_CHANGES = {"get_lock_materialization_rebuild"}
# Reads without a handler; docs/catalog-history.md lists them.
UNSUPPORTED = frozenset(
    method
    for method in METHODS
    if method not in ANSWERED and method not in _CHANGES and (method.startswith(_READ) or method in _READ_TOO)
)


class Handler:
    """All methods of the interface: those of the handlers, and refusals."""

    def __init__(self, request: Request, report: Report) -> None:
        groups = {
            group: group(
                request.reader, request.entry, request.report_field, request.began, request.locations
            )
            for group in GROUPS
        }
        for method in METHODS:
            group = ANSWERED.get(method)
            answer = getattr(groups[group], method) if group else _refusal(request.entry, method)
            setattr(self, method, _guarded(method, answer, report))


def refused(entry: Entry, method: str) -> str:
    """Return the message of a refused call: a read without a handler, or a change."""
    if method in UNSUPPORTED:
        return f"this metastore serves commit {entry.short}; it does not support reading by {method}"
    return f"this metastore serves commit {entry.short} read-only; {method} is refused"


def _refusal(entry: Entry, method: str) -> Callable[..., Any]:
    def refuse(*_: Any) -> Any:
        raise MetaException(refused(entry, method))

    return refuse


def _guarded(method: str, answer: Callable[..., Any], report: Report) -> Callable[..., Any]:
    """Return a handler that raises only errors which the interface declares for its method."""
    declared = _declared(method)

    @wraps(answer)
    def guarded(*arguments: Any) -> Any:
        try:
            return answer(*arguments)
        except declared:
            raise
        except TException as error:
            message = str(getattr(error, "message", None) or error)
        except LakehouseError as error:
            message = error.message
            report(f"{method}: {error}")
        except Exception as error:  # noqa: BLE001 -- a client gets one line, whatever it was
            message = f"{method} cannot be answered: {type(error).__name__}: {error}"
            report(message)
        if waits(method):
            raise _declared_error(declared, message)
        return None

    return guarded


def _declared_error(declared: tuple[type[Exception], ...], text: str) -> Any:
    if MetaException in declared:
        return MetaException(text)
    return TApplicationException(TApplicationException.INTERNAL_ERROR, text)


def _declared(method: str) -> tuple[type[Exception], ...]:
    """Return the errors that a method may raise; none for a `oneway` call."""
    name = f"{method}_result"
    result = getattr(ThriftHiveMetastore, name, None) or getattr(FacebookService, name, None)
    fields = [field for field in getattr(result, "thrift_spec", ()) if field]
    return tuple(field[3][0] for field in fields if field[0] > 0 and field[1] == TType.STRUCT)


def waits(method: str) -> bool:
    """Return whether a client waits for an answer: not for `oneway` calls."""
    name = f"{method}_result"
    return hasattr(ThriftHiveMetastore, name) or hasattr(FacebookService, name)
