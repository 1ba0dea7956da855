"""The history's repository: commits, made of git's objects and references. A kill leaves the last one whole.

Objects are written first and to the disk; then the branch moves, in one step.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dulwich.errors import NotGitRepository
from dulwich.graph import find_merge_base
from dulwich.objects import Blob, Commit, ObjectID, Tree
from dulwich.repo import Repo

from lakehouse import locks
from lakehouse.catalog import files, trees
from lakehouse.catalog.disk import Objects
from lakehouse.catalog.references import MAIN, References, is_id
from lakehouse.errors import LakehouseError, UsageError
from plugins.module_utils.lakehouse.counting import counted

# Another commit may take so long.
_LOCK_SECONDS = 120.0
_BACK = re.compile(r"(?P<name>.*?)~(?P<steps>\d+)")
COMMIT = ".venv/bin/lakehouse catalog commit"
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


class Store:
    """A repository on this machine, with its `objects` and `references`."""

    def __init__(self, path: Path, first: str = COMMIT) -> None:
        """Open it; LakehouseError where there is none, with the command that makes the first commit."""
        self.path = path
        try:
            self._repo = Repo(str(path))
        except (NotGitRepository, FileNotFoundError) as error:
            raise LakehouseError(f"{path}: there is no history of the catalog yet", first) from error
        self.objects = Objects(path, self._repo)
        self.references = References(path, self._repo.refs, self.objects)

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
        found = self.objects.read(number)
        if not isinstance(found, Blob):
            raise self.objects.damaged(f"{number} is no file")
        return found.as_raw_string()

    def tree(self, number: str) -> Mapping[str, str]:
        """Return the ids in a folder by name."""
        found = self.objects.read(number)
        if not isinstance(found, Tree):
            raise self.objects.damaged(f"{number} is no folder")
        try:
            return trees.entries(found)
        except UnicodeDecodeError:
            raise self.objects.damaged(f"{number} has a name that is not UTF-8") from None

    def commit(self, number: str) -> Entry:
        """Return a commit by its whole id."""
        found = self.objects.read(number)
        if not isinstance(found, Commit):
            raise self.objects.damaged(f"{number} is no commit")
        parents = () if number in self.ends() else tuple(one.decode() for one in found.parents)
        # A user may commit with git, in another encoding.
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
            raise self.objects.damaged(f"object {error.args[0].decode()} is missing") from None
        except Exception as error:
            # As in `Objects.read`; which of the commits it is, `fsck` says.
            raise self.objects.damaged("a commit is damaged", error) from error
        entries = [self.commit(number.decode()) for number in found]
        return max(entries, key=lambda entry: (entry.time, entry.id), default=None)

    def descends(self, entry: Entry, other: Entry) -> bool:
        """Tell whether a commit comes from another one."""
        return other in (entry, self.common(entry, other))

    def head(self, branch: str = MAIN) -> Entry | None:
        """Return the last commit of a branch; None where it has none."""
        number = self.references.get(f"heads/{branch}")
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
                raise UsageError(
                    f"{text}: no more than {counted(len(found) - 1, 'commit')} before {back['name']}"
                )
            return found[-1][1]
        name = MAIN if text == "HEAD" else text
        for folder in ("heads", "tags"):
            if number := self.references.get(f"{folder}/{name}"):
                return self.commit(number)
        matching = self._beginning(text) if is_id(text) else []
        if len(matching) > 1:
            raise UsageError(f"{text} is the beginning of {counted(len(matching), 'commit')}; a longer one")
        if text == "HEAD":
            raise LakehouseError(f"{self.path} has no commit yet", COMMIT)
        if not matching:
            raise UsageError(f"{text}: no commit, branch or tag of {self.path}")
        return matching[0]

    def parents(self, number: str) -> list[str]:
        """Return the commits that one was made on, also where the history ends with it."""
        found = self.objects.read(number)
        return [one.decode() for one in found.parents] if isinstance(found, Commit) else []

    def _beginning(self, letters: str) -> list[Entry]:
        found = self.objects.beginning(letters)
        return [self.commit(one) for one in found if isinstance(self.objects.read(one), Commit)]

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
            self.objects.sweep()
            yield

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
        self.objects.keep([made])
        return self.commit(made.id.decode())

    def move(self, branch: str, before: Entry | None, after: Entry) -> None:
        """Have a branch end with another commit; LakehouseError if it ends with another one than said."""
        if not self.references.put(f"heads/{branch}", before.id if before else None, after.id):
            raise LakehouseError(
                f"{self.path}: {branch} has another commit by now; this one was dropped", COMMIT
            )

    # Where the history ends

    def ends(self) -> frozenset[str]:
        """Return the commits whose parents were forgotten, or never fetched: git's own `shallow`."""
        return frozenset(one.decode() for one in self._repo.get_shallow())

    def end_where_needed(self, told: Iterable[str]) -> None:
        """Have the history end at those of these commits, and of its ends, whose parents are not there."""
        here = {one for one in {*told, *self.ends()} if one in self.objects}
        self._end_at({one for one in here if not all(above in self.objects for above in self.parents(one))})

    def forget_all_but(self, ends: Iterable[str]) -> None:
        """Keep what the names lead to and no more, with histories that end at these commits, as one pack.

        A kill leaves what was there, with or without what is kept twice. `self` is locked.
        """
        self._end_at(set(ends))
        self.objects.keep_only(set(self.references.tips()))

    def _end_at(self, commits: Collection[str]) -> None:
        if commits != self.ends():
            files.write(self.path / "shallow", "".join(f"{one}\n" for one in sorted(commits)))
            files.to_disk(self.path)
