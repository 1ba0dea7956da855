"""The history's repository: git's objects and references. A kill leaves the last commit whole.

Objects are written first and to the disk; then the branch moves, in one step. What a kill leaves behind is
objects that nobody refers to, which the next commit takes if they fit, and `git gc` removes.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from dulwich.errors import NotGitRepository
from dulwich.graph import find_merge_base
from dulwich.objects import Blob, Commit, ObjectID, ShaFile, Tag, Tree
from dulwich.pack import Pack, UnpackedObject, write_pack_data
from dulwich.refs import Ref, check_ref_format
from dulwich.repo import Repo

from lakehouse import locks
from lakehouse.catalog import trees
from lakehouse.errors import LakehouseError, UsageError

MAIN = "main"
# So many objects at once are a file each, as git writes them; more are a pack.
_LOOSE = 200
# Another commit may take so long; the file of a reference is locked for milliseconds.
_LOCK_SECONDS, _REF_SECONDS, _AGAIN_SECONDS = 120.0, 2.0, 0.05
# No program of git's, which does not ask for the lock, writes one file for longer.
_LEFT_SECONDS = 3600
_ID = re.compile(r"[0-9a-f]{4,40}")
_BACK = re.compile(r"(?P<name>.*?)~(?P<steps>\d+)")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
# They stand for commits without being given.
_TAKEN = {("tags", MAIN), ("tags", "HEAD"), ("heads", "HEAD")}
_SHORT = 12


@dataclass(frozen=True)
class Entry:
    """One commit: its id, its trees, its parents, who, when (seconds since the epoch), and what it says."""

    id: str
    tree: str
    parents: tuple[str, ...]
    author: str
    time: int
    message: str

    @property
    def short(self) -> str:
        """Enough of the id for a person."""
        return self.id[:_SHORT]

    @property
    def subject(self) -> str:
        """The first line of the message."""
        return self.message.partition("\n")[0]

    @property
    def facts(self) -> dict[str, str]:
        """Return the lines `Word: value` at the end of the message."""
        last = self.message.rstrip("\n").rpartition("\n\n")[2]
        pairs = (one.partition(": ") for one in last.splitlines())
        return {key: value for key, colon, value in pairs if colon}


class Reader(Protocol):
    """Whatever has objects."""

    def blob(self, number: str) -> bytes:
        """Return a file by its id."""

    def tree(self, number: str) -> Mapping[str, str]:
        """Return the ids in a folder by name."""


class Writer(Reader, Protocol):
    """Whatever takes objects."""

    def add_blob(self, content: bytes) -> str:
        """Keep a file; return its id."""

    def add_tree(self, entries: Mapping[str, tuple[bool, str]]) -> str:
        """Keep a folder of names, each a folder itself or not, and an id; return its id."""


class DamagedError(LakehouseError):
    """An object of the repository is missing or is not what its id says."""


class Store:
    """A repository on this machine."""

    def __init__(self, path: Path) -> None:
        """Open it; LakehouseError where there is none."""
        self.path = path
        try:
            self._repo = Repo(str(path))
        except (NotGitRepository, FileNotFoundError) as error:
            raise LakehouseError(
                f"{path}: there is no history of the catalog yet", ".venv/bin/lakehouse catalog commit"
            ) from error

    @classmethod
    def made(cls, path: Path) -> Store:
        """Open the repository, which is made where there is none; a kill leaves none or a whole one."""
        if not (path / "HEAD").exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".catalog-", dir=path.parent) as folder:
                Repo.init_bare(str(Path(folder) / "new"), mkdir=True, default_branch=MAIN.encode()).close()
                # Parameters of tables may be secrets, in the metastore and so in its history.
                (Path(folder) / "new").chmod(0o700)
                # Another one may have been faster.
                with suppress(OSError):
                    (Path(folder) / "new").rename(path)
        return cls(path)

    def close(self) -> None:
        """Close the files of the repository."""
        self._repo.close()

    # Reading

    def blob(self, number: str) -> bytes:
        """Return a file by its id; DamagedError where it is not there, or has another content."""
        found = self._object(number)
        if not isinstance(found, Blob):
            raise DamagedError(f"{self.path}: {number} is no file", self._fsck)
        return found.as_raw_string()

    def tree(self, number: str) -> Mapping[str, str]:
        """Return the ids in a folder by name."""
        found = self._object(number)
        if not isinstance(found, Tree):
            raise DamagedError(f"{self.path}: {number} is no folder", self._fsck)
        try:
            return trees.entries(found)
        except UnicodeDecodeError:
            raise DamagedError(f"{self.path}: {number} has a name that is not UTF-8", self._fsck) from None

    def commit(self, number: str) -> Entry:
        """Return a commit by its whole id."""
        found = self._object(number)
        if not isinstance(found, Commit):
            raise DamagedError(f"{self.path}: {number} is no commit", self._fsck)
        parents = () if number in self.ends() else tuple(one.decode() for one in found.parents)
        # Somebody may commit with git, in another encoding.
        author, message = (text.decode(errors="replace") for text in (found.author, found.message))
        return Entry(number, found.tree.decode(), parents, author, int(found.author_time), message)

    def history(self, start: str) -> Iterator[Entry]:
        """Give a commit and those before it, by the first parent of each."""
        number: str | None = start
        while number:
            entry = self.commit(number)
            yield entry
            number = next(iter(entry.parents), None)

    def common(self, one: Entry, other: Entry) -> Entry | None:
        """Return the last commit that two come from, the newest where there are several; None for none."""
        try:
            found = find_merge_base(self._repo, [ObjectID(entry.id.encode()) for entry in (one, other)])
        except KeyError as error:
            raise DamagedError(
                f"{self.path}: object {error.args[0].decode()} is missing", self._fsck
            ) from None
        except Exception as error:
            # As in `_object`; which of the commits it is, `fsck` says.
            raise DamagedError(f"{self.path}: a commit is damaged: {_what(error)}", self._fsck) from error
        entries = [self.commit(number.decode()) for number in found]
        return max(entries, key=lambda entry: (entry.time, entry.id), default=None)

    def descends(self, entry: Entry, other: Entry) -> bool:
        """Tell whether a commit comes from another one."""
        return other in (entry, self.common(entry, other))

    def head(self, branch: str = MAIN) -> Entry | None:
        """Return the last commit of a branch; None where it has none."""
        number = self._reference(f"refs/heads/{branch}")
        return self.commit(number) if number else None

    def resolve(self, text: str) -> Entry:
        """Return the commit that a branch, a tag, an id or its first letters name, `~2` is two before it.

        Raises UsageError where there is none, or more than one.
        """
        if back := _BACK.fullmatch(text):
            found = list(
                zip(range(int(back["steps"]) + 1), self.history(self.resolve(back["name"]).id), strict=False)
            )
            if len(found) <= int(back["steps"]):
                raise UsageError(f"{text}: there are only {len(found) - 1} commits before {back['name']}")
            return found[-1][1]
        name = MAIN if text == "HEAD" else text
        for folder in ("heads", "tags"):
            if number := self._reference(f"refs/{folder}/{name}"):
                return self.commit(number)
        matching = self._beginning(text) if _ID.fullmatch(text) else []
        if len(matching) > 1:
            raise UsageError(f"{text} is the beginning of {len(matching)} commits; a longer one")
        if text == "HEAD":
            raise LakehouseError(f"{self.path} has no commit yet", ".venv/bin/lakehouse catalog commit")
        if not matching:
            raise UsageError(f"{text}: no commit, branch or tag of {self.path}")
        return matching[0]

    def names(self, folder: str) -> dict[str, str]:
        """Return the branches (`heads`) or `tags` with the ids of their commits."""
        found = self._repo.refs.as_dict(Ref(f"refs/{folder}".encode()))
        return {name.decode(): self._peeled(number.decode()) for name, number in sorted(found.items())}

    def tips(self) -> list[str]:
        """Return the ids of the commits that have names."""
        return [*self.names("tags").values(), *self.names("heads").values()]

    def ends(self) -> frozenset[str]:
        """Return the commits whose parents were forgotten, or never fetched: git's own `shallow`."""
        return frozenset(one.decode() for one in self._repo.get_shallow())

    def __contains__(self, number: str) -> bool:
        """Tell whether there is an object of this id."""
        return ObjectID(number.encode()) in self._repo.object_store

    def _object(self, number: str) -> ShaFile:
        try:
            found = self._repo.object_store[ObjectID(number.encode())]
            content = found.as_raw_string()
        except KeyError:
            raise DamagedError(f"{self.path}: object {number} is missing", self._fsck) from None
        except Exception as error:
            # zlib's own error, and those of a pack whose bytes are others, are of no common class.
            raise DamagedError(
                f"{self.path}: object {number} is damaged: {_what(error)}", self._fsck
            ) from error
        # Nobody else compares what is there with what it is called.
        head = f"{found.type_name.decode()} {len(content)}\0".encode()
        if hashlib.sha1(head + content, usedforsecurity=False).hexdigest() != number:
            raise DamagedError(f"{self.path}: object {number} is damaged: it has another content", self._fsck)
        return found

    @property
    def _fsck(self) -> str:
        return ".venv/bin/lakehouse catalog fsck"

    def _reference(self, name: str) -> str | None:
        with suppress(KeyError, ValueError):
            return self._peeled(self._repo.refs[Ref(name.encode())].decode())
        return None

    def _peeled(self, number: str) -> str:
        """Return the commit of a tag that git has made an object of."""
        with suppress(DamagedError):
            while isinstance(found := self._object(number), Tag):
                number = found.object[1].decode()
        return number

    def _beginning(self, letters: str) -> list[Entry]:
        found = self._repo.object_store.iter_prefix(letters.encode())
        kinds = ((number, self._object(number.decode())) for number in dict.fromkeys(found))
        return [self.commit(number.decode()) for number, one in kinds if isinstance(one, Commit)]

    # Writing

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the repository against other commits; wait for the one that holds it, but not for ever."""
        with (self.path / "lakehouse.lock").open("w") as handle:
            if not locks.hold(handle, _LOCK_SECONDS):
                raise LakehouseError(
                    f"{self.path}: another program has been writing for {_LOCK_SECONDS:.0f} s",
                    f"fuser -v {self.path}/lakehouse.lock",
                )
            # Whatever somebody was writing who was killed.
            for left in (self.path / "objects" / "pack").glob("tmp*"):
                with suppress(FileNotFoundError):
                    if time.time() - left.stat().st_mtime > _LEFT_SECONDS:
                        left.unlink()
            yield

    def keep(self, objects: list[ShaFile]) -> None:
        """Write objects to the disk."""
        if len(objects) <= _LOOSE:
            for one in objects:
                self._write(one)
            return
        self._synced(self._repo.object_store.add_objects([(one, None) for one in objects]))

    def _synced(self, pack: Pack | None) -> None:
        """Have a pack on the disk."""
        if pack:
            for suffix in (".pack", ".idx"):
                _to_disk(Path(f"{os.fsdecode(pack._basename)}{suffix}"))  # its only name
            _to_disk(self.path / "objects" / "pack")

    def pack(self, have: Iterable[str], wanted: Iterable[str]) -> tuple[int, Iterator[UnpackedObject]]:
        """Return what commits lead to and others do not: how many objects, and the objects of a pack."""
        return self._repo.object_store.generate_pack_data(
            [ObjectID(one.encode()) for one in have if one in self],
            [ObjectID(one.encode()) for one in wanted],
            shallow=self._repo.get_shallow(),
        )

    def write_pack(self, have: Iterable[str], wanted: Iterable[str], stream: IO[bytes]) -> None:
        """Write what commits lead to and others do not as a pack; nothing where that is nothing.

        Raises DamagedError where an object is missing or cannot be read.
        """
        try:
            count, found = self.pack(have, wanted)
            if count:
                write_pack_data(stream.write, found, self._repo.object_format, num_records=count)
        except OSError:
            raise
        except Exception as error:
            # As in `_object`; which one it is, `fsck` says.
            raise DamagedError(f"{self.path}: an object is damaged: {_what(error)}", self._fsck) from error

    def read_pack(self, stream: IO[bytes]) -> None:
        """Keep the objects of a pack, if there is one; DamagedError where it is not whole."""
        file, keep, drop = self._repo.object_store.add_pack()
        try:
            shutil.copyfileobj(stream, file)
            pack = keep()
        except Exception as error:
            # As in `_object`.
            drop()
            raise DamagedError(f"{self.path}: what came is no whole pack: {_what(error)}") from error
        self._synced(pack)

    def end_where_needed(self, told: Iterable[str]) -> None:
        """Have the history end at those of these commits, and of its ends, whose parents are not there."""
        here = {one for one in {*told, *self.ends()} if one in self}
        self._end_at({one for one in here if not all(above in self for above in self.parents(one))})

    def parents(self, number: str) -> list[str]:
        """Return the commits that one was made on, also where the history ends with it."""
        found = self._object(number)
        return [one.decode() for one in found.parents] if isinstance(found, Commit) else []

    def _end_at(self, commits: Collection[str]) -> None:
        if commits == self.ends():
            return
        path = self.path / "shallow"
        new = path.with_suffix(".new")
        with new.open("w", encoding="ascii") as stream:
            stream.writelines(f"{one}\n" for one in sorted(commits))
            stream.flush()
            os.fsync(stream.fileno())
        new.replace(path)
        _to_disk(self.path)

    def forget_all_but(self, ends: Iterable[str]) -> None:
        """Keep what the names lead to and no more, with histories that end at these commits, as one pack.

        A kill leaves what was there, with or without what is kept twice. `self` is locked.
        """
        self._end_at(set(ends))
        objects = self._repo.object_store
        before = list(objects.packs)
        loose = [one for one in (self.path / "objects").glob("??/*") if one.is_file()]
        count, found = self.pack((), set(self.tips()))
        kept = objects.add_pack_data(count, found)
        self._synced(kept)
        for pack in before:
            if kept is None or pack.name() != kept.name():
                objects._remove_pack(pack)  # as its own repack does
        for one in loose:
            one.unlink(missing_ok=True)

    def _write(self, one: ShaFile) -> None:
        number = one.id.decode()
        path = self.path / "objects" / number[:2] / number[2:]
        path.parent.mkdir(exist_ok=True)
        # dulwich's own way leaves a lock where it was killed, and then refuses the object for ever.
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix="tmp_obj_", delete=False) as stream:
            stream.write(one.as_legacy_object())
            stream.flush()
            os.fsync(stream.fileno())
            os.fchmod(stream.fileno(), 0o444)
        Path(stream.name).replace(path)

    def record(  # noqa: PLR0913, PLR0917 -- what a commit is
        self, tree: str, parent: Entry | None, author: str, moment: int, message: str, branch: str = MAIN
    ) -> Entry:
        """Make a commit of a tree that is kept, the branch's last one; LakehouseError if another was made."""
        made = self.add(tree, [parent] if parent else [], author, moment, message)
        self.move(branch, parent, made)
        return made

    def add(self, tree: str, parents: Iterable[Entry], author: str, moment: int, message: str) -> Entry:
        """Make a commit of a tree that is kept; no branch has it yet."""
        made = Commit()
        made.tree = ObjectID(tree.encode())
        made.parents = [ObjectID(one.id.encode()) for one in parents]
        made.author = made.committer = author.encode()
        made.author_time = made.commit_time = moment
        made.author_timezone = made.commit_timezone = 0
        made.encoding = b"UTF-8"
        made.message = message.encode()
        self.keep([made])
        return self.commit(made.id.decode())

    def move(self, branch: str, before: Entry | None, after: Entry) -> None:
        """Have a branch end with another commit; LakehouseError if it ends with another one than said."""
        if not self._move(self._full("heads", branch), before.id if before else None, after.id):
            raise LakehouseError(
                f"{self.path}: {branch} has another commit by now; this one was dropped",
                ".venv/bin/lakehouse catalog commit",
            )

    def name(self, folder: str, name: str, entry: Entry) -> None:
        """Give a commit a name; UsageError where there is one, or it is none."""
        full = self._full(folder, name)
        if self._reference(full):
            raise UsageError(f"{name} is there already; another name, or --delete {name} first")
        self._move(full, None, entry.id)

    def forget(self, folder: str, name: str) -> None:
        """Take a name away; UsageError where there is none, or it is the one that commits move."""
        full = self._full(folder, name)
        if name == MAIN and folder == "heads":
            raise UsageError(f"{MAIN} is where commits go")
        if not self._reference(full):
            raise UsageError(f"{name}: no such name in {self.path}")
        self._repo.refs.remove_if_equals(Ref(full.encode()), None)

    def put(self, place: str, before: str | None, after: str | None) -> bool:
        """Have a name (`heads/main`) name another commit, or none; tell whether it was what was said."""
        folder, _, name = place.partition("/")
        full = self._full(folder, name)
        if after:
            return self._move(full, before, after)
        return bool(self._repo.refs.remove_if_equals(Ref(full.encode()), self._held(full, before)))

    def is_name(self, place: str) -> bool:
        """Tell whether something may be called so (`heads/main`); git itself takes other names, too."""
        folder, _, name = place.partition("/")
        return (
            (folder, name) not in _TAKEN
            and _WORD.fullmatch(name) is not None
            and _ID.fullmatch(name) is None
            and check_ref_format(Ref(f"refs/{place}".encode()))
        )

    def _full(self, folder: str, name: str) -> str:
        if not self.is_name(f"{folder}/{name}"):
            raise UsageError(
                f"{name}: letters, digits, _ . and - alone, and nothing that may be a commit's id"
            )
        return f"refs/{folder}/{name}"

    def _move(self, name: str, old: str | None, new: str) -> bool:
        before = self._held(name, old) or ObjectID(b"0" * 40)
        moved = self._repo.refs.set_if_equals(Ref(name.encode()), before, ObjectID(new.encode()))
        _to_disk((self.path / name).parent)
        return moved

    def _held(self, name: str, commit: str | None) -> ObjectID | None:
        """Return what a reference holds if that is a commit: it, or the tag that is an object of its own."""
        self._unlock(name)
        if commit is None:
            return None
        with suppress(KeyError, ValueError):
            held = self._repo.refs[Ref(name.encode())]
            return held if self._peeled(held.decode()) == commit else ObjectID(commit.encode())
        return ObjectID(commit.encode())

    def _unlock(self, name: str) -> None:
        """Wait for whoever has the file of a reference, and take it from one who was killed."""
        lock, until = self.path / f"{name}.lock", time.monotonic() + _REF_SECONDS
        while lock.exists():
            if time.monotonic() > until:
                # Who has the lock of the repository is the only one who could hold it.
                lock.unlink(missing_ok=True)
            time.sleep(_AGAIN_SECONDS)


def _what(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _to_disk(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
