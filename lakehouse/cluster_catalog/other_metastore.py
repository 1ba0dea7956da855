"""Compare the catalog with another metastore, or commit that one to a branch; by Thrift, and read-only."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lakehouse.catalog import build, commits, diff
from lakehouse.catalog import text as screen
from lakehouse.catalog.diff import Look
from lakehouse.catalog.overlay import Batch, Overlay
from lakehouse.catalog.references import MAIN, is_name
from lakehouse.catalog.schema import Stranger
from lakehouse.catalog.store import Entry, Store, Writer
from lakehouse.clients import OtherMetastoreSession
from lakehouse.cluster_catalog import targets
from lakehouse.cluster_catalog.repository import command, end, opened, say
from lakehouse.errors import UsageError
from lakehouse.metastore import catalog_reader
from lakehouse.metastore.catalog_reader import UNREAD, CommitCalls, Reading
from lakehouse.outcome import Finding, Outcome, Result
from lakehouse.remote import output
from lakehouse.shared_options import CatalogOptions

_COMPARE = "metastore compare"
# What a branch cannot be called by.
_ODD = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class _Remote:
    """The metastore at a URI: a session with it, and its addresses."""

    session: OtherMetastoreSession
    address: str
    # Of the first address.
    host: str

    @classmethod
    def at(cls, uri: str) -> _Remote:
        """Return the metastore, without a connection yet; UsageError for an invalid URI."""
        session = OtherMetastoreSession(uri)
        return cls(session, ",".join(map(str, session.servers)), session.servers[0].host)

    def read(self, writer: Writer) -> Reading:
        """Return the catalog; LakehouseError if it cannot be read."""
        with self.session as metastore:
            return catalog_reader.read(metastore, writer)


def compare(uri: str, commit: str | None, look: Look, options: CatalogOptions) -> int:
    """Print the differences between the catalog, or a commit of it, and another metastore's.

    Both are read by the same calls, so that a value which only one of them can return is no difference.
    Returns 1 with differences, or with objects that cannot be read.
    """
    began, remote = time.monotonic(), _Remote.at(uri)
    with opened(options) as (store, target):
        if commit:
            entry = store.resolve(commit)
            label, tree, overlay = entry.short, entry.tree, Overlay(store)
        else:
            # Thrift does not return the versions of Delta tables, so the NameNode is not needed for them.
            source = replace(targets.choose(options).source(), versions=build.no_versions)
            overlay, built = commits.current(source, store)
            label, tree = "now", built.tree
        theirs = remote.read(overlay)
        ours = catalog_reader.read(CommitCalls(overlay, tree), overlay, theirs.unsupported)
        changes = list(diff.changes(overlay, ours.tree, theirs.tree, look))
    if not options.as_json:
        say(map(screen.change, changes))
    _report(theirs.left_out)
    words = shlex.join(["catalog", "commit", "--from", remote.address])
    next_command = command(options, words)
    findings = [*_findings(ours.refused, next_command), *_findings(theirs.refused, next_command)]
    if changes:
        fact = f"{screen.summary(changes)}, from {label} of {target} to there"
        findings.append(Finding("metastore.differs", Outcome.DEGRADED, remote.address, fact, next_command))
    result = Result(
        verb=_COMPARE,
        target=target,
        findings=tuple(findings),
        facts=(
            f"{label} to {remote.address}",
            *_counts(theirs),
            screen.many(len(changes), "difference"),
            _unread("compared"),
            f"{time.monotonic() - began:.1f} s",
        ),
        hosts={},
        healthy_next=next_command,
        details={
            "from": label,
            "to": remote.address,
            "changes": [change.json() for change in changes],
            **_details(theirs),
        },
    )
    return output.end(result, as_json=options.as_json)


def commit(
    uri: str, branch: str | None, message: str | None, author: str | None, options: CatalogOptions
) -> int:
    """Commit the catalog of another metastore to a branch, unless its last commit has it.

    The first commit of a branch has no parent. Returns 1 if something is left out. UsageError for `main`.
    """
    began, remote, name = time.monotonic(), _Remote.at(uri), commits.author(author)
    line = branch or f"from-{_ODD.sub('-', remote.host)}"
    if line == MAIN:
        raise UsageError(
            f"--to {MAIN}: {MAIN} is what this cluster's metastore has been; --to another branch"
        )
    if not is_name(f"heads/{line}"):
        raise UsageError(f"--to {line}: no name of a branch; as in --to from-old")
    with opened(options, writes=True) as (store, target), store.locked():
        parent, batch = store.head(line), Batch(store)
        reading = remote.read(batch)
        is_same = parent is not None and store.tree(parent.tree)[build.CATALOG] == reading.identity
        if parent and is_same:
            entry = parent
        else:
            batch.flush()
            entry = _record(store, line, reading, message, (name, remote.address))
        changes = list(diff.changes(store, parent.tree, entry.tree)) if parent else []
    if not options.as_json:
        say(map(screen.change, changes))
    after = f"catalog diff {MAIN} {line}"
    return end(
        options,
        "commit",
        target,
        (
            f"{'unchanged since' if is_same else 'committed'} {entry.short} on {line}",
            *_counts(reading),
            _unread("read"),
            f"{time.monotonic() - began:.1f} s",
        ),
        {
            "commit": entry.id,
            "branch": line,
            "identity": reading.identity,
            "changed": not is_same,
            "changes": [change.json() for change in changes],
            **_details(reading),
        },
        after,
        tuple(_findings((*reading.left_out, *reading.refused), command(options, after))),
    )


def _record(
    store: Store, branch: str, reading: Reading, message: str | None, origin: tuple[str, str]
) -> Entry:
    """Commit a tree to a branch; `origin` is the author, and the address of the metastore."""
    parent, (author, address) = store.head(branch), origin
    changes = diff.changes(store, parent.tree, reading.tree) if parent else ()
    summary = screen.summary(list(changes)) or "the same in another form"
    subject = message or (summary if parent else f"the catalog of {address}")
    # The history is ordered by time, and the clock of this machine may have been set back.
    moment = max(int(time.time()), parent.time if parent else 0)
    facts = f"Metastore: {address}\nCatalog: {reading.identity}\nEvent: none\n"
    return store.record(reading.tree, parent, author, moment, f"{subject}\n\n{facts}", branch)


def _report(left_out: Sequence[Stranger]) -> None:
    for stranger in left_out:
        output.progress(f"not compared: {stranger.name}: {stranger.why}")


def _findings(strangers: Sequence[Stranger], next_command: str) -> Iterator[Finding]:
    for stranger in strangers:
        yield Finding("catalog.left_out", Outcome.DEGRADED, stranger.name, stranger.why, next_command)


def _counts(reading: Reading) -> tuple[str, ...]:
    return tuple(
        screen.many(reading.counts[kind], kind[:-1]) for kind in ("databases", "tables", "partitions")
    )


def _unread(verb: str) -> str:
    return f"not {verb}: {', '.join(UNREAD)}"


def _details(reading: Reading) -> dict[str, object]:
    return {
        "counts": reading.counts,
        "left_out": [[stranger.name, stranger.why] for stranger in reading.left_out],
        "refused": [[stranger.name, stranger.why] for stranger in reading.refused],
        "unread": list(UNREAD),
    }
