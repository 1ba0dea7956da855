"""Read a document field by field, and report the fields that were not read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lakehouse.catalog.documents import Document

# Reports a field that Thrift cannot hold, with the name of the object and that of the field.
ReportField = Callable[[str, str], None]


class FieldReader:
    """A document whose fields are taken one by one; `end` reports the remaining ones as lost."""

    def __init__(self, document: Document | None, name: str, report_field: ReportField) -> None:
        self._remaining = dict(document or {})
        self.name, self.report_field = name, report_field

    def take(self, key: str, default: Any = None) -> Any:
        """Return the value of a field, or the default of a missing one."""
        return self._remaining.pop(key, default)

    def below(self, key: str) -> FieldReader:
        """Return a reader of a nested document, which reports with its own name."""
        return FieldReader(self._remaining.pop(key, None), f"{self.name} {key}".strip(), self.report_field)

    def each(self, key: str) -> Iterable[FieldReader]:
        """Give readers of the documents in a list."""
        for document in self._remaining.pop(key, None) or ():
            yield FieldReader(document, f"{self.name} {key}", self.report_field)

    def end(self, *ignored: str) -> None:
        """Report all fields that were not taken, except for `ignored` ones, which are converted elsewhere."""
        for key in sorted(self._remaining.keys() - set(ignored)):
            self.report_field(self.name, key)
        self._remaining = {}
