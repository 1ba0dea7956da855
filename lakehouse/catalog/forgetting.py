"""Forgets commits that are older than somebody wants to keep. What stays has the ids that it had.

The history ends where git's own file `shallow` says so: at the state that there was when the time began, and
at each older commit that a tag or a branch names.
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
    since = (int(now) // _DAY - days) * _DAY if days else 0
    ends, known, gone = set[str](), set[str](), set[str]()
    waiting = [*store.names("heads").values(), *store.names("tags").values()]
    while waiting:
        entry = store.commit(waiting.pop())
        if entry.id in known:
            continue
        known.add(entry.id)
        if entry.parents and entry.time < since:
            ends.add(entry.id)
            gone.update(entry.parents)
        else:
            waiting += entry.parents
    gone -= known
    if gone or sum(1 for _ in (store.path / "objects").glob("??/*")) > _LOOSE:
        store.forget_all_but(ends | (store.ends() & known))
    return bool(gone)
