"""What PyIceberg's bindings of the metastore's interface cannot read as they come."""

from __future__ import annotations

from typing import Any

from hive_metastore.ttypes import SkewedInfo, StorageDescriptor


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


def _read(skewed: SkewedInfo, protocol: Any) -> None:
    protocol.readStruct(skewed, skewed.thrift_spec)
