"""Flink through its SQL gateway: one session that runs batch statements and waits for their end."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from suites.testbed.engines import EngineError
from suites.testbed.engines.facade import Facade, Row
from suites.testbed.engines.flink_values import decode, root_cause

Json = dict[str, Any]

ENGINE = "flink"
# A statement is over when its job is, and a job that fails is not tried again: the test wants its reason.
SESSION = {
    "execution.runtime-mode": "batch",
    "table.dml-sync": "true",
    "restart-strategy.type": "none",
}
_HTTP_SECONDS = 60.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.25


@dataclass(repr=False)
class Flink(Facade):
    """A session of the SQL gateway; `statements` are what the running test has sent, oldest first."""

    url: str
    session: str
    catalog: str
    properties: Mapping[str, str]
    statements: list[str] = field(default_factory=list)

    @classmethod
    def connect(
        cls, url: str, catalog: str = "iceberg", properties: Mapping[str, str | None] | None = None
    ) -> Flink:
        """Open a session on `http://host:port`; `properties` change what `SESSION` says, None removes."""
        all_properties = {**SESSION, **(properties or {})}
        session_properties = {key: value for key, value in all_properties.items() if value is not None}
        base = f"{url.rstrip('/')}/v3"
        handle = _call("POST", f"{base}/sessions", {"properties": session_properties})["sessionHandle"]
        flink = cls(base, handle, catalog, session_properties)
        flink.run(f"USE CATALOG `{catalog}`")
        return flink

    def sql(self, statement: str) -> list[Row]:
        """Run one statement to its end; return its rows, none for what only says that it is done."""
        self.statements.append(statement)
        return self.run(statement)

    def run(self, statement: str, seconds: float = 600.0) -> list[Row]:
        """As `sql`, without remembering the statement. After `seconds` it is cancelled: EngineError."""
        operations = f"{self.url}/sessions/{self.session}"
        try:
            handle = _call("POST", f"{operations}/statements", {"statement": statement})["operationHandle"]
            return self._fetch(f"{operations}/operations/{handle}", time.monotonic() + seconds)
        except _RefusalError as refusal:
            raise EngineError(ENGINE, statement, str(refusal)) from None

    def submit(self, statement: str) -> str:
        """Start a job (a streaming INSERT) in a session that does not wait for it; return the job's id."""
        self.statements.append(statement)
        self.run("SET 'table.dml-sync' = 'false'")
        try:
            [[job]] = self._submit(statement)
        finally:
            self.run("SET 'table.dml-sync' = 'true'")
        return str(job)

    def fresh(self) -> Flink:
        """Open a second session that adds to the same list of statements."""
        session = Flink.connect(self.url.removesuffix("/v3"), self.catalog, self.properties)
        return replace(session, statements=self.statements)

    def close(self) -> None:
        """End the session; jobs that it did not wait for go on."""
        _call("DELETE", f"{self.url}/sessions/{self.session}")

    def _submit(self, statement: str) -> list[Row]:
        session = f"{self.url}/sessions/{self.session}"
        try:
            handle = _call("POST", f"{session}/statements", {"statement": statement})["operationHandle"]
            pages = self._pages(f"{session}/operations/{handle}", time.monotonic() + _HTTP_SECONDS)
            return [(page["jobID"],) for page in pages if "jobID" in page][:1]
        except _RefusalError as refusal:
            raise EngineError(ENGINE, statement, str(refusal)) from None

    def _fetch(self, operation: str, deadline: float) -> list[Row]:
        rows: list[Row] = []
        for page in self._pages(operation, deadline):
            is_end = page["resultKind"] == "SUCCESS" or ("jobID" in page and not page["isQueryResult"])
            if not is_end:
                rows += _rows(page["results"])
        return rows

    def _pages(self, operation: str, deadline: float) -> list[Json]:
        """All pages of a result; those that are not ready, or empty while a job runs, are asked for again."""
        pages = []
        uri: str | None = f"{operation}/result/0?rowFormat=JSON"
        pause = _FIRST_PAUSE
        while uri:
            page = _call("GET", uri)
            ready = page["resultType"] != "NOT_READY"
            if ready:
                pages.append(page)
            following = page.get("nextResultUri")
            uri = f"{self.url}{following.removeprefix('/v3')}" if following else None
            if uri and not (ready and page["results"]["data"]):
                if time.monotonic() > deadline:
                    _call("POST", f"{operation}/cancel", {})
                    raise _RefusalError("it did not end in time and was cancelled")
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
        return pages


class _RefusalError(Exception):
    """What the gateway answered instead of a result."""


def _rows(results: Json) -> list[Row]:
    kinds = [column["logicalType"] for column in results["columns"]]
    return [
        tuple(decode(value, kind) for value, kind in zip(row["fields"], kinds, strict=True))
        for row in results["data"]
    ]


def _call(method: str, url: str, body: Json | None = None) -> Json:
    """One request; decimals are kept exact."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(  # noqa: S310 (an endpoint of the cluster)
        url, method=method, data=data, headers={"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=_HTTP_SECONDS) as response:  # noqa: S310
            answer: Json = json.loads(response.read(), parse_float=Decimal)
    except urllib.error.HTTPError as error:
        raise _RefusalError(_reason(error.read().decode(errors="replace"))) from None
    except urllib.error.URLError as error:
        raise _RefusalError(f"{url}: {error.reason}; next: journalctl -u flink-sql-gateway") from None
    return answer


def _reason(body: str) -> str:
    """The root cause in the gateway's list of errors; the last one carries the stack trace."""
    try:
        errors = json.loads(body)["errors"]
    except (ValueError, KeyError, TypeError):
        return body[:200]
    return root_cause(str(errors[-1]) if errors else "")
