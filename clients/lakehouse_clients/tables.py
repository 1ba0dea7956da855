"""PyIceberg's tables, whose conditions mean what they mean in SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from inspect import signature
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.expressions.visitors import ResidualEvaluator, bind, extract_field_ids
from pyiceberg.io.pyarrow import ArrowScan, expression_to_pyarrow, schema_to_pyarrow
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.table import (
    BaseScan,
    CreateTableTransaction,
    DataScan,
    IncrementalAppendScan,
    ManifestGroupPlanner,
    Transaction,
    UpsertResult,
)
from pyiceberg.table import Table as PyIcebergTable
from pyiceberg.typedef import Record
from pyiceberg.types import DoubleType, FloatType, NestedField

from lakehouse_clients.conditions import exact
from lakehouse_clients.errors import ClientError

_Scan = TypeVar("_Scan", bound=BaseScan)
_ALL = AlwaysTrue()


class _ExactScan(BaseScan):
    """A scan that returns the rows for which its condition is TRUE.

    Conditions on floating-point columns are evaluated on rows in memory: Arrow's reader first compares them
    with a row group's smallest and largest value, which leave NaN out.
    """

    def filter(self: _Scan, expr: str | BooleanExpression) -> _Scan:
        """Return this scan with an additional condition."""
        return super().filter(exact(expr))

    def to_arrow(self, dictionary_columns: tuple[str, ...] = ()) -> pa.Table:
        """Return all rows as PyIceberg does."""
        if not self._meets_nan():
            return super().to_arrow(**_options(dictionary_columns))  # type: ignore[safe-super]
        tables = list(self._rows(dictionary_columns)) or [self._arrow_schema().empty_table()]
        return pa.concat_tables(tables, promote_options="permissive")

    def to_arrow_batch_reader(self, dictionary_columns: tuple[str, ...] = ()) -> pa.RecordBatchReader:
        """Return a stream of all rows as PyIceberg does."""
        if not self._meets_nan():
            return super().to_arrow_batch_reader(**_options(dictionary_columns))  # type: ignore[misc]
        schema = self._arrow_schema()
        batches = (batch for rows in self._rows(()) for batch in rows.cast(schema).to_batches())
        return pa.RecordBatchReader.from_batches(schema, batches)

    def _table_schema(self) -> Schema:
        return self.update(selected_fields=("*",)).projection()  # type: ignore[attr-defined, no-any-return]

    def _arrow_schema(self) -> pa.Schema:
        return schema_to_pyarrow(self.projection(), include_field_ids=False)  # type: ignore[attr-defined]

    def _columns_of_condition(self) -> list[NestedField]:
        schema = self._table_schema()
        ids = extract_field_ids(bind(schema, self.row_filter, self.case_sensitive))
        return [schema.find_field(field_id) for field_id in ids]

    def _meets_nan(self) -> bool:
        return any(
            isinstance(column.field_type, FloatType | DoubleType) for column in self._columns_of_condition()
        )

    def _rows(self, dictionary_columns: tuple[str, ...]) -> Iterator[pa.Table]:
        """Yield the rows of each batch for which the condition is TRUE."""
        table_schema, projected = self._table_schema(), self.projection()  # type: ignore[attr-defined]
        read_schema = projected
        if "*" not in self.selected_fields:
            ids = [column.field_id for column in self._columns_of_condition()]
            names = [name for field_id in ids if (name := table_schema.find_column_name(field_id))]
            read_schema = table_schema.select(
                *self.selected_fields, *names, case_sensitive=self.case_sensitive
            )
        condition = expression_to_pyarrow(
            bind(read_schema, self.row_filter, self.case_sensitive), read_schema
        )
        scan = ArrowScan(
            self.table_metadata,
            self.io,
            read_schema,
            _ALL,
            self.case_sensitive,
            dictionary_columns=dictionary_columns,
        )
        tasks: Any = self.plan_files()
        remaining = self.limit
        for batch in scan.to_record_batches(tasks):
            rows = (
                pa.Table.from_batches([batch])
                .filter(condition)
                .select([column.name for column in projected.fields])
            )
            if remaining is not None:
                rows = rows.slice(0, remaining)
                remaining -= len(rows)
            if len(rows):
                yield rows
            if remaining == 0:
                return


def _options(dictionary_columns: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Return the options of a scan of PyIceberg: that of appended rows has none."""
    return {"dictionary_columns": dictionary_columns} if dictionary_columns else {}


