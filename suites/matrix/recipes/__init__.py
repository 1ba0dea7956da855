"""How each engine is asked for each operation: data for SQL, small functions for Python clients."""

from __future__ import annotations

from suites.matrix.recipes import delta_rs, duckdb, flink, polars, pyiceberg, spark, trino
from suites.matrix.recipes.recipe import Recipes

# By engine, format and operation.
RECIPES: dict[str, Recipes] = {
    "spark": spark.RECIPES,
    "trino": trino.RECIPES,
    "flink": flink.RECIPES,
    "pyiceberg": pyiceberg.RECIPES,
    "delta-rs": delta_rs.RECIPES,
    "duckdb": duckdb.RECIPES,
    "polars": polars.RECIPES,
}
