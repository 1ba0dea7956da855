"""Remove commits that are older than the retention; the others keep their ids.

The history ends at the commits in git's own file `shallow`: the last one before the retention, and each older
commit with a tag or a branch. A temporarily wrong clock must not end the history: a gap between two commits
of `main`, or after its last one, that is longer than the retention does not count for the age.
"""

from __future__ import annotations

from lakehouse.catalog.store import Store

_DAY = 24 * 3600
# The number of loose objects at which git itself packs them.
_LOOSE = 6700


def forget(store: Store, days: int, now: float) -> bool:
    """Remove commits older than so many days, at most once a day; return whether there were any.

    `store` is locked. With 0 days no commit is removed. Many loose objects are packed in any case.
    """
    span, today = days * _DAY, int(now) // _DAY * _DAY
    ends, visited = set[str](), set[str]()
    # Commits with their age. `main` is visited first; the age of other references is that of their commit.
    stack = [(commit, today - commit.time) for commit in map(store.commit, store.references.tips())]
    if head := store.head():
        stack.append((head, _counted_gap(today - head.time, span)))
    while stack:
        entry, age = stack.pop()
        if entry.id in visited:
            continue
        visited.add(entry.id)
        if days and entry.parents and age > span:
            ends.add(entry.id)
        else:
            parents = map(store.commit, entry.parents)
            stack += [(parent, age + _counted_gap(entry.time - parent.time, span)) for parent in parents]
    ends |= store.ends() & visited
    # Also commits that an interrupted run has left.
    parents_of_ends = {parent for number in ends for parent in store.parents(number)}
    expired = {number for number in parents_of_ends if number in store.objects} - visited
    if expired or sum(1 for _ in (store.path / "objects").glob("??/*")) > _LOOSE:
        store.forget_all_but(ends)
    return bool(expired)


def _counted_gap(gap: int, span: int) -> int:
    """Return the seconds of a gap between commits that count for the age."""
    return gap if gap <= span else 0
