"""Tables as the metastore's database has them, for the collector of commits."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lakehouse.catalog.names import DEFAULT_CATALOG
from lakehouse.catalog.psql import Ask
from lakehouse.errors import LakehouseError
from lakehouse.next_command import PROGRAM
from plugins.module_utils.lakehouse import table_format

_PARAMETERS = (
    "table_type", "metadata_location", "spark.sql.sources.provider", "transient_lastDdlTime",
    "last_commit_time_sync",
)  # fmt: skip
_END, _END_LINE = "end", b"end\n"
# Of Hive's tables, partitions are compared by a digest: their number, the newest, and the last change.
_TABLES = f"""
SELECT jsonb_build_object('source', t."TBL_ID", 'created', t."CREATE_TIME", 'database', d."NAME",
  'name', t."TBL_NAME", 'kind', t."TBL_TYPE", 'owner', coalesce(t."OWNER", ''),
  'location', coalesce(p.parameters->>'path', s."LOCATION", ''), 'parameters', coalesce(k.parameters, '{{}}'),
  'partitions', n.digest)
FROM "TBLS" t JOIN "DBS" d USING ("DB_ID") LEFT JOIN "SDS" s USING ("SD_ID")
LEFT JOIN LATERAL (
  SELECT jsonb_object_agg("PARAM_KEY", "PARAM_VALUE") AS parameters FROM "SERDE_PARAMS" p
    WHERE p."SERDE_ID" = s."SERDE_ID" AND "PARAM_KEY" = 'path') p ON true
LEFT JOIN LATERAL (
  SELECT jsonb_object_agg("PARAM_KEY", "PARAM_VALUE") AS parameters FROM "TABLE_PARAMS" k
    WHERE k."TBL_ID" = t."TBL_ID"
      AND "PARAM_KEY" IN ({", ".join(f"'{name}'" for name in _PARAMETERS)})) k ON true
LEFT JOIN (
  SELECT "TBL_ID", concat_ws(':', count(*), max(p."PART_ID"), max(v."PARAM_VALUE")) AS digest
    FROM "PARTITIONS" p LEFT JOIN "PARTITION_PARAMS" v
      ON v."PART_ID" = p."PART_ID" AND v."PARAM_KEY" = 'transient_lastDdlTime'
    GROUP BY "TBL_ID") n ON n."TBL_ID" = t."TBL_ID"
WHERE d."CTLG_NAME" = '{DEFAULT_CATALOG}' AND t."TBL_TYPE" NOT LIKE '%VIEW%'
"""
_PARTITIONS = """
SELECT jsonb_build_object('name', p."PART_NAME", 'changed',
  concat_ws(':', p."PART_ID", v."PARAM_VALUE"))
FROM "PARTITIONS" p LEFT JOIN "PARTITION_PARAMS" v
  ON v."PART_ID" = p."PART_ID" AND v."PARAM_KEY" = 'transient_lastDdlTime'
WHERE p."TBL_ID" = {source}
"""
_SCRIPT = """\\set ON_ERROR_STOP on
BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;
SET LOCAL lock_timeout = '5s';
SET LOCAL jit = off;
{query};
COMMIT;
\\echo {end}
"""


@dataclass(frozen=True)
class Table:
    """A table of the metastore; `source` and `created` identify it, whatever its name."""

    source: int
    created: int
    database: str
    name: str
    format: str
    owner: str
    location: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    partitions: str = ""

    @property
    def key(self) -> tuple[int, int]:
        """What identifies the table."""
        return self.source, self.created


def tables(ask: Ask) -> list[Table]:
    """Return all tables, without views; LakehouseError where the database does not answer to the end."""
    return [_table(row) for row in rows(ask, _TABLES)]


def partitions(ask: Ask, table: Table) -> dict[str, str]:
    """Return a text for each partition of a table by its name, which changes with the partition."""
    query = _PARTITIONS.format(source=int(table.source))
    return {str(row["name"]): str(row["changed"]) for row in rows(ask, query)}


def rows(ask: Ask, query: str) -> Iterator[Mapping[str, Any]]:
    """Return the documents of a query with one column of jsonb; LakehouseError where they are cut off."""
    with ask(_SCRIPT.format(query=query, end=_END)) as lines:
        for line in lines:
            if line == _END_LINE:
                return
            try:
                yield json.loads(line)
            except ValueError:
                break
        raise cut_off()


def cut_off() -> LakehouseError:
    """Return the error of a reply that has no end; the database's own message comes before it."""
    return LakehouseError("the database has not answered to the end", f"{PROGRAM} doctor")


def _table(row: Mapping[str, Any]) -> Table:
    parameters = {str(name): str(value) for name, value in row["parameters"].items()}
    return Table(
        source=int(row["source"]),
        created=int(row["created"]),
        database=str(row["database"]),
        name=str(row["name"]),
        format=table_format.of(row["kind"], parameters),
        owner=str(row["owner"]),
        location=str(row["location"]),
        parameters=parameters,
        partitions=str(row["partitions"] or ""),
    )
