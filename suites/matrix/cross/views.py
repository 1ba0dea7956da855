"""Views of an engine in another: the kinds of views, and the errors of engines that refuse them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from suites.matrix.cross.engines import FLINK, SPARK, TRINO
from suites.matrix.cross.limits import Limit, refused


@dataclass(frozen=True)
class View:
    """A kind of view: the engine that creates it, its catalog, and its base table.

    `label` describes it in the pages. Every engine that is not in `refused` must read it.
    """

    kind: str
    label: str
    maker: str
    catalog: str
    base: str
    refused: Mapping[str, Limit]

    def __str__(self) -> str:
        return self.kind


_GITHUB = "https://github.com"
_FLINK = {FLINK: refused(r"not found within 'iceberg", f"{_GITHUB}/apache/iceberg/issues/17858")}
_SPARK = {SPARK: refused(r"PARSE_SYNTAX_ERROR", f"{_GITHUB}/prestodb/presto/issues/22269")}
_CATALOG = {TRINO: refused(r"Failed to translate Hive view", f"{_GITHUB}/trinodb/trino/issues/18122")}
_ICEBERG = {TRINO: refused(r"Not an Iceberg table", f"{_GITHUB}/trinodb/trino/issues/24093")}

VIEWS = (
    View(
        "hive-view",
        "Spark, in `spark_catalog`, over a Hive table",
        SPARK,
        "spark_catalog",
        "{hive}",
        _FLINK,
    ),
    View(
        "hive-view-that-names-a-catalog",
        "Spark, in `spark_catalog`, over `iceberg.x.y`",
        SPARK,
        "spark_catalog",
        "iceberg.{iceberg}",
        _CATALOG | _FLINK,
    ),
    View("iceberg-view", "Spark, in `iceberg`", SPARK, "iceberg", "iceberg.{iceberg}", _ICEBERG | _FLINK),
    View("trino-view", "Trino, in `hive`", TRINO, "hive", "iceberg.{iceberg}", _SPARK | _FLINK),
    View("trino-view-in-iceberg", "Trino, in `iceberg`", TRINO, "iceberg", "hive.{hive}", _SPARK | _FLINK),
)
# Where an engine finds what another made: views are Hive's to Spark, unless they are Iceberg's.
READERS = {SPARK: "spark_catalog", TRINO: "hive", FLINK: "iceberg"}