class _Residuals(ResidualEvaluator):
    """The condition that remains to be evaluated on the rows of a partition."""

    def residual_for(self, partition_data: Record) -> BooleanExpression:
        """Return the whole condition where PyIceberg fails to compare a value with NULL."""
        try:
            return super().residual_for(partition_data)
        except TypeError:
            return self.expr


class _Planner(ManifestGroupPlanner):
    """PyIceberg's choice of files."""

    def _build_residual_evaluator(self, spec_id: int) -> Callable[[DataFile], ResidualEvaluator]:
        spec, schema = self.table_metadata.specs()[spec_id], self.table_metadata.schema()
        if spec.is_unpartitioned():
            return super()._build_residual_evaluator(spec_id)
        return lambda _file: _Residuals(schema, spec, self.case_sensitive, self.row_filter)


class Scan(_ExactScan, DataScan):
    """Rows of a table."""

    @cached_property
    def _manifest_planner(self) -> ManifestGroupPlanner:
        return _Planner(self.table_metadata, self.io, self.row_filter, self.case_sensitive, self.options)

    def count(self) -> int:
        """Return the number of rows."""
        return sum(map(len, self._rows(()))) if self._meets_nan() else super().count()


class AppendScan(_ExactScan, IncrementalAppendScan):
    """Rows that were appended between two snapshots."""


class _ExactConditions(Transaction):
    """A transaction that deletes and overwrites the rows that a scan with the same condition returns."""

    def _scan(self, row_filter: str | BooleanExpression = _ALL, case_sensitive: bool = True) -> DataScan:
        return _as(Scan, super()._scan(row_filter, case_sensitive))

    def delete(self, delete_filter: str | BooleanExpression, *arguments: Any, **options: Any) -> None:
        """Delete the rows for which the condition is TRUE; `overwrite` calls this, too."""
        super().delete(exact(delete_filter), *arguments, **options)

    def upsert(
        self, df: pa.Table, join_cols: list[str] | None = None, *arguments: Any, **options: Any
    ) -> UpsertResult:
        """Update the rows with these keys, and insert the others; ClientError for keys of NULL or NaN."""
        schema = self.table_metadata.schema()
        for key in join_cols or map(schema.find_column_name, schema.identifier_field_ids):
            _require_values(df, str(key))
        return super().upsert(df, join_cols, *arguments, **options)


class ExactTransaction(_ExactConditions, Transaction):
    """A transaction on a table."""


class ExactCreateTransaction(_ExactConditions, CreateTableTransaction):
    """A transaction that creates a table."""


class Table(PyIcebergTable):
    """PyIceberg's table: `scan`, `delete`, `overwrite` and `upsert` agree on what a condition means."""

    @classmethod
    def of(cls, table: PyIcebergTable) -> Table:
        """Return a table of PyIceberg as one of this class."""
        return cls(
            table.name(), table.metadata, table.metadata_location, table.io, table.catalog, table.config
        )

    def transaction(self) -> ExactTransaction:
        """Return a new transaction."""
        return ExactTransaction(self)

    def scan(self, row_filter: str | BooleanExpression = _ALL, *arguments: Any, **options: Any) -> Scan:
        """Return a scan of the rows for which the condition is TRUE."""
        return _as(Scan, super().scan(exact(row_filter), *arguments, **options))

    def incremental_append_scan(
        self, *, row_filter: str | BooleanExpression = _ALL, **options: Any
    ) -> AppendScan:
        """Return a scan of appended rows for which the condition is TRUE."""
        return _as(AppendScan, super().incremental_append_scan(row_filter=exact(row_filter), **options))


def _as(kind: type[_Scan], scan: BaseScan) -> _Scan:
    """Return a scan as one of a subclass, with the same parameters."""
    return kind(**{name: getattr(scan, name) for name in signature(type(scan)).parameters})


def _require_values(rows: pa.Table, key: str) -> None:
    """Raise ClientError if a key is NULL or NaN: it equals no row's, and PyIceberg cannot look for it."""
    if key in rows.column_names and pc.any(pc.is_null(rows[key], nan_is_null=True)).as_py():
        raise ClientError(
            f"upsert: the key {key} is NULL or NaN in some rows, which equals no row of the table",
            "append those rows, and upsert the others",
        )
