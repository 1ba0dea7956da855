"""The verbs of the catalog's history."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Any

from lakehouse import inventory
from lakehouse.catalog import commits, ddl, diff, names, objects
from lakehouse.catalog import fsck as check
from lakehouse.catalog import text as screen
from lakehouse.catalog.diff import Look
from lakehouse.catalog.names import Name
from lakehouse.catalog.snapshot_reader import Past
from lakehouse.catalog.store import Entry, Store
from lakehouse.errors import UsageError
from ops import output
from ops.catalog import committing, pinning, targets
from ops.catalog.repository import end, opened, say
from ops.catalog.targets import Target
from ops.outcome import Finding, Outcome, Result
from ops.status import placement


def commit(arguments: argparse.Namespace) -> int:
    """Keep the catalog; return 0, 1 if something of it is in no commit, 2 if it could not be read."""
    began = time.monotonic()
    author = commits.author(arguments.author)
    if arguments.pin is not None and arguments.pin < 1:
        raise UsageError(f"--pin {arguments.pin}: days, 1 or more")
    if arguments.pin is not None:
        targets.only_machines(arguments, "--pin", "the same without it")
    chosen = targets.choose(arguments)
    unpinned: tuple[Finding, ...] = ()
    cluster = placement.read(inventory.load(arguments.inventory)) if arguments.pin is not None else None
    # Where nothing can be read, nothing is made.
    source = chosen.source()
    with closing(Store.made(arguments.store or chosen.place)) as store:
        if cluster:
            overlay, now = commits.now(source, store)
            pinned = pinning.pin(cluster, Past(overlay, now.tree).every(Name()), arguments.pin)
        asked = {"author": author, "message": arguments.message, "full": arguments.full}
        kept = committing.commit(chosen, store, asked, shared=not arguments.store)
        made = store.commit(kept["commit"])
        parent = store.commit(made.parents[0]) if kept["new"] and made.parents else None
        found = list(diff.changes(store, parent.tree, made.tree)) if parent else []
        if cluster:
            committed = Past(store, made.tree).every(Name())
            unpinned = pinning.pin_rest(cluster, pinned, committed, arguments.pin)
    if not arguments.store:
        chosen.written()
    counts, event = kept["counts"], kept["event"]
    seconds = time.monotonic() - began
    if not arguments.json:
        say([screen.change(one) for one in found])
    word = "committed" if kept["new"] else "unchanged since"
    return output.end(
        Result(
            verb="catalog commit",
            target=chosen.name,
            findings=(*_findings(kept["strangers"], kept["unversioned"], chosen), *unpinned),
            facts=(
                f"{word} {made.short}",
                screen.many(counts["databases"], "database"),
                f"{screen.many(counts['tables'], 'table')} ({counts['read']} read)",
                screen.many(counts["partitions"], "partition"),
                f"event {event or 'none: no listener writes any'}",
                f"{screen.many(kept['written'], 'object')} written",
                f"{seconds:.1f} s",
            ),
            hosts={},
            healthy_next=f".venv/bin/lakehouse catalog show {targets.option(arguments)}",
            details={
                "commit": made.id,
                "identity": kept["identity"],
                "changed": kept["new"],
                "counts": counts,
                "event": event,
                "changes": [one.json() for one in found],
                "seconds": round(seconds, 1),
            },
        ),
        as_json=arguments.json,
    )


def log(arguments: argparse.Namespace) -> int:
    """List commits, or those that changed one object."""
    if arguments.count < 1:
        raise UsageError(f"--count {arguments.count}: 1 or more")
    with opened(arguments) as (store, target):
        entries = store.history(store.resolve(arguments.branch).id)
        name = names.parse(arguments.name) if arguments.name else None
        chosen = objects.versions(store, entries, name) if name else entries
        found = [one for one, _ in zip(chosen, range(arguments.count), strict=False)]
        if name and not found:
            raise UsageError(f"{name} is in no commit of {store.path}")
        called = _called(store)
        if not arguments.json:
            say([screen.entry(one, called.get(one.id, ())) for one in found])
        facts = (f"{screen.many(len(found), 'commit')} shown", *([f"of {name}"] if name else []))
        details = {"commits": [_json(one, called.get(one.id, ())) for one in found]}
        return end(arguments, "log", target, facts, details, "catalog show")


def show(arguments: argparse.Namespace) -> int:
    """Show a commit with its changes, or an object in it."""
    with opened(arguments) as (store, target):
        entry = store.resolve(arguments.commit)
        if arguments.name:
            name, said = objects.found(store, entry, arguments.name)
            if not arguments.json:
                say([json.dumps(said, ensure_ascii=False, sort_keys=True, indent=2)])
            return end(
                arguments, "show", target, (str(name), f"in {entry.short}"), {"document": said}, "catalog log"
            )
        parent = store.commit(entry.parents[0]) if entry.parents else None
        found = list(diff.changes(store, parent.tree if parent else None, entry.tree))
        if not arguments.json:
            say([*screen.head(entry), *map(screen.change, found)])
        details = {"commit": _json(entry, ()), "changes": [one.json() for one in found]}
        return end(
            arguments,
            "show",
            target,
            (entry.short, screen.many(len(found), "change")),
            details,
            "catalog log",
        )


def compare(arguments: argparse.Namespace) -> int:
    """Show what differs; return 0, 1 where the metastore is not as expected, 2 where it could not be read."""
    began = time.monotonic()
    if arguments.expect and (arguments.old or arguments.new):
        raise UsageError("--expect compares a commit with the metastore; no other one")
    look = Look(tuple(arguments.ignore), not arguments.no_data, arguments.statistics)
    findings: tuple[Finding, ...] = ()
    with opened(arguments) as (store, target):
        old = store.resolve(arguments.expect or arguments.old or "HEAD")
        if arguments.new:
            new = store.resolve(arguments.new)
            found = list(diff.changes(store, old.tree, new.tree, look))
            other = new.short
        else:
            chosen = targets.choose(arguments)
            overlay, built = commits.now(chosen.source(), store)
            found = list(diff.changes(overlay, old.tree, built.tree, look))
            strangers = [[one.where, one.what] for one in built.strangers]
            findings = _findings(strangers, built.unversioned, chosen)
            other = "now"
    if arguments.expect and found:
        again = f".venv/bin/lakehouse catalog diff {old.short} {targets.option(arguments)}"
        what = f"{screen.summary(found)} since {old.short}"
        findings = (*findings, Finding("catalog.drift", Outcome.DEGRADED, target, what, again))
    if not arguments.json:
        say(ddl.statements(found) if arguments.sql else map(screen.change, found))
    facts = (
        f"{old.short} to {other}",
        screen.many(len(found), "change"),
        f"{time.monotonic() - began:.1f} s",
    )
    details = {"from": old.id, "to": other, "changes": [one.json() for one in found]}
    return end(arguments, "diff", target, facts, details, "catalog commit", findings)


def blame(arguments: argparse.Namespace) -> int:
    """Show each value of an object with the commit that it is of."""
    with opened(arguments) as (store, target):
        entry = store.resolve(arguments.commit)
        name, _ = objects.found(store, entry, arguments.name)
        found = objects.blame(store, store.history(entry.id), name)
        if not arguments.json:
            say(
                f"{one.short} {screen.when(one.time)} {field}: {screen.value(field, value)}"
                for field, value, one in found
            )
        details = {
            "fields": [
                {
                    "field": field,
                    "value": value,
                    "commit": one.id,
                    "time": one.time,
                    "event": one.facts.get("Event"),
                }
                for field, value, one in found
            ]
        }
        return end(
            arguments, "blame", target, (str(name), screen.many(len(found), "value")), details, "catalog log"
        )


def tag(arguments: argparse.Namespace) -> int:
    """Name a commit, take a name away, or list the names."""
    return _name(arguments, "tag", "tags")


def branch(arguments: argparse.Namespace) -> int:
    """Name a commit from which others may go on, take a name away, or list the names."""
    return _name(arguments, "branch", "heads")


def fsck(arguments: argparse.Namespace) -> int:
    """Read everything; return 0, or 2 where an object is damaged."""
    with opened(arguments) as (store, target):
        checked = check.check(store)
        again = f"git --git-dir {store.path} fsck"
        findings = tuple(
            Finding("catalog.damaged", Outcome.DOWN, one.where, one.what, again) for one in checked.faults
        )
        facts = (
            screen.many(checked.commits, "commit"),
            screen.many(checked.objects, "object"),
            f"{len(findings)} damaged",
        )
        details = {"commits": checked.commits, "objects": checked.objects}
        return end(arguments, "fsck", target, facts, details, "catalog log", findings)


def _name(arguments: argparse.Namespace, verb: str, folder: str) -> int:
    if arguments.delete and arguments.name:
        raise UsageError(f"{arguments.name} and --delete: one of them")
    writes = bool(arguments.delete or arguments.name)
    with opened(arguments, writes=writes) as (store, target):
        if writes:
            with store.locked():
                if arguments.delete:
                    store.references.remove(f"{folder}/{arguments.delete}")
                else:
                    store.references.add(f"{folder}/{arguments.name}", store.resolve(arguments.commit).id)
        listed = store.references.names(folder)
        if not arguments.json:
            say(f"{name} {screen.entry(store.commit(number))}" for name, number in listed.items())
        return end(
            arguments, verb, target, (screen.many(len(listed), "name"),), {"names": listed}, "catalog log"
        )


def _findings(
    strangers: Iterable[Sequence[str]], unversioned: Iterable[str], chosen: Target
) -> tuple[Finding, ...]:
    """Return what of the catalog is in no commit."""
    unknown = (
        Finding("catalog.left_out", Outcome.DEGRADED, where, what, chosen.query) for where, what in strangers
    )
    unasked = (
        Finding(
            "catalog.unversioned", Outcome.DEGRADED, name, "a Delta table whose version cannot be had",
            chosen.look,
        )
        for name in unversioned
    )  # fmt: skip
    return (*unknown, *unasked)


def _called(store: Store) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for folder in ("heads", "tags"):
        for name, number in store.references.names(folder).items():
            found.setdefault(number, []).append(name)
    return found


def _json(entry: Entry, called: Sequence[str]) -> dict[str, Any]:
    return {
        "id": entry.id, "parents": list(entry.parents), "author": entry.author, "time": entry.time,
        "message": entry.message, "facts": entry.facts, "names": list(called),
    }  # fmt: skip
