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
from lakehouse.catalog.restoring import Operation, RestoreTarget, Step, Undo
from lakehouse.catalog.snapshot_reader import SnapshotReader
from lakehouse.catalog.store import Entry, Store, Writer
from lakehouse.clients import Files, MetastoreSession
from lakehouse.cluster_catalog import committing, live, targets, undeleting
from lakehouse.cluster_catalog.repository import history
from lakehouse.cluster_catalog.targets import Target
from lakehouse.cluster_catalog.undeleting import Undeleting
from lakehouse.cluster_catalog.writing import ChangedError, Metadata, PlannedStep, in_one_line
from lakehouse.errors import LakehouseError, UsageError
from lakehouse.model.placement import Cluster
from lakehouse.next_command import PROGRAM, command
from lakehouse.rolling import run
from lakehouse.rolling.facts import Living
from lakehouse.rolling.result import Ending, Refusal, Stopped
from lakehouse.rolling.run import Request, Running, Work
from plugins.module_utils.lakehouse.counting import counted

VERB = "catalog restore"
_SHOWN = 40


def prepare(living: Living, request: Request) -> Work:
    """Return the plan; for an interrupted run, the remaining differences.

    Raises LakehouseError if the commit is missing or damaged, or the catalog cannot be read.
    """
    arguments, cluster = request.arguments, living.cluster
    with _open_store(arguments, cluster) as store:
        path = store.path
        entry = store.resolve(str(arguments["commit"]))
        scope = names.parse(str(arguments["name"])) if arguments["name"] else Name()
        scope_words = _words(scope, arguments)
        options = {"--drop": arguments["drop"], "--store": arguments["store"]}
        words = shlex.join([entry.short, *scope_words, *run.given(options)])
        stopped = request.stopped
        retry = command(f"resume {stopped.id}" if stopped else f"{VERB} {words}", request.path)
        overlay, built = commits.current(live.source(cluster), store)
        if not any(objects.document(overlay, tree, scope) for tree in (entry.tree, built.tree)):
            raise UsageError(
                f"{scope} is neither in {entry.short} nor in the metastore; {PROGRAM} catalog log"
            )
        target, uncloned = _target(overlay, entry.tree, scope, arguments)
        undo = _undo(cluster, entry, arguments, store)
        all_steps = (*restoring.plan(overlay, built.tree, target, Files.of(cluster), undo), *uncloned)
        steps = [step for step in all_steps if step.operation is not Operation.LEAVE]
        with MetastoreSession(cluster) as metastore:
            planned = Metadata(metastore, _ignore).all(steps)
        # A change between the two reads would be taken for the state of the plan.
        if steps:
            new_overlay, current = commits.current(live.source(cluster), store)
            if current.identity != built.identity:
                _check_unchanged(SnapshotReader(new_overlay, current.tree), steps, retry)
    left_alone = [step for step in all_steps if step.operation is Operation.LEAVE]
    # A table that is named by the user and cannot be restored is refused; others are reported.
    refused = next((step for step in left_alone if target.scope.table and step.name == target.scope), None)
    dropped = [step for step in steps if step.operation is Operation.DROP]
    place = f"--store {arguments['store']}" if arguments["store"] else f"-i {request.path}"
    serve = f"{PROGRAM} catalog serve {entry.short} {place}"
    return Work(
        target=" ".join([entry.short, *scope_words]),
        # A branch may move meanwhile.
        arguments={**arguments, "commit": entry.id},
        plan=[
            {"deed": step.operation.name.lower(), "kind": step.kind, "name": str(step.name)} for step in steps
        ],
        lines=_lines(entry.short, all_steps),
        question=f"Write {counted(len(steps), 'object')} of the metastore?",
        do=partial(_do, path, entry, planned, len(left_alone)),
        danger=f"{counted(len(dropped), 'object leaves', 'objects leave')} the catalog; files stay."
        if dropped
        else "",
        words=words,
        refusal=Refusal(f"{refused.name}: {refused.why}", serve) if refused else None,
    )


def _undo(cluster: Cluster, entry: Entry, arguments: Mapping[str, Any], store: Store) -> Undo:
    """Return the function that finds dropped files, for a commit of this cluster with snapshots."""
    node = targets.machines(cluster).node
    is_own = entry.facts.get("Cluster") == str(cluster.variable("lakehouse_cluster"))
    if node is None or not is_own or arguments.get("rules") or arguments.get("other"):
        return restoring.no_undo

    @cache
    def reader(commit: str) -> SnapshotReader | None:
        try:
            return SnapshotReader(store, store.resolve(commit).tree)
        except LakehouseError:
            # The commit of a snapshot may be expired, or have another format.
            return None

    def document(commit: str, name: Name) -> Document | None:
        snapshot = reader(commit)
        return _document(snapshot, name) if snapshot else None

    return Undeleting(node, Files.of(cluster), str(cluster.variable("lakehouse_root")), entry, document)


def _document(reader: SnapshotReader, name: Name) -> Document | None:
    return reader.partition(name) if name.partition else reader.document(name)


