"""Requests for every call of the metastore, with a string of an attacker in one field at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hive_metastore import ThriftHiveMetastore
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TMessageType, TType
from thrift.transport.TTransport import TMemoryBuffer

# Structs nest, some without end.
_DEPTH = 5
_NUMBERS = frozenset({TType.BYTE, TType.I16, TType.I32, TType.I64})
# Thrift's Java reads one field of a union, and takes what follows for the next struct.
_UNIONS = frozenset({"ColumnStatisticsData", "FireEventRequestData", "RequestPartsSpec"})
Path = tuple[int, ...]


def calls() -> list[str]:
    """Return the names of all calls that the bindings know."""
    return sorted(name.removesuffix("_args") for name in dir(ThriftHiveMetastore) if name.endswith("_args"))


def string_fields(call: str) -> list[Path]:
    """Return where the strings of a call's request are: field numbers, from the outermost inwards."""
    return list(_strings(_arguments(call).thrift_spec, ()))


def request(call: str, harmless: str, path: Path = (), hostile: str = "") -> bytes:
    """Return a call's message with every field set, and the hostile string in the field of the path."""
    buffer = TMemoryBuffer()
    protocol = TBinaryProtocol(buffer)
    protocol.writeMessageBegin(call, TMessageType.CALL, 0)
    _struct(_arguments(call), harmless, path, hostile, 0).write(protocol)
    protocol.writeMessageEnd()
    return bytes(buffer.getvalue())


def _arguments(call: str) -> Any:
    return getattr(ThriftHiveMetastore, f"{call}_args")


def _fields(spec: Any) -> Iterator[tuple[int, int, str, Any]]:
    yield from ((field[0], field[1], field[2], field[3]) for field in spec or () if field)


def _strings(spec: Any, path: Path) -> Iterator[Path]:
    if len(path) < _DEPTH:
        for number, kind, _, details in _fields(spec):
            yield from _strings_of(kind, details, (*path, number))


def _strings_of(kind: int, details: Any, path: Path) -> Iterator[Path]:
    if kind == TType.STRING and details != "BINARY":
        yield path
    elif kind == TType.STRUCT:
        yield from _strings(details[0].thrift_spec, path)
    elif kind in {TType.LIST, TType.SET}:
        yield from _strings_of(details[0], details[1], path)
    elif kind == TType.MAP:
        # One string stands for key and value.
        key = list(_strings_of(details[0], details[1], path))
        yield from key or _strings_of(details[2], details[3], path)


def _struct(kind: Any, harmless: str, path: Path, hostile: str, depth: int) -> Any:
    made = kind()
    fields = list(_fields(kind.thrift_spec))
    if kind.__name__ in _UNIONS:
        fields = [field for field in fields if path[:1] in {(), (field[0],)}][:1]
    for number, type_, name, details in fields:
        aimed = bool(path) and path[0] == number
        if depth < _DEPTH or aimed or kind.__name__ in _UNIONS:
            rest = path[1:] if aimed else ()
            value = _value(type_, details, harmless, rest, hostile if aimed else "", depth + 1)
            setattr(made, name, value)
    return made


def _value(kind: int, details: Any, harmless: str, path: Path, hostile: str, depth: int) -> Any:  # noqa: PLR0913, PLR0917
    if kind == TType.STRING:
        return b"x" if details == "BINARY" else hostile or harmless
    if kind == TType.STRUCT:
        return _struct(details[0], harmless, path, hostile, depth)
    if kind in {TType.LIST, TType.SET}:
        one = _value(details[0], details[1], harmless, path, hostile, depth)
        return [one] if kind == TType.LIST else {one} if isinstance(one, str | int) else [one]
    if kind == TType.MAP:
        pair = [
            _value(type_, detail, harmless, path, hostile, depth)
            for type_, detail in ((details[0], details[1]), (details[2], details[3]))
        ]
        return {pair[0] if isinstance(pair[0], str | int) else (pair[0][0],): pair[1]}
    return {TType.BOOL: False, TType.DOUBLE: 0.0}.get(kind, 1 if kind in _NUMBERS else None)
