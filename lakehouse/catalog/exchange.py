"""How two repositories of one history give each other what they lack: one question and one answer.

One is the cluster's, which commits by the clock; others are copies. Names move by compare-and-swap in the
cluster's repository, so whatever two people do at once, none of it is lost.
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
_BORN, _MET = "lakehouse-id", "lakehouse-met.json"
# Of a pack that is on its way; a larger one is a file.
_IN_MEMORY = 32 * 1024**2

# Commits by names such as `heads/main` and `tags/before`.
Names = Mapping[str, str]


def names(store: Store) -> dict[str, str]:
    """Return branches and tags with the ids of their commits; those that others may not have stay here."""
    every = (
        (f"{folder}/{name}", number)
        for folder in ("heads", "tags")
        for name, number in store.references.names(folder).items()
    )
    return {name: number for name, number in every if is_name(name)}


# The cluster's side


def give(store: Store, asked: Mapping[str, Any], stream: IO[bytes]) -> None:
    """Write what a copy lacks that has the commits `have`: a line of JSON, and a pack if it needs one."""
    here = names(store)
    told = checksums.read(store)
    said = {
        "id": _born(store),
        "names": here,
        "ends": sorted(store.ends()),
        "marks": told if told.get("commit") != asked.get("marks") else None,
    }
    # Whole before the first word of an answer: where an object is damaged, that is the answer.
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as pack:
        store.objects.write_pack(asked.get("have", ()), here.values(), pack)
        pack.seek(0)
        stream.write(f"{json.dumps(said)}\n".encode())
        shutil.copyfileobj(pack, stream)
    stream.flush()


def take(store: Store, asked: Mapping[str, Any], stream: IO[bytes]) -> list[str]:
    """Keep a pack of a copy and move names as it says; return those that another writer has moved since.

    Raises UsageError, and moves none, where one of them is no name.
    """
    if wrong := next((name for name in asked["moves"] if not is_name(name)), None):
        raise UsageError(f"{wrong}: no name of a branch or a tag")
    store.objects.read_pack(stream)
    store.end_where_needed(asked["ends"])
    return [
        name
        for name, (before, after) in asked["moves"].items()
        if not (_may_move(store, name, before, after) and store.references.put(name, before, after))
    ]


def _may_move(store: Store, name: str, before: str | None, after: str | None) -> bool:
    """Tell whether a name may go there: `main` only forward."""
    if name != _HEAD or before is None:
        return True
    return after is not None and store.descends(store.commit(after), store.commit(before))


def _born(store: Store) -> str:
    """Return by what a copy knows that this is the repository that it met: one made anew is another one."""
    path = store.path / _BORN
    if not path.exists():
        files.write(path, secrets.token_hex(16))
    return path.read_text(encoding="utf-8")


# The copy's side


def question(store: Store) -> dict[str, Any]:
    """Return what the cluster's repository has to know of a copy to give it what it lacks."""
    return {"have": sorted({*names(store).values()}), "marks": checksums.read(store).get("commit", "")}


Move = tuple[str | None, str | None]


@dataclass
class Moves:
    """What names are to become here and there: from which commit to which, None for none."""

    here: dict[str, Move] = field(default_factory=dict)
    there: dict[str, Move] = field(default_factory=dict)
    # Names that both sides have gone on with, and the new one of what was here.
    renamed: dict[str, str] = field(default_factory=dict)


def reconcile(ours: Names, theirs: Names, before: Names, descends: Callable[[str, str], bool]) -> Moves:
    """Return how two sides come to the same names that had those of `before` at their last meeting.

    `descends` tells whether the first commit comes from the second. What was renamed is new here: another
    reconciling sends it there.
    """
    moves = Moves()
    for name in sorted({*ours, *theirs}):
        our, their, was = ours.get(name), theirs.get(name), before.get(name)
        if our == their:
            continue
        branch = our is not None and their is not None and name.startswith("heads/")
        # Every change of `main` goes on with it.
        free = name != _HEAD
        if (our == was and free) or our is None or (branch and descends(str(their), str(our))):
            forward = free and our is None and was is not None and their == was
        elif (their == was and free) or their is None or (branch and descends(str(our), str(their))):
            forward = True
        elif our == was:
            # Nothing is new here, and where the two have met has been forgotten there.
            forward = False
        else:
            moves.renamed[name] = f"{name}-{str(our)[:12]}"
            moves.here[moves.renamed[name]] = (ours.get(moves.renamed[name]), our)
            forward = False
        if forward:
            moves.there[name] = (their, our)
        else:
            moves.here[name] = (our, their)
    return moves


def met(store: Store, born: str) -> dict[str, str]:
    """Return the names at the last meeting with a repository; none where it was another one."""
    try:
        said = json.loads((store.path / _MET).read_bytes())
    except (OSError, ValueError):
        return {}
    return dict(said["names"]) if said.get("id") == born else {}


def meet(store: Store, born: str) -> None:
    """Remember that both sides have the same names."""
    files.write(store.path / _MET, json.dumps({"id": born, "names": names(store)}))
