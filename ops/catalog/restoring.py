"""Restore objects of the metastore from a commit; files stay."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from lakehouse.catalog import commits, hooks, names, objects, relocation, restoring
from lakehouse.catalog import text as screen
from lakehouse.catalog.documents import Document
from lakehouse.catalog.names import Name
from lakehouse.catalog.restoring import Deed, Step, Undo, Wanted
from lakehouse.catalog.snapshot_reader import Past
from lakehouse.catalog.store import Entry, Store, Writer
from lakehouse.errors import LakehouseError, UsageError
from lakehouse.next_command import PROGRAM, command
from ops.catalog import committing, live, targets, undeleting
from ops.catalog.repository import history
from ops.catalog.targets import Target
from ops.catalog.undeleting import Undeleting
from ops.catalog.writing import ChangedError, Metadata, Seen, in_one_line
from ops.change import run
from ops.change.facts import Living
from ops.change.result import Ending, Refusal, Stopped
from ops.change.run import Request, Running, Work
from ops.clients import Files, MetastoreSession
from ops.status.placement import Cluster
from plugins.module_utils.lakehouse.counting import counted

VERB = "catalog restore"
_SHOWN = 40


def prepare(living: Living, request: Request) -> Work:
    """Return the plan: of a run that was stopped, what the metastore shows that it has not done.

    Raises LakehouseError where the commit is not there or damaged, or the catalog cannot be read.
    """
    arguments, cluster = request.arguments, living.cluster
    with _opened(arguments, cluster) as store:
        where = store.path
        entry = store.resolve(str(arguments["commit"]))
        scope = names.parse(str(arguments["name"])) if arguments["name"] else Name()
        named = _words(scope, arguments)
        options = {"--drop": arguments["drop"], "--store": arguments["store"]}
        words = shlex.join([entry.short, *named, *run.given(options)])
        stopped = request.stopped
        again = command(f"resume {stopped.id}" if stopped else f"{VERB} {words}", request.path)
        overlay, built = commits.now(live.source(cluster), store)
        if not any(objects.document(overlay, tree, scope) for tree in (entry.tree, built.tree)):
            raise UsageError(
                f"{scope} is neither in {entry.short} nor in the metastore; {PROGRAM} catalog log"
            )
        wanted, uncloned = _wanted(overlay, entry.tree, scope, arguments)
        undo = _undo(cluster, entry, arguments, store)
        found = (*restoring.plan(overlay, built.tree, wanted, Files.of(cluster), undo), *uncloned)
        steps = [one for one in found if one.deed is not Deed.LEAVE]
        with MetastoreSession(cluster) as metastore:
            seen = Metadata(metastore, _nobody).all(steps)
        # What was changed between the plan and this look would be taken for what the plan has seen.
        if steps:
            later, fresh = commits.now(live.source(cluster), store)
            if fresh.identity != built.identity:
                _unchanged(Past(later, fresh.tree), steps, again)
    left = [one for one in found if one.deed is Deed.LEAVE]
    # What is asked for by its name and cannot be done is refused; what is in the way of more is said.
    refused = next((one for one in left if wanted.scope.table and one.name == wanted.scope), None)
    dropped = [one for one in steps if one.deed is Deed.DROP]
    of = f"--store {arguments['store']}" if arguments["store"] else f"-i {request.path}"
    serve = f"{PROGRAM} catalog serve {entry.short} {of}"
    return Work(
        target=" ".join([entry.short, *named]),
        # A branch may move meanwhile.
        arguments={**arguments, "commit": entry.id},
        plan=[{"deed": one.deed.name.lower(), "kind": one.kind, "name": str(one.name)} for one in steps],
        lines=_lines(entry.short, found),
        question=f"Write {counted(len(steps), 'object')} of the metastore?",
        do=partial(_do, where, entry, seen, len(left)),
        danger=f"{counted(len(dropped), 'object leaves', 'objects leave')} the catalog; files stay."
        if dropped
        else "",
        words=words,
        refusal=Refusal(f"{refused.name}: {refused.why}", serve) if refused else None,
    )


def _undo(cluster: Cluster, entry: Entry, arguments: Mapping[str, Any], store: Store) -> Undo:
    """Return what finds dropped files: only a commit of this cluster names what its snapshots have."""
    node = targets.machines(cluster).node
    own = entry.facts.get("Cluster") == str(cluster.variable("lakehouse_cluster"))
    if node is None or not own or arguments.get("rules") or arguments.get("other"):
        return restoring.no_undo

    @cache
    def past(commit: str) -> Past | None:
        try:
            return Past(store, store.resolve(commit).tree)
        except LakehouseError:
            # Of a snapshot whose commit was forgotten, or is in another form.
            return None

    def said(commit: str, name: Name) -> Document | None:
        if (other := past(commit)) is None:
            return None
        return other.partition(name) if name.partition else other.said(name)

    return Undeleting(node, Files.of(cluster), str(cluster.variable("lakehouse_root")), entry, said)


def _unchanged(now: Past, steps: Sequence[Step], again: str) -> None:
    """Return if all is as the plan has it; LakehouseError where something has been changed since."""
    for one in steps:
        if (now.partition(one.name) if one.name.partition else now.said(one.name)) != one.now:
            raise LakehouseError(f"{one.name} was changed while the plan was made", again)


def _wanted(
    writer: Writer, tree: str, scope: Name, arguments: Mapping[str, Any]
) -> tuple[Wanted, list[Step]]:
    """Return what the metastore is to become: the commit, elsewhere or as another database if asked.

    With what is not in that other database.
    """
    rules = tuple(map(relocation.rule, arguments.get("rules", ())))
    other = str(arguments.get("other", ""))
    if other and (not scope.database or scope.table or scope.function):
        raise UsageError("--as NAME: of one database, as in: catalog restore HEAD sales --as dev_sales")
    if rules:
        tree = relocation.moved(writer, tree, rules)
    left: list[Step] = []
    if other:
        tree, left = relocation.cloned(writer, tree, scope, other)
        scope = replace(scope, database=other)
    return Wanted(tree, scope, bool(arguments["drop"]), shares=bool(other)), left


def _words(scope: Name, arguments: Mapping[str, Any]) -> list[str]:
    """Return what a person typed after the commit, but for --drop."""
    other = ["--as", str(arguments["other"])] if arguments.get("other") else []
    rules = [word for one in arguments.get("rules", ()) for word in ("--rewrite", str(one))]
    return [*([str(scope)] if arguments["name"] else []), *other, *rules]


def _lines(commit: str, found: Sequence[Step]) -> list[str]:
    shown = (screen.printable(str(one)) for one in found[:_SHOWN])
    more = [f"  and {len(found) - _SHOWN} more"] if found[_SHOWN:] else []
    files = sum(one.copy.files for one in found if one.copy)
    what = f"{counted(files, 'dropped file comes', 'dropped files come')} back, others" if files else "files"
    return [f"{VERB} {commit}: {what} stay as they are", *(f"  {one}" for one in shown), *more]


def _do(where: Path, entry: Entry, seen: Sequence[Seen], left: int, running: Running) -> tuple[str, ...]:
    living, lost, commit = running.living, set[str](), entry.id
    [host, *_] = living.having("metastore")
    told = {"commit": commit, "plan": [str(one.step) for one in seen]}
    hooks.run(where, hooks.PRE_RESTORE, lambda: told)
    files = _brought([one.step for one in seen], running)
    before = _kept(targets.machines(living.cluster), where)
    running.say(f"the catalog as it is now is commit {before.short}")
    try:
        with MetastoreSession(living.cluster) as metastore:
            metadata = Metadata(metastore, lambda name, field: lost.add(f"{name} {field}"))
            metadata.write(
                seen,
                lambda steps: running.begins(host.name, in_one_line(steps)),
                lambda steps: running.done(host.name, in_one_line(steps)),
            )
    except ChangedError as error:
        raise Stopped(Ending.REFUSED, error.message, error.next_command or "") from None
    except LakehouseError as error:
        ending = Ending.HALFWAY if running.changed else Ending.FAILED
        raise Stopped(ending, error.message, "") from None
    hooks.run(where, hooks.POST_RESTORE, lambda: {**told, "before": before.id})
    for one in sorted(lost):
        running.say(f"{one}: is not as in the commit, the metastore takes none by Thrift")
    facts = [
        f"{counted(len(seen), 'object written', 'objects written')}",
        f"before it the catalog was {before.short}",
    ]
    brought = [f"{counted(files, 'dropped file is', 'dropped files are')} back"] if files else []
    return (*facts, *brought, *([f"{left} left alone"] if left else []))


def _brought(steps: Sequence[Step], running: Running) -> int:
    """Have the files of dropped tables come back, before any table names them; return how many."""
    copies = [step.copy for step in steps if step.copy]
    node, files = targets.machines(running.living.cluster).node, sum(one.files for one in copies)
    if copies and node:
        [host, *_] = running.living.having("postgresql")
        what = f"{counted(files, 'dropped file comes', 'dropped files come')} back"
        running.begins(host.name, what)
        running.say(what)
        undeleting.bring(node, copies)
        running.done(host.name, what)
    return files


def _kept(machines: Target, where: Path) -> Entry:
    """Return the commit with the catalog as it is now, in the history of this cluster and of no other."""
    asked = {"author": commits.author(), "message": "before a restore", "full": False}
    with closing(Store(where)) as store:
        last = store.head()
        own = where == machines.place or not last or last.facts.get("Cluster") == machines.name
    with closing(Store.made(where if own else machines.place)) as store:
        kept = committing.commit(machines, store, asked, shared=store.path == machines.place)
        return store.commit(kept["commit"])


def _nobody(*_: str) -> None:
    """Report nothing: nothing is converted."""


def _opened(arguments: Mapping[str, Any], cluster: Cluster) -> AbstractContextManager[Store]:
    return (
        closing(Store(Path(arguments["store"]))) if arguments["store"] else history(targets.machines(cluster))
    )
