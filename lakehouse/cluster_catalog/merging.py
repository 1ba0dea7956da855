"""`lakehouse catalog merge`, `cherry-pick` and `revert`: commit a change to a branch.

The metastore is not changed: `catalog restore` writes the state of a branch. `main` has the past states.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lakehouse.catalog import commits, diff
from lakehouse.catalog import text as screen
from lakehouse.catalog.build import CATALOG
from lakehouse.catalog.diff import Action
from lakehouse.catalog.merging.sides import Choice, Conflict, Side, Three
from lakehouse.catalog.merging.trees import merge as merge_trees
from lakehouse.catalog.overlay import Batch
from lakehouse.catalog.references import MAIN
from lakehouse.catalog.store import Entry, Store
from lakehouse.cluster_catalog.repository import command, end, opened, say
from lakehouse.errors import UsageError
from lakehouse.outcome import Finding, Outcome
from lakehouse.shared_options import COMPOSE, MergeOptions

# The key of the original commit in the message.
_ORIGIN = {"merge": "Merged", "cherry-pick": "Picked", "revert": "Reverted"}


@dataclass(frozen=True)
class _Change:
    """The change to apply: the differences between `base` and `theirs`; `commit` is the verb's argument."""

    verb: str
    commit: Entry
    base: Entry | None
    theirs: Entry


@dataclass(frozen=True)
class _Line:
    """The target branch, and its last commit; a new branch begins at that of `main`."""

    name: str
    tip: Entry
    new: bool


@dataclass(frozen=True)
class _MergeResult:
    """The result of a change: its commit, or None without a difference or with unresolved conflicts."""

    entry: Entry | None = None
    conflicts: Sequence[Conflict] = ()
    facts: tuple[str, ...] = ()


def carry_out(verb: str, options: MergeOptions) -> int:
    """Merge, cherry-pick or revert a commit; return 0, or 1 with unresolved conflicts."""
    with opened(options, writes=True) as (store, target), store.locked():
        entry = store.resolve(options.commit)
        line = _line(store, options, verb, entry)
        return _carry_out(options, (store, target), line, _CHANGES[verb](store, line, entry))


def _line(store: Store, options: MergeOptions, verb: str, commit: Entry) -> _Line:
    """Return the target branch, by default one named after the verb and the commit."""
    name = str(options.into or f"{verb}-{commit.short}")
    if name == MAIN:
        raise UsageError(
            f"--into {MAIN}: {MAIN} is what the metastore has been, commit by commit; --into another branch,"
            " which lakehouse catalog restore writes"
        )
    number = store.references.names("heads").get(name)
    if number and not options.into:
        raise UsageError(f"{name} is there already; --into {name} to go on with it, or --into another one")
    return _Line(name, store.commit(number) if number else store.resolve("HEAD"), new=not number)


def _before(store: Store, entry: Entry) -> Entry:
    if not entry.parents:
        raise UsageError(f"{entry.short} is the first commit: nothing is before it")
    return store.commit(entry.parents[0])


_CHANGES: Mapping[str, Callable[[Store, _Line, Entry], _Change]] = {
    "merge": lambda store, line, entry: _Change("merge", entry, store.common(line.tip, entry), entry),
    "cherry-pick": lambda store, _, entry: _Change("cherry-pick", entry, _before(store, entry), entry),
    "revert": lambda store, _, entry: _Change("revert", entry, entry, _before(store, entry)),
}


