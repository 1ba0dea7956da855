"""The database of the timeline: what the collector knows and writes, and what people ask."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakehouse.catalog.psql import Ask
from lakehouse.timeline import schema, source
from lakehouse.timeline.commits import Seen
from lakehouse.timeline.source import Table

_KNOWN = """SELECT jsonb_build_object('source', source, 'created', created, 'database', database,
  'name', name, 'format', format, 'location', location, 'state', state, 'fault', fault, 'lag', lag)
  FROM timeline.tables WHERE dropped IS NULL"""
_COUNTS = """SELECT jsonb_build_object(
  'tables', (SELECT count(*) FROM timeline.tables WHERE dropped IS NULL),
  'commits', (SELECT count(*) FROM timeline.instants WHERE state = 'completed'),
  'abandoned', (SELECT count(*) FROM timeline.abandoned),
  'faults', (SELECT count(*) FROM timeline.tables WHERE dropped IS NULL AND fault <> ''),
  'lags', (SELECT count(*) FROM timeline.tables WHERE dropped IS NULL AND lag <> ''),
  'subscribers_failed', (SELECT count(*) FROM timeline.subscribers WHERE fault <> ''))"""
_NEXT = "SELECT to_jsonb(c) FROM timeline.commits c WHERE number > {number} ORDER BY number LIMIT {most}"


@dataclass(frozen=True)
class Known:
    """A table as the last look has left it."""

    row: Mapping[str, Any]

    @property
    def key(self) -> tuple[int, int]:
        """What identifies the table."""
        return int(self.row["source"]), int(self.row["created"])


class Store:
    """The database of the timeline, through psql. Methods raise LakehouseError where it does not answer."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def create(self) -> None:
        """Create the schema, or replace that of another version."""
        if not self.rows(schema.IS_CURRENT)[0]["current"]:
            self._run(schema.SCRIPT)

    def tables(self) -> dict[tuple[int, int], Known]:
        """Return the tables that are not dropped, by what identifies them."""
        return {table.key: table for table in map(Known, source.rows(self._ask, _KNOWN))}

    def observe(self, observations: Sequence[Mapping[str, Any]]) -> int:
        """Write what was seen of tables, each in its own transaction; return the number of new commits."""
        looked = """INSERT INTO timeline.runs (looked) VALUES (clock_timestamp())
            ON CONFLICT (is_only) DO UPDATE SET looked = excluded.looked;\n"""
        return sum(int(line) for line in self._run("".join([*map(_statement, observations), looked])))

    def forget(self, days: int) -> None:
        """Remove what is older than so many days."""
        self._run(f"SELECT timeline.forget(make_interval(days => {int(days)}));\n")

    def counts(self) -> Mapping[str, int]:
        """Return the counts for metrics."""
        return {str(name): int(value) for name, value in next(source.rows(self._ask, _COUNTS)).items()}

    def next_commits(self, number: int, most: int) -> list[Mapping[str, Any]]:
        """Return at most so many commits after a number, in order."""
        return self.rows(_NEXT.format(number=int(number), most=int(most)))

    def rows(self, query: str) -> list[Mapping[str, Any]]:
        """Return the documents of a query with one column of jsonb."""
        return list(source.rows(self._ask, query))

    def subscribe(self, subscribers: Mapping[str, str]) -> None:
        """Make these the subscribers, URLs by name; a new one receives what comes from now on."""
        values = json.dumps([{"name": name, "url": url} for name, url in subscribers.items()])
        self._run(
            f"""BEGIN;
            DELETE FROM timeline.subscribers
              WHERE name NOT IN (SELECT row->>'name' FROM jsonb_array_elements({quoted(values)}::jsonb) row);
            INSERT INTO timeline.subscribers (name, url, number)
              SELECT row->>'name', row->>'url', (SELECT coalesce(max(number), 0) FROM timeline.instants)
              FROM jsonb_array_elements({quoted(values)}::jsonb) row
              ON CONFLICT (name) DO UPDATE SET url = excluded.url;
            COMMIT;
            """
        )

    def delivered(self, name: str, number: int, fault: str) -> None:
        """Write how far a subscriber has come, and why it has not come further."""
        self._run(
            f"UPDATE timeline.subscribers SET number = {int(number)}, fault = {quoted(fault)}"
            f" WHERE name = {quoted(name)};\n"
        )

    def _run(self, script: str) -> list[str]:
        """Run a script; return the lines that it prints, and raise an error where it stops."""
        with self._ask(f"\\set ON_ERROR_STOP on\n{script}\\echo end\n") as lines:
            *printed, end = [line.decode().rstrip("\n") for line in lines] or [""]
            if end != "end":
                raise source.cut_off()
        return printed


def observation(table: Table, seen: Seen, *, dropped: bool = False) -> dict[str, Any]:
    """Return the argument of `timeline.observe`."""
    return {
        "source": table.source, "created": table.created, "database": table.database, "name": table.name,
        "format": table.format, "location": table.location,
        "commits": [commit.document() for commit in seen.commits],
        "open": [vars(instant) for instant in seen.open],
        "state": seen.state, "fault": seen.fault, "lag": seen.lag, "dropped": dropped,
    }  # fmt: skip


def quoted(text: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def _statement(observation: Mapping[str, Any]) -> str:
    without_commits = {**observation, "commits": [], "open": [], "state": ""}
    arguments = (quoted(json.dumps(document)) for document in (observation, without_commits))
    return f"SELECT timeline.observe({', '.join(arguments)});\n"
