"""The names of commits, such as `heads/main` and `tags/v1`: one moves in a single step, or not at all."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path

from dulwich.objects import ObjectID, Tag
from dulwich.refs import Ref, RefsContainer, check_ref_format

from lakehouse.catalog import files
from lakehouse.catalog.disk import DamagedError, Objects
from lakehouse.errors import UsageError

MAIN = "main"
# Git's own program holds the file of a reference for milliseconds.
_LOCK_SECONDS, _AGAIN_SECONDS = 2.0, 0.05
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_ID = re.compile(r"[0-9a-f]{4,40}")
# They stand for commits without being given.
_TAKEN = {f"tags/{MAIN}", "tags/HEAD", "heads/HEAD"}


def is_id(text: str) -> bool:
    """Tell whether this may be the id of a commit, or its first letters."""
    return _ID.fullmatch(text) is not None


def is_name(place: str) -> bool:
    """Tell whether something may be called so (`heads/main`); git itself takes other names, too."""
    word = _word(place)
    return (
        place not in _TAKEN
        and _WORD.fullmatch(word) is not None
        and not is_id(word)
        and check_ref_format(Ref(f"refs/{place}".encode()))
    )


class References:
    """The names of a repository's commits; a writer of one has the repository's lock."""

    def __init__(self, path: Path, refs: RefsContainer, objects: Objects) -> None:
        self._path = path
        self._refs = refs
        self._objects = objects

    def get(self, place: str) -> str | None:
        """Return the id of the commit that a name leads to; None where there is no such name."""
        with suppress(KeyError, ValueError):
            return self._peeled(self._refs[Ref(f"refs/{place}".encode())])
        return None

    def names(self, folder: str) -> dict[str, str]:
        """Return the branches (`heads`) or `tags` with the ids of their commits."""
        found = self._refs.as_dict(Ref(f"refs/{folder}".encode()))
        return {name.decode(): self._peeled(number) for name, number in sorted(found.items())}

    def tips(self) -> list[str]:
        """Return the ids of the commits that have names."""
        return [*self.names("tags").values(), *self.names("heads").values()]

    def add(self, place: str, commit: str) -> None:
        """Give a commit a name; UsageError where there is one, or it is none."""
        ref, word = _ref(place), _word(place)
        if self.get(place):
            raise UsageError(f"{word} is there already; another name, or --delete {word} first")
        self._move(ref, None, commit)

    def remove(self, place: str) -> None:
        """Take a name away; UsageError where there is none, or it is the one that commits move."""
        ref = _ref(place)
        if place == f"heads/{MAIN}":
            raise UsageError(f"{MAIN} is where commits go")
        if not self.get(place):
            raise UsageError(f"{_word(place)}: no such name in {self._path}")
        self._refs.remove_if_equals(ref, self._held(ref, None))

    def put(self, place: str, before: str | None, after: str | None) -> bool:
        """Have a name lead to another commit, or to none; tell whether it led to where was said."""
        ref = _ref(place)
        if after:
            return self._move(ref, before, after)
        return bool(self._refs.remove_if_equals(ref, self._held(ref, before)))

    def _move(self, ref: Ref, before: str | None, after: str) -> bool:
        held = self._held(ref, before) or ObjectID(b"0" * 40)
        moved = self._refs.set_if_equals(ref, held, ObjectID(after.encode()))
        files.to_disk((self._path / ref.decode()).parent)
        return moved

    def _held(self, ref: Ref, commit: str | None) -> ObjectID | None:
        """Return what a reference holds if that is a commit: it, or the tag that is an object of its own."""
        self._unlock(ref)
        if commit is None:
            return None
        with suppress(KeyError, ValueError):
            if self._peeled(held := self._refs[ref]) == commit:
                return held
        return ObjectID(commit.encode())

    def _peeled(self, held: ObjectID) -> str:
        """Return the commit of a tag that git has made an object of."""
        number = held.decode()
        with suppress(DamagedError):
            while isinstance(found := self._objects.read(number), Tag):
                number = found.object[1].decode()
        return number

    def _unlock(self, ref: Ref) -> None:
        """Wait for the holder of a reference's file, and take it from one that was killed."""
        lock, until = self._path / f"{ref.decode()}.lock", time.monotonic() + _LOCK_SECONDS
        while lock.exists():
            if time.monotonic() > until:
                # Who has the lock of the repository is the only one who could hold it.
                lock.unlink(missing_ok=True)
            time.sleep(_AGAIN_SECONDS)


def _ref(place: str) -> Ref:
    """Return what git calls a name; UsageError where nothing may be called so."""
    if not is_name(place):
        raise UsageError(
            f"{_word(place)}: letters, digits, _ . and - alone, and nothing that may be a commit's id"
        )
    return Ref(f"refs/{place}".encode())


def _word(place: str) -> str:
    return place.partition("/")[2]
