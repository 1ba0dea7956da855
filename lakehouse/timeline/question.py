"""What people ask the timeline: a request of the control machine, and the query that answers it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakehouse.errors import UsageError
from lakehouse.timeline.store import Store, quoted

MOST = 10_000
_COMMITS = """SELECT to_jsonb(c) FROM timeline.commits c
  WHERE {pattern}{since}{until} ORDER BY committed DESC, number DESC LIMIT {most}"""
_AT = "SELECT to_jsonb(c) FROM timeline.at({moment}) c WHERE {pattern} LIMIT {most}"
_ABANDONED = """SELECT to_jsonb(c) - 'overdue' || jsonb_build_object('overdue_seconds',
  round(extract(epoch FROM overdue))) FROM timeline.abandoned c WHERE {pattern} LIMIT {most}"""
_TROUBLED = """SELECT jsonb_build_object('database', database, 'table', name, 'fault', fault, 'lag', lag)
  FROM (SELECT *, name AS "table" FROM timeline.tables) c
  WHERE dropped IS NULL AND (fault <> '' OR lag <> '') AND {pattern} ORDER BY 1 LIMIT {most}"""
_ABOUT = """SELECT jsonb_build_object('looked', extract(epoch FROM looked), 'subscribers', (
    SELECT coalesce(jsonb_agg(jsonb_build_object('name', name, 'fault', fault)), '[]')
    FROM timeline.subscribers WHERE fault <> '')) FROM timeline.runs"""


def answer(store: Store, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the commits of a request, or each table at a moment; UsageError for an impossible number."""
    pattern = _like(str(request.get("pattern") or ""))
    most = int(request.get("most") or MOST)
    if not 1 <= most <= MOST:
        raise UsageError(f"the number of commits is {most}: 1 to {MOST}")
    words = {"pattern": pattern, "most": str(most)}
    if request.get("at_ms") is not None:
        commits = store.rows(_AT.format(moment=_moment(request["at_ms"]), **words))
    else:
        since, until = (
            "" if request.get(name) is None else f" AND committed {sign} {_moment(request[name])}"
            for name, sign in (("since_ms", ">="), ("until_ms", "<"))
        )
        commits = store.rows(_COMMITS.format(since=since, until=until, **words))
    return {
        "commits": commits,
        "abandoned": store.rows(_ABANDONED.format(**words)),
        "troubled": store.rows(_TROUBLED.format(**words)),
        **store.rows(_ABOUT)[0],
    }


def _moment(time_ms: Any) -> str:
    return f"to_timestamp({int(time_ms)} / 1000.0)"


def _like(pattern: str) -> str:
    """Return the condition for tables `database.table` with `*` for any letters; all for an empty pattern."""
    if not pattern:
        return "true"
    escaped = pattern.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_").replace("*", "%")
    return f"""database || '.' || "table" LIKE {quoted(escaped)}"""
