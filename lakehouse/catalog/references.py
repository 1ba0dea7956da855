"""References to commits, such as `heads/main` and `tags/v1`; each update is a compare-and-swap."""

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
# Git itself holds the lock file of a reference for milliseconds.
_LOCK_SECONDS, _POLL_SECONDS = 2.0, 0.05
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_ID = re.compile(r"[0-9a-f]{4,40}")
# Names with a meaning of their own.
_RESERVED = {f"tags/{MAIN}", "tags/HEAD", "heads/HEAD"}


def is_id(text: str) -> bool:
    """Return whether a text may be the id of a commit, or a prefix of one."""
    return _ID.fullmatch(text) is not None


def is_name(place: str) -> bool:
    """Return whether a name such as `heads/main` is allowed here; git itself allows more names."""
    word = _word(place)
    return (
        place not in _RESERVED
        and _WORD.fullmatch(word) is not None
        and not is_id(word)
        and check_ref_format(Ref(f"refs/{place}".encode()))
    )


class References:
    """The references of a repository; a writer holds the repository's lock."""

    def __init__(self, path: Path, refs: RefsContainer, objects: Objects) -> None:
        self._path = path
        self._refs = refs
        self._objects = objects

    def get(self, place: str) -> str | None:
        """Return the id of the commit of a reference; None if there is no such reference."""
        with suppress(KeyError, ValueError):
            return self._peeled(self._refs[Ref(f"refs/{place}".encode())])
        return None

    def names(self, folder: str) -> dict[str, str]:
        """Return the branches (`heads`) or `tags` with the ids of their commits."""
        refs = self._refs.as_dict(Ref(f"refs/{folder}".encode()))
        return {name.decode(): self._peeled(number) for name, number in sorted(refs.items())}

    def tips(self) -> list[str]:
        """Return the ids of the commits that have a reference."""
        return [*self.names("tags").values(), *self.names("heads").values()]

    def add(self, place: str, commit: str) -> None:
        """Add a reference to a commit; UsageError if it exists, or its name is invalid."""
        ref, word = _ref(place), _word(place)
        if self.get(place):
            raise UsageError(f"{word} is there already; another name, or --delete {word} first")
        self._move(ref, None, commit)

    def remove(self, place: str) -> None:
        """Delete a reference; UsageError if there is none, or for `main`."""
        ref = _ref(place)
        if place == f"heads/{MAIN}":
            raise UsageError(f"{MAIN} is where commits go")
        if not self.get(place):
            raise UsageError(f"{_word(place)}: no such name in {self._path}")
        self._refs.remove_if_equals(ref, self._target(ref, None))

    def put(self, place: str, before: str | None, after: str | None) -> bool:
        """Move a reference from the commit `before` to `after`, or delete it; return False on a mismatch."""
        ref = _ref(place)
        if after:
            return self._move(ref, before, after)
        return bool(self._refs.remove_if_equals(ref, self._target(ref, before)))

    def _move(self, ref: Ref, before: str | None, after: str) -> bool:
        current = self._target(ref, before) or ObjectID(b"0" * 40)
        is_moved = self._refs.set_if_equals(ref, current, ObjectID(after.encode()))
        files.to_disk((self._path / ref.decode()).parent)
        return is_moved

    def _target(self, ref: Ref, commit: str | None) -> ObjectID | None:
        """Return the id that a reference to a commit contains: the commit's, or that of an annotated tag."""
        self._unlock(ref)
        if commit is None:
            return None
        with suppress(KeyError, ValueError):
            if self._peeled(target := self._refs[ref]) == commit:
                return target
        return ObjectID(commit.encode())

    def _peeled(self, ref_target: ObjectID) -> str:
        """Return the commit of a reference, also of one to an annotated tag."""
        number = ref_target.decode()
        with suppress(DamagedError):
            while isinstance(git_object := self._objects.read(number), Tag):
                number = git_object.object[1].decode()
        return number

    def _unlock(self, ref: Ref) -> None:
        """Wait until the lock file of a reference is gone; remove that of a process that was killed."""
        lock, until = self._path / f"{ref.decode()}.lock", time.monotonic() + _LOCK_SECONDS
        while lock.exists():
            if time.monotonic() > until:
                # The caller has the lock of the repository, so no other writer holds this file.
                lock.unlink(missing_ok=True)
            time.sleep(_POLL_SECONDS)


def _ref(place: str) -> Ref:
    """Return git's name of a reference; UsageError for an invalid name."""
    if not is_name(place):
        raise UsageError(
            f"{_word(place)}: letters, digits, _ . and - alone, and nothing that may be a commit's id"
        )
    return Ref(f"refs/{place}".encode())


def _word(place: str) -> str:
    return place.partition("/")[2]