def _check_unchanged(metastore: SnapshotReader, steps: Sequence[Step], retry: str) -> None:
    """Return if all objects are as in the plan; LakehouseError if one has changed since."""
    for step in steps:
        if _document(metastore, step.name) != step.before:
            raise LakehouseError(f"{step.name} was changed while the plan was made", retry)


def _target(
    writer: Writer, tree: str, scope: Name, arguments: Mapping[str, Any]
) -> tuple[RestoreTarget, list[Step]]:
    """Return the target state: the commit, with rewritten locations or as a clone if requested.

    The steps are those of tables that a clone lacks.
    """
    rules = tuple(map(relocation.rule, arguments.get("rules", ())))
    clone = str(arguments.get("other", ""))
    if clone and (not scope.database or scope.table or scope.function):
        raise UsageError("--as NAME: of one database, as in: catalog restore HEAD sales --as dev_sales")
    if rules:
        tree = relocation.moved(writer, tree, rules)
    skipped: list[Step] = []
    if clone:
        tree, skipped = relocation.cloned(writer, tree, scope, clone)
        scope = replace(scope, database=clone)
    return RestoreTarget(tree, scope, bool(arguments["drop"]), shares=bool(clone)), skipped


def _words(scope: Name, arguments: Mapping[str, Any]) -> list[str]:
    """Return the arguments of the command after the commit, except for --drop."""
    clone = ["--as", str(arguments["other"])] if arguments.get("other") else []
    rules = [word for rule in arguments.get("rules", ()) for word in ("--rewrite", str(rule))]
    return [*([str(scope)] if arguments["name"] else []), *clone, *rules]


def _lines(commit: str, steps: Sequence[Step]) -> list[str]:
    """Return the lines of the plan."""
    listed = (screen.printable(str(step)) for step in steps[:_SHOWN])
    rest = [f"  and {len(steps) - _SHOWN} more"] if steps[_SHOWN:] else []
    count = sum(step.copy.files for step in steps if step.copy)
    files = f"{counted(count, 'dropped file comes', 'dropped files come')} back, others" if count else "files"
    return [f"{VERB} {commit}: {files} stay as they are", *(f"  {line}" for line in listed), *rest]


def _do(
    path: Path, entry: Entry, planned: Sequence[PlannedStep], left_alone: int, running: Running
) -> tuple[str, ...]:
    living, unsupported = running.living, set[str]()
    [host, *_] = living.having("metastore")
    details = {"commit": entry.id, "plan": [str(item.step) for item in planned]}
    hooks.run(path, hooks.PRE_RESTORE, lambda: details)
    files = _bring_files([item.step for item in planned], running)
    before = _commit_current(targets.machines(living.cluster), path)
    running.say(f"the catalog as it is now is commit {before.short}")
    try:
        with MetastoreSession(living.cluster) as metastore:
            metadata = Metadata(metastore, lambda name, field: unsupported.add(f"{name} {field}"))
            metadata.write(
                planned,
                lambda steps: running.begins(host.name, in_one_line(steps)),
                lambda steps: running.done(host.name, in_one_line(steps)),
            )
    except ChangedError as error:
        raise Stopped(Ending.REFUSED, error.message, error.next_command or "") from None
    except LakehouseError as error:
        ending = Ending.HALFWAY if running.changed else Ending.FAILED
        raise Stopped(ending, error.message, "") from None
    hooks.run(path, hooks.POST_RESTORE, lambda: {**details, "before": before.id})
    for field in sorted(unsupported):
        running.say(f"{field}: is not as in the commit, the metastore takes none by Thrift")
    facts = [
        f"{counted(len(planned), 'object written', 'objects written')}",
        f"before it the catalog was {before.short}",
    ]
    if files:
        facts.append(f"{counted(files, 'dropped file is', 'dropped files are')} back")
    if left_alone:
        facts.append(f"{left_alone} left alone")
    return tuple(facts)


def _bring_files(steps: Sequence[Step], running: Running) -> int:
    """Copy the files of dropped tables from snapshots, before the tables are made; return their number."""
    copies = [step.copy for step in steps if step.copy]
    node, files = targets.machines(running.living.cluster).node, sum(copy.files for copy in copies)
    if copies and node:
        [host, *_] = running.living.having("postgresql")
        line = f"{counted(files, 'dropped file comes', 'dropped files come')} back"
        running.begins(host.name, line)
        running.say(line)
        undeleting.bring(node, copies)
        running.done(host.name, line)
    return files


def _commit_current(machines: Target, path: Path) -> Entry:
    """Commit the current catalog to a history of this cluster, and return the commit."""
    request = {"author": commits.author(), "message": "before a restore", "full": False}
    with closing(Store(path)) as store:
        last = store.head()
        is_own = path == machines.place or not last or last.facts.get("Cluster") == machines.name
    with closing(Store.made(path if is_own else machines.place)) as store:
        result = committing.commit(machines, store, request, shared=store.path == machines.place)
        return store.commit(result["commit"])


def _ignore(*_: str) -> None:
    """Ignore fields that Thrift cannot hold: reading converts nothing."""


def _open_store(arguments: Mapping[str, Any], cluster: Cluster) -> AbstractContextManager[Store]:
    return (
        closing(Store(Path(arguments["store"]))) if arguments["store"] else history(targets.machines(cluster))
    )
