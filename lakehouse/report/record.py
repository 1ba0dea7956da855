"""Read JSON of another program; each error is a line with file and place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from lakehouse.errors import LakehouseError

# Letters of a wrong value that a message repeats.
_SHOWN = 60


def load(path: Path, next_command: str) -> Record:
    """Read a file that `next_command` makes; LakehouseError names both when it is missing or not JSON."""
    try:
        return Record(json.loads(path.read_text(encoding="utf-8")), str(path), next_command)
    except FileNotFoundError:
        raise LakehouseError(f"{path} is missing", next_command) from None
    except (OSError, ValueError) as error:
        raise LakehouseError(f"{path} is not JSON: {error}", next_command) from None


class Record:
    """One JSON value and where it stands; every access says what was expected there."""

    def __init__(self, value: object, where: str, next_command: str) -> None:
        self.value = value
        self.where = where
        self._next_command = next_command

    def __contains__(self, key: str) -> bool:
        return isinstance(self.value, dict) and self.value.get(key) is not None

    def __getitem__(self, key: str) -> Record:
        if not isinstance(self.value, dict):
            raise self._expected("an object")
        if self.value.get(key) is None:
            raise LakehouseError(f"{self.where} lacks {key!r}", self._next_command)
        return self._child(self.value[key], key)

    def items(self) -> Iterator[tuple[str, Record]]:
        """Keys and values of an object."""
        if not isinstance(self.value, dict):
            raise self._expected("an object")
        for key, value in self.value.items():
            yield key, self._child(value, key)

    def entries(self) -> Iterator[Record]:
        """Members of a list."""
        if not isinstance(self.value, list):
            raise self._expected("a list")
        for index, value in enumerate(self.value):
            yield self._child(value, str(index))

    def text(self, key: str | None = None) -> str:
        """Return the value, or the one at `key`, as text; a number will do, too."""
        record = self if key is None else self[key]
        if isinstance(record.value, bool) or not isinstance(record.value, str | int | float):
            raise record._expected("text")
        return str(record.value)

    def count(self, key: str | None = None) -> int:
        """Return the value, or the one at `key`, as a whole number that is not negative."""
        record = self if key is None else self[key]
        if isinstance(record.value, bool) or not isinstance(record.value, int) or record.value < 0:
            raise record._expected("a count")
        return record.value

    def _child(self, value: object, key: str) -> Record:
        return Record(
            value,
            f"{self.where}: {key}" if ": " not in self.where else f"{self.where}.{key}",
            self._next_command,
        )

    def _expected(self, description: str) -> LakehouseError:
        value_text = json.dumps(self.value)
        value_text = value_text if len(value_text) <= _SHOWN else f"{value_text[:_SHOWN]}..."
        return LakehouseError(f"{self.where} is {value_text}, expected {description}", self._next_command)
