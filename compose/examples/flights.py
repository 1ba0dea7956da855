"""When New York's flights of 2013 left late: the mean delay by hour, as a picture.

docker compose run --rm load, once; then docker compose exec client lakehouse-python /examples/flights.py
"""

import sys

import lakehouse_clients
from matplotlib import pyplot

# DuckDB computes; Iceberg's catalog and HDFS give it the columns that the statement names.
BY_HOUR = """
SELECT CAST(hour AS INTEGER) AS hour, count(*) AS flights, avg(dep_delay) AS delay
FROM iceberg.nycflights.flights WHERE dep_delay IS NOT NULL GROUP BY 1 ORDER BY 1
"""


def main(target: str = "/work/flights.png") -> None:
    """Ask, draw, save."""
    columns = lakehouse_clients.connect().sql(BY_HOUR).to_pydict()
    figure, axes = pyplot.subplots(figsize=(8, 4))
    axes.bar(columns["hour"], columns["delay"], color="steelblue")
    axes.set(xlabel="scheduled hour", ylabel="mean delay at departure, minutes", xticks=columns["hour"])
    axes.set_title("Flights from New York, 2013")
    figure.tight_layout()
    figure.savefig(target, dpi=80)
    print(f"{sum(columns['flights'])} flights, {len(columns['hour'])} hours: {target}")  # noqa: T201 -- it is a program


if __name__ == "__main__":
    main(*sys.argv[1:])
