"""Synchronize a copy of the history with the cluster's repository: one request, one response.

The timer commits to the cluster's repository; other repositories are copies. References of the cluster's
repository move by compare-and-swap, so no concurrent update is lost.
"""

from __future__ import annotations

import json
import secrets
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

from lakehouse.catalog import checksums, files
from lakehouse.catalog.references import MAIN, is_name
from lakehouse.catalog.store import Store
from lakehouse.errors import UsageError

_HEAD = f"heads/{MAIN}"
_ID, _SYNCHRONIZED = "lakehouse-id", "lakehouse-met.json"
# A larger pack is spooled to a file.
_IN_MEMORY = 32 * 1024**2

# Commits by names such as `heads/main` and `tags/before`.
Names = Mapping[str, str]


def names(store: Store) -> dict[str, str]:
    """Return branches and tags with the ids of their commits, except for names that are not allowed."""
    references = (
        (f"{folder}/{name}", number)
        for folder in ("heads", "tags")
        for name, number in store.references.names(folder).items()
    )
    return {name: number for name, number in references if is_name(name)}


# The cluster's side


def give(store: Store, request: Mapping[str, Any], stream: IO[bytes]) -> None:
    """Answer the `question` of a copy: a line of JSON, and a pack of the objects that the copy lacks."""
    references = names(store)
    marks = checksums.read(store)
    response = {
        "id": _repository_id(store),
        "names": references,
        "ends": sorted(store.ends()),
        "marks": marks if marks.get("commit") != request.get("marks") else None,
    }
    # The pack is complete before the response begins, so that a damaged object becomes an error.
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as pack:
        store.objects.write_pack(request.get("have", ()), references.values(), pack)
        pack.seek(0)
        stream.write(f"{json.dumps(response)}\n".encode())
        shutil.copyfileobj(pack, stream)
    stream.flush()


def take(store: Store, request: Mapping[str, Any], stream: IO[bytes]) -> list[str]:
    """Store a pack of a copy and move references; return those that another writer has moved meanwhile.

    Raises UsageError, and moves none, if one of their names is invalid.
    """
    if invalid := next((name for name in request["moves"] if not is_name(name)), None):
        raise UsageError(f"{invalid}: no name of a branch or a tag")
    store.objects.read_pack(stream)
    store.end_where_needed(request["ends"])
    return [
        name
        for name, (before, after) in request["moves"].items()
        if not (_may_move(store, name, before, after) and store.references.put(name, before, after))
    ]


def _may_move(store: Store, name: str, before: str | None, after: str | None) -> bool:
    """Return whether a reference may move: `main` only forward."""
    if name != _HEAD or before is None:
        return True
    return after is not None and store.descends(store.commit(after), store.commit(before))


def _repository_id(store: Store) -> str:
    """Return the id of the repository, by which a copy notices one that was created again."""
    path = store.path / _ID
    if not path.exists():
        files.write(path, secrets.token_hex(16))
    return path.read_text(encoding="utf-8")


# The copy's side


def question(store: Store) -> dict[str, Any]:
    """Return the request of a copy to the cluster's repository: the commits and checksums that it has."""
    return {"have": sorted({*names(store).values()}), "marks": checksums.read(store).get("commit", "")}


Move = tuple[str | None, str | None]


@dataclass
class Moves:
    """The moves of references here and there: from which commit to which, None for none."""

    local: dict[str, Move] = field(default_factory=dict)
    remote: dict[str, Move] = field(default_factory=dict)
    # References that have diverged, with the new name of the commit that was here.
    renamed: dict[str, str] = field(default_factory=dict)


def reconcile(ours: Names, theirs: Names, before: Names, descends: Callable[[str, str], bool]) -> Moves:
    """Return the moves that bring two sides to the same references; `before` is the last common state.

    `descends` returns whether the first commit descends from the second. A renamed reference is new here:
    the next reconciliation sends it to the other side.
    """
    moves = Moves()
    for name in sorted({*ours, *theirs}):
        our, their, was = ours.get(name), theirs.get(name), before.get(name)
        if our == their:
            continue
        branch = our is not None and their is not None and name.startswith("heads/")
        # `main` never moves back.
        free = name != _HEAD
        if (our == was and free) or our is None or (branch and descends(str(their), str(our))):
            forward = free and our is None and was is not None and their == was
        elif (their == was and free) or their is None or (branch and descends(str(our), str(their))):
            forward = True
        elif our == was:
            # Nothing is new here, and the retention has removed the common commit there.
            forward = False
        else:
            moves.renamed[name] = f"{name}-{str(our)[:12]}"
            moves.local[moves.renamed[name]] = (ours.get(moves.renamed[name]), our)
            forward = False
        if forward:
            moves.remote[name] = (their, our)
        else:
            moves.local[name] = (our, their)
    return moves


def last_names(store: Store, repository_id: str) -> dict[str, str]:
    """Return the references at the last synchronization with a repository; none if it was another one."""
    try:
        state = json.loads((store.path / _SYNCHRONIZED).read_bytes())
    except (OSError, ValueError):
        return {}
    return dict(state["names"]) if state.get("id") == repository_id else {}


def remember_names(store: Store, repository_id: str) -> None:
    """Store the references as those of the last synchronization."""
    files.write(store.path / _SYNCHRONIZED, json.dumps({"id": repository_id, "names": names(store)}))
