"""Send commits to subscribers over HTTP, in order: one that fails gets the same ones at the next run.

The body is an object of JSON: `cluster`, and `commits` with their `number`. A subscriber that has answered,
and whose answer was lost, receives them again: their numbers tell.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any

from lakehouse.timeline.store import Store

_AT_ONCE = 100
_ROUNDS = 10
_SECONDS = 5.0
_SUBSCRIBERS = "SELECT to_jsonb(s) FROM timeline.subscribers s"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is a failure: the inventory names who receives commits."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def deliver(store: Store, cluster: str) -> None:
    """Send each subscriber what it has not received; LakehouseError where the database does not answer."""
    for subscriber in store.rows(_SUBSCRIBERS):
        name, number, fault = str(subscriber["name"]), int(subscriber["number"]), ""
        for _ in range(_ROUNDS):
            commits = store.next_commits(number, _AT_ONCE)
            if not commits:
                break
            fault = _sent(str(subscriber["url"]), {"cluster": cluster, "commits": commits})
            if fault:
                break
            number = int(commits[-1]["number"])
            store.delivered(name, number, fault)
        if fault != subscriber["fault"]:
            store.delivered(name, number, fault)


def _sent(url: str, document: Mapping[str, Any]) -> str:
    """Return why a document could not be sent; the URL may contain a secret and stays out."""
    request = urllib.request.Request(
        url, json.dumps(document).encode(), {"Content-Type": "application/json"}, method="POST"
    )
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=_SECONDS):
            return ""
    except urllib.error.HTTPError as error:
        return f"it answers with {error.code}"
    except urllib.error.URLError as error:
        return f"it does not answer: {error.reason}"
    except (OSError, ValueError, HTTPException) as error:
        return f"it does not answer: {type(error).__name__}"
