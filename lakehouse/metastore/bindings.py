"""Fixes for PyIceberg's bindings of the metastore's interface: skewed values, and required fields."""

from __future__ import annotations

from functools import cache
from typing import Any

from hive_metastore.ttypes import SkewedInfo, StorageDescriptor
from thrift.Thrift import TType


def fix_skewed_info() -> None:
    """Decode the keys of the map of skewed locations as tuples: they are generated as lists, without a hash.

    Thrift's decoder in C reads the specification in the enclosing struct, the decoder in Python the generated
    method `read`.
    """
    *first_fields, (number, kind, name, (key, (inner, text, _), *rest), default) = SkewedInfo.thrift_spec
    locations = (number, kind, name, (key, (inner, text, True), *rest), default)
    SkewedInfo.thrift_spec = (*first_fields, locations)
    SkewedInfo.read = _read
    [struct] = [field[3] for field in StorageDescriptor.thrift_spec if field and field[2] == "skewedInfo"]
    struct[:] = [SkewedInfo, SkewedInfo.thrift_spec]


def check_required_fields(answer: Any) -> None:
    """Raise TProtocolException where a struct of an answer lacks a required field.

    Thrift's decoder in C skips fields of another type, and does not check which are required.
    """
    if isinstance(answer, list | tuple):
        if answer and _is_struct(answer[0]):
            for item in answer:
                check_required_fields(item)
    elif isinstance(answer, dict):
        check_required_fields(list(answer.values()))
    elif _is_struct(answer):
        answer.validate()
        kind: Any = type(answer)
        for field in _nested_fields(kind):
            check_required_fields(getattr(answer, field))


def _is_struct(answer: Any) -> bool:
    return hasattr(answer, "thrift_spec")


@cache
def _nested_fields(kind: Any) -> tuple[str, ...]:
    """Return the fields of a struct that may hold other structs."""
    containers = {TType.STRUCT, TType.LIST, TType.MAP}
    return tuple(field[2] for field in kind.thrift_spec if field and field[1] in containers)


def _read(skewed: SkewedInfo, protocol: Any) -> None:
    protocol.readStruct(skewed, skewed.thrift_spec)
