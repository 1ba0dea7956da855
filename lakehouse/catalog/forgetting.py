"""Forgets commits that are older than the retention. What stays has the ids that it had.

The history ends where git's own file `shallow` says so: at the state that there was when the time began, and
at each older commit that a tag or a branch names. A clock that is wrong for a while must not end it: a gap
between two commits of `main`, or behind its last one, that is longer than the whole time makes nothing older.
"""

from __future__ import annotations

from lakehouse.catalog.store import Store

_DAY = 24 * 3600
# As many files of objects as git takes for a reason to pack them.
_LOOSE = 6700


def forget(store: Store, days: int, now: float) -> bool:
    """Forget what is older than so many days, at most once a day; tell whether any was. `store` is locked.

    With 0 days nothing is forgotten. Objects that became many are packed in any case.
    """
    span, today = days * _DAY, int(now) // _DAY * _DAY
    ends, known = set[str](), set[str]()
    # Commits with their age. `main` is gone through first; what else has a name is as old as it says.
    waiting = [(one, today - one.time) for one in map(store.commit, store.references.tips())]
    if last := store.head():
        waiting.append((last, _passed(today - last.time, span)))
    while waiting:
        entry, age = waiting.pop()
        if entry.id in known:
            continue
        known.add(entry.id)
        if days and entry.parents and age > span:
            ends.add(entry.id)
        else:
            above = map(store.commit, entry.parents)
            waiting += [(one, age + _passed(entry.time - one.time, span)) for one in above]
    ends |= store.ends() & known
    # Also what one that was killed has left.
    gone = {one for number in ends for one in store.parents(number) if one in store.objects} - known
    if gone or sum(1 for _ in (store.path / "objects").glob("??/*")) > _LOOSE:
        store.forget_all_but(ends)
    return bool(gone)


def _passed(gap: int, span: int) -> int:
    """Return the seconds of a gap that count."""
    return gap if gap <= span else 0
