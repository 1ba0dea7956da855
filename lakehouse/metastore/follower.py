"""Follows a metastore's notification log, so that a cache forgets what others have changed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from hive_metastore import ttypes

from lakehouse.metastore import events
from lakehouse.metastore.cached import Cached
from lakehouse.metastore.deadline import Deadline
from lakehouse.metastore.errors import UnsupportedError, told

_BATCH = 1000
# The settings that name what a metastore calls at each change; one of them writes the log.
_LISTENERS = "hive.metastore.transactional.event.listeners", "hive.metastore.event.listeners"
_WRITER = "NotificationListener"
_NEVER = "nothing is known of what was before"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Look:
    """What a look at the log has found: the last event that is known, and how many were new.

    `gap` is why everything was forgotten; `error` is why the log could not be read.
    """

    cursor: int | None
    events: int = 0
    gap: str = ""
    error: str = ""


def _said(look: Look) -> None:
    if look.gap:
        _log.warning("%s: the whole cache was forgotten", look.gap)
    if look.error:
        _log.warning("the notification log cannot be read: %s", look.error)


class Follower:
    """Looks at the log again and again, and has a cache forget what its events are about.

    Events have numbers without gaps. Where one is missing, since the metastore has thrown old ones away or
    has another database now, everything is forgotten, and `report` is told (by default, Python's log is).
    While the log cannot be read, answers are kept for as long as without it: `Limits.ttl`.
    """

    def __init__(
        self,
        cache: Cached,
        cursor: Path,
        *,
        every: float = 10.0,
        report: Callable[[Look], None] = _said,
    ) -> None:
        """Look at nothing yet. `cursor` is the file that has the number of the last event that was seen."""
        self._cache, self._file, self._every, self._report = cache, cursor, every, report
        self._written = False
        self._end = threading.Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Have a thread look now, and then every so many seconds until `close`."""
        threading.Thread(target=self._follow, name="metastore-events", daemon=True).start()

    def close(self) -> None:
        """Look no more; a look that has begun ends with its deadline."""
        self._end.set()

    def look(self, seconds: float = 20.0) -> Look:
        """Look once, for so many seconds at most; return what was found.

        Raises UnsupportedError where the metastore writes no log, and what calls of the metastore raise.
        """
        deadline = Deadline(seconds)
        self._check(deadline)
        newest = self._ask(deadline, "get_current_notificationEventId").eventId
        cursor, gap = self._cursor()
        number = 0
        while not gap:
            request = ttypes.NotificationEventRequest(lastEvent=cursor, maxEvents=_BATCH)
            found = self._ask(deadline, "get_next_notification", request).events or []
            gap = _gap(cursor, newest, [one.eventId for one in found])
            if gap or not found:
                break
            self._cache.forget({name for one in found for name in events.changed(one)})
            number += len(found)
            cursor = found[-1].eventId
            self._save(cursor)
        if gap:
            cursor = newest
            self._cache.forget()
            self._save(cursor)
        return Look(cursor, number, gap)

    def _follow(self) -> None:
        while not self._end.is_set():
            try:
                look = self.look()
            except Exception as error:  # noqa: BLE001 -- without its thread the cache would be trusted for ever
                look = Look(None, error=told(error))
            try:
                self._report(look)
            except Exception:  # noqa: BLE001 -- the same
                _log.exception("the report on the notification log has failed")
            self._end.wait(self._every)

    def _ask(self, deadline: Deadline, method: str, *arguments: Any) -> Any:
        return self._cache.call(method, *arguments, seconds=deadline.left())

    def _check(self, deadline: Deadline) -> None:
        """Raise UnsupportedError where no server writes the log: it would stay empty, and look like peace."""
        if self._written:
            return
        listeners = [self._ask(deadline, "get_config_value", name, "") for name in _LISTENERS]
        if not any(_WRITER in str(one) for one in listeners):
            raise UnsupportedError(
                f"the metastore writes no notification log: no *{_WRITER} is in {' or '.join(_LISTENERS)}"
            )
        self._written = True

    def _cursor(self) -> tuple[int, str]:
        """Return the number of the last event that was seen, or why there is none."""
        try:
            return int(self._file.read_text(encoding="ascii")), ""
        except FileNotFoundError:
            return 0, _NEVER
        except ValueError:
            return 0, f"{self._file} has no number of an event"

    def _save(self, cursor: int) -> None:
        new = self._file.with_name(f"{self._file.name}.new")
        new.write_text(f"{cursor}\n", encoding="ascii")
        new.replace(self._file)


def _gap(cursor: int, newest: int, numbers: list[int]) -> str:
    """Return which events are missing between the last that was seen and those that are there, if any are."""
    if newest < cursor:
        return f"the log ends at event {newest}, before {cursor}, which was seen: it is another one"
    if not numbers and cursor < newest:
        return f"events {cursor + 1} to {newest} are gone"
    for expected, number in enumerate(numbers, cursor + 1):
        if number != expected:
            return f"events {expected} to {number - 1} are gone"
    return ""
