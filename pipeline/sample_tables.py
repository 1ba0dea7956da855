"""Databases and tables to try the lakehouse on: customers and products, orders, and their events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql import SparkSession

# Database -> its folder below the warehouse. `default` exists as soon as the metastore does.
DATABASES = {"sales_data": "sales", "streaming_data": "streams"}


@dataclass(frozen=True)
class Sample:
    """A table that is made from a query without sources; `folder` is its place below the warehouse."""

    name: str
    format: str
    folder: str
    query: str
    partitioned_by: str = ""

    @property
    def full_name(self) -> str:
        """Name with the catalog of its format."""
        return f"{'iceberg' if self.format == 'iceberg' else 'spark_catalog'}.{self.name}"


SAMPLES = (
    Sample(
        "default.customer_data",
        "iceberg",
        "iceberg/customer_data",
        """SELECT id AS customer_id, concat('Customer ', id) AS name,
           concat('customer', id, '@example.com') AS email,
           element_at(array('north', 'east', 'south', 'west'), CAST(id % 4 + 1 AS INT)) AS region
           FROM range(1, 101, 1, 1)""",
    ),
    Sample(
        "default.product_catalog",
        "iceberg",
        "iceberg/product_catalog",
        """SELECT id AS product_id, concat('Product ', id) AS name, CAST(id * 1.99 AS DECIMAL(10, 2)) AS price
           FROM range(1, 26, 1, 1)""",
    ),
    Sample(
        "default.sales_events",
        "delta",
        "delta/sales_events",
        """SELECT id AS event_id, id % 100 + 1 AS customer_id, id % 25 + 1 AS product_id,
           element_at(array('view', 'cart', 'purchase'), CAST(id % 3 + 1 AS INT)) AS action,
           TIMESTAMP '2024-01-01 00:00:00 UTC' + make_interval(0, 0, 0, 0, 0, CAST(id AS INT)) AS happened
           FROM range(0, 1000, 1, 1)""",
    ),
    Sample(
        "sales_data.orders",
        "iceberg",
        "sales/orders",
        """SELECT id AS order_id, id % 100 + 1 AS customer_id,
           date_add(DATE '2024-01-01', CAST(id % 91 AS INT)) AS order_date,
           CAST(id % 25 * 1.99 + 1 AS DECIMAL(10, 2)) AS amount
           FROM range(1, 501, 1, 1)""",
        partitioned_by="PARTITIONED BY (months(order_date))",
    ),
    Sample(
        "streaming_data.order_events",
        "delta",
        "streams/order_events",
        """SELECT id AS event_id, id % 500 + 1 AS order_id,
           element_at(array('created', 'paid', 'shipped'), CAST(id DIV 500 + 1 AS INT)) AS status,
           TIMESTAMP '2024-01-01 00:00:00 UTC' + make_interval(0, 0, 0, 0, 0, CAST(id AS INT)) AS happened
           FROM range(0, 1500, 1, 1)""",
    ),
)


def load(spark: SparkSession, warehouse: str) -> Iterator[tuple[str, bool]]:
    """Make what is missing below the URI `warehouse`; yields each table, and whether it was missing."""
    for database, folder in DATABASES.items():
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {database} LOCATION '{warehouse}/{folder}'")
    for sample in SAMPLES:
        exists = spark.catalog.tableExists(sample.full_name)
        if not exists:
            spark.sql(
                f"CREATE TABLE {sample.full_name} USING {sample.format} {sample.partitioned_by}"
                f" LOCATION '{warehouse}/{sample.folder}' AS {sample.query}"
            )
        yield sample.full_name, not exists
