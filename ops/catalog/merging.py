"""`lakehouse catalog merge`, `cherry-pick` and `revert`: a change of the catalog, as a commit of a branch.

The metastore is not touched: `catalog restore` writes the desired state. `main` is what has been.
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
from lakehouse.errors import UsageError
from lakehouse.shared_options import COMPOSE, MergeOptions
from ops.catalog.repository import command, end, opened, say
from ops.outcome import Finding, Outcome

# What of a commit's message says which one was meant.
_MEANT = {"merge": "Merged", "cherry-pick": "Picked", "revert": "Reverted"}


@dataclass(frozen=True)
class _Change:
    """What is to change: what became of one commit in another one; `meant` is the one that was asked for."""

    verb: str
    meant: Entry
    base: Entry | None
    theirs: Entry


@dataclass(frozen=True)
class _Line:
    """The branch that a change goes to, and its last commit; a new one begins at that of `main`."""

    name: str
    tip: Entry
    new: bool


@dataclass(frozen=True)
class _Done:
    """What became of a change: its commit, or none where nothing is to do, or a person has to decide."""

    entry: Entry | None = None
    conflicts: Sequence[Conflict] = ()
    facts: tuple[str, ...] = ()


def carry_out(verb: str, options: MergeOptions) -> int:
    """Make a commit of a branch: merge, cherry-pick or revert; return 0, or 1 where conflicts are left."""
    with opened(options, writes=True) as (store, target), store.locked():
        entry = store.resolve(options.commit)
        line = _line(store, options, verb, entry)
        return _carry_out(options, (store, target), line, _CHANGES[verb](store, line, entry))


def _line(store: Store, options: MergeOptions, verb: str, meant: Entry) -> _Line:
    """Return the branch that is asked for, or one that is called after what is done."""
    name = str(options.into or f"{verb}-{meant.short}")
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
    """Do it and say how it ended: 0, or 1 where a person has to decide, and nothing was written."""
    began, (store, target) = time.monotonic(), opened_store
    choice = Choice(_side(options), data=not options.no_data)
    done = _done(options, store, line, change, choice)
    entry = done.entry
    changes = list(diff.changes(store, line.tip.tree, entry.tree)) if entry else []
    if not options.as_json:
        say([*map(str, done.conflicts), *map(screen.change, changes)])
    # What else the branch does not have was not asked to be dropped.
    drop = " --drop" if any(one.action is Action.REMOVED for one in changes) else ""
    made = [f"{entry.short} on {line.name}", screen.many(len(changes), "change")] if entry else []
    return end(
        options,
        change.verb,
        target,
        (*made, *done.facts, f"{time.monotonic() - began:.1f} s"),
        {
            "commit": entry.id if entry else None,
            "branch": line.name,
            "base": change.base.id if change.base else None,
            "ours": line.tip.id,
            "theirs": change.theirs.id,
            "conflicts": [one.json() for one in done.conflicts],
            "changes": [one.json() for one in changes],
        },
        _following(options, entry, drop),
        () if entry else _undecided(options, line, change, done.conflicts),
    )


def _side(options: MergeOptions) -> Side | None:
    """Return the side that decides conflicts; None for a person."""
    return Side.OURS if options.ours else Side.THEIRS if options.theirs else None


def _following(options: MergeOptions, entry: Entry | None, drop: str) -> str:
    """Return the verb to run next: a stack takes no state, and has what a commit was served beside it."""
    if entry is None:
        return "catalog log"
    return (
        f"catalog serve {entry.short}"
        if options.target == COMPOSE
        else f"catalog restore {entry.short}{drop}"
    )


def _done(options: MergeOptions, store: Store, line: _Line, change: _Change, choice: Choice) -> _Done:
    """Return what becomes of a change, which is written where nothing is left to decide."""
    joins = change.verb == "merge"
    if joins and change.base == change.theirs:
        return _Done(facts=(f"nothing to merge: {line.tip.short} has all of {change.theirs.short}",))
    before = None if line.new else line.tip
    if joins and change.base == line.tip and choice.data:
        store.move(line.name, before, change.theirs)
        return _Done(change.theirs, facts=("fast-forward",))
    batch = Batch(store)
    trees = Three(change.base.tree if change.base else None, line.tip.tree, change.theirs.tree)
    merged = merge_trees(batch, trees, choice)
    if merged.conflicts and choice.side is None:
        return _Done(conflicts=merged.conflicts)
    if merged.tree == line.tip.tree and not joins:
        return _Done(facts=(f"nothing to {change.verb}: {line.tip.short} has it so already",))
    author, identity = commits.author(options.author), batch.tree(merged.tree)[CATALOG]
    batch.flush()
    message = (
        f"{options.message or f'{change.verb} {options.commit}: {change.meant.subject}'}\n\n"
        f"{_MEANT[change.verb]}: {change.meant.id}\nCatalog: {identity}\n"
    )
    # The clock of this machine is another one than that of the database, and history is by time.
    moment = max(int(time.time()), line.tip.time, change.theirs.time)
    parents = [line.tip, *([change.theirs] if joins else [])]
    made = store.add(merged.tree, parents, author, moment, message)
    store.move(line.name, before, made)
    decided = (
        (f"{screen.many(len(merged.conflicts), 'conflict')}: {choice.side}",) if merged.conflicts else ()
    )
    return _Done(made, merged.conflicts, decided)


def _undecided(
    options: MergeOptions, line: _Line, change: _Change, conflicts: Sequence[Conflict]
) -> tuple[Finding, ...]:
    """Return what has to be decided, and the command that shows what the other side has changed."""
    if not conflicts:
        return ()
    what = (
        f"{screen.many(len(conflicts), 'conflict')}, nothing is written; --ours or --theirs decides them all"
    )
    look = f"catalog diff {(change.base or line.tip).short} {change.theirs.short}"
    return (Finding("catalog.conflict", Outcome.DEGRADED, line.name, what, command(options, look)),)
