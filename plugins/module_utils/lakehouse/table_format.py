"""The format of a table, as its row in the metastore determines it."""

from __future__ import annotations

from collections.abc import Mapping

_PROVIDER = "spark.sql.sources.provider"


def of(kind: str | None, parameters: Mapping[str, str | None]) -> str:
    """Return `view`, `iceberg`, `delta`, `hudi` or `hive`; `kind` is the type in the row."""
    if str(parameters.get("table_type") or "").upper() == "ICEBERG":
        return "iceberg"
    if "VIEW" in str(kind):
        return "view"
    provider = str(parameters.get(_PROVIDER) or "").lower()
    return provider if provider in {"delta", "hudi"} else "hive"