def _carry_out(options: MergeOptions, opened_store: tuple[Store, str], line: _Line, change: _Change) -> int:
    """Apply the change and print the result; return 0, or 1 with unresolved conflicts and no commit."""
    began, (store, target) = time.monotonic(), opened_store
    choice = Choice(_side(options), data=not options.no_data)
    result = _apply(options, store, line, change, choice)
    entry = result.entry
    changes = list(diff.changes(store, line.tip.tree, entry.tree)) if entry else []
    if not options.as_json:
        say([*map(str, result.conflicts), *map(screen.change, changes)])
    # Only for objects that this change removes.
    drop = " --drop" if any(applied.action is Action.REMOVED for applied in changes) else ""
    commit_facts = [f"{entry.short} on {line.name}", screen.many(len(changes), "change")] if entry else []
    return end(
        options,
        change.verb,
        target,
        (*commit_facts, *result.facts, f"{time.monotonic() - began:.1f} s"),
        {
            "commit": entry.id if entry else None,
            "branch": line.name,
            "base": change.base.id if change.base else None,
            "ours": line.tip.id,
            "theirs": change.theirs.id,
            "conflicts": [conflict.json() for conflict in result.conflicts],
            "changes": [applied.json() for applied in changes],
        },
        _next_verb(options, entry, drop),
        () if entry else _undecided(options, line, change, result.conflicts),
    )


def _side(options: MergeOptions) -> Side | None:
    """Return the side that wins conflicts; None for no side."""
    return Side.OURS if options.ours else Side.THEIRS if options.theirs else None


def _next_verb(options: MergeOptions, entry: Entry | None, drop: str) -> str:
    """Return the verb to run next: a stack cannot restore a commit, but serve it."""
    if entry is None:
        return "catalog log"
    return (
        f"catalog serve {entry.short}"
        if options.target == COMPOSE
        else f"catalog restore {entry.short}{drop}"
    )


def _apply(options: MergeOptions, store: Store, line: _Line, change: _Change, choice: Choice) -> _MergeResult:
    """Commit a change, unless it has unresolved conflicts."""
    joins = change.verb == "merge"
    if joins and change.base == change.theirs:
        return _MergeResult(facts=(f"nothing to merge: {line.tip.short} has all of {change.theirs.short}",))
    before = None if line.new else line.tip
    if joins and change.base == line.tip and choice.data:
        store.move(line.name, before, change.theirs)
        return _MergeResult(change.theirs, facts=("fast-forward",))
    batch = Batch(store)
    trees = Three(change.base.tree if change.base else None, line.tip.tree, change.theirs.tree)
    merged = merge_trees(batch, trees, choice)
    if merged.conflicts and choice.side is None:
        return _MergeResult(conflicts=merged.conflicts)
    if merged.tree == line.tip.tree and not joins:
        return _MergeResult(facts=(f"nothing to {change.verb}: {line.tip.short} has it so already",))
    author, identity = commits.author(options.author), batch.tree(merged.tree)[CATALOG]
    batch.flush()
    message = (
        f"{options.message or f'{change.verb} {options.commit}: {change.commit.subject}'}\n\n"
        f"{_ORIGIN[change.verb]}: {change.commit.id}\nCatalog: {identity}\n"
    )
    # The history is ordered by time, and the clock of this machine may differ from that of the database.
    moment = max(int(time.time()), line.tip.time, change.theirs.time)
    parents = [line.tip, *([change.theirs] if joins else [])]
    commit = store.add(merged.tree, parents, author, moment, message)
    store.move(line.name, before, commit)
    decided = (
        (f"{screen.many(len(merged.conflicts), 'conflict')}: {choice.side}",) if merged.conflicts else ()
    )
    return _MergeResult(commit, merged.conflicts, decided)


def _undecided(
    options: MergeOptions, line: _Line, change: _Change, conflicts: Sequence[Conflict]
) -> tuple[Finding, ...]:
    """Return the finding about unresolved conflicts, with the command that shows the other side's changes."""
    if not conflicts:
        return ()
    fact = (
        f"{screen.many(len(conflicts), 'conflict')}, nothing is written; --ours or --theirs decides them all"
    )
    look = f"catalog diff {(change.base or line.tip).short} {change.theirs.short}"
    return (Finding("catalog.conflict", Outcome.DEGRADED, line.name, fact, command(options, look)),)
