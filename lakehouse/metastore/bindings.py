"""What PyIceberg's bindings of the metastore's interface cannot read as they come."""

from __future__ import annotations

from functools import cache
from typing import Any

from hive_metastore.ttypes import SkewedInfo, StorageDescriptor
from thrift.Thrift import TType


def mend() -> None:
    """Have the places of skewed values, a map whose keys are lists, be read by tuples: lists have no hash.

    Thrift's decoder in C goes by the specification that the struct around it holds, the one in Python by what
    was generated of it.
    """
    *others, (number, kind, name, (key, (inner, text, _), *rest), default) = SkewedInfo.thrift_spec
    SkewedInfo.thrift_spec = (*others, (number, kind, name, (key, (inner, text, True), *rest), default))
    SkewedInfo.read = _read
    [around] = [field[3] for field in StorageDescriptor.thrift_spec if field and field[2] == "skewedInfo"]
    around[:] = [SkewedInfo, SkewedInfo.thrift_spec]


def require(answer: Any) -> None:
    """Raise TProtocolException where a struct of an answer lacks a required field.

    Thrift's decoder in C passes over fields of another type, and does not look at what is required.
    """
    if isinstance(answer, list | tuple):
        if answer and _is_struct(answer[0]):
            for one in answer:
                require(one)
    elif isinstance(answer, dict):
        require(list(answer.values()))
    elif _is_struct(answer):
        answer.validate()
        kind: Any = type(answer)
        for field in _inner(kind):
            require(getattr(answer, field))


def _is_struct(answer: Any) -> bool:
    return hasattr(answer, "thrift_spec")


@cache
def _inner(kind: Any) -> tuple[str, ...]:
    """Return the fields of a struct that may hold other structs."""
    containers = {TType.STRUCT, TType.LIST, TType.MAP}
    return tuple(field[2] for field in kind.thrift_spec if field and field[1] in containers)


def _read(skewed: SkewedInfo, protocol: Any) -> None:
    protocol.readStruct(skewed, skewed.thrift_spec)
