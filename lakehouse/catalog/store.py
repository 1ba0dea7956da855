"""The git repository of the history. A killed writer leaves the last commit intact.

Objects are written and synced first; then the branch moves atomically.
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

# The timeout for the lock: another commit may take as long.
_LOCK_SECONDS = 120.0
_ANCESTOR = re.compile(r"(?P<name>.*?)~(?P<steps>\d+)")
COMMIT = ".venv/bin/lakehouse catalog commit"
_SHORT = 12


@dataclass(frozen=True)
class Entry:
    """A commit: its id, tree, parents, author, time (seconds since the epoch) and message."""

    id: str
    tree: str
    parents: tuple[str, ...]
    author: str
    time: int
    message: str

    @property
    def short(self) -> str:
        """The abbreviated id."""
        return self.id[:_SHORT]

    @property
    def subject(self) -> str:
        """The first line of the message."""
        return self.message.partition("\n")[0]

    @property
    def facts(self) -> dict[str, str]:
        """The lines `Key: value` at the end of the message."""
        paragraph = self.message.rstrip("\n").rpartition("\n\n")[2]
        pairs = (line.partition(": ") for line in paragraph.splitlines())
        return {key: value for key, colon, value in pairs if colon}


class Reader(Protocol):
    """A source of git objects."""

    def blob(self, number: str) -> bytes:
        """Return a file by its id."""

    def tree(self, number: str) -> Mapping[str, str]:
        """Return the ids in a folder by name."""


class Writer(Reader, Protocol):
    """A store of git objects."""

    def add_blob(self, content: bytes) -> str:
        """Add a file; return its id."""

    def add_tree(self, entries: Mapping[str, tuple[bool, str]]) -> str:
        """Add a folder, whose entries are by name, whether they are a folder, and their id; return its id."""


class Store:
    """A repository on this machine, with its `objects` and `references`."""

    def __init__(self, path: Path, first: str = COMMIT) -> None:
        """Open the repository; LakehouseError with the command of the first commit if there is none."""
        self.path = path
        try:
            self._repo = Repo(str(path))
        except (NotGitRepository, FileNotFoundError) as error:
            raise LakehouseError(f"{path}: there is no history of the catalog yet", first) from error
        self.objects = Objects(path, self._repo)
        self.references = References(path, self._repo.refs, self.objects)

    @classmethod
    def made(cls, path: Path) -> Store:
        """Open the repository, and create it atomically if there is none."""
        if not (path / "HEAD").exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".catalog-", dir=path.parent) as folder:
                Repo.init_bare(str(Path(folder) / "new"), mkdir=True, default_branch=MAIN.encode()).close()
                # Parameters of tables may be secrets, in the metastore and so in its history.
                (Path(folder) / "new").chmod(0o700)
                # Another process may have created it meanwhile.
                with suppress(OSError):
                    (Path(folder) / "new").rename(path)
        return cls(path)

    def close(self) -> None:
        """Close the files of the repository."""
        self._repo.close()

    # Reading

    def blob(self, number: str) -> bytes:
        """Return a file by its id; DamagedError if it is missing, or its content does not match."""
        git_object = self.objects.read(number)
        if not isinstance(git_object, Blob):
            raise self.objects.damaged(f"{number} is no file")
        return git_object.as_raw_string()

    def tree(self, number: str) -> Mapping[str, str]:
        """Return the ids in a folder by name."""
        git_object = self.objects.read(number)
        if not isinstance(git_object, Tree):
            raise self.objects.damaged(f"{number} is no folder")
        try:
            return trees.entries(git_object)
        except UnicodeDecodeError:
            raise self.objects.damaged(f"{number} has a name that is not UTF-8") from None

    def commit(self, number: str) -> Entry:
        """Return a commit by its whole id."""
        git_object = self.objects.read(number)
        if not isinstance(git_object, Commit):
            raise self.objects.damaged(f"{number} is no commit")
        parents = () if number in self.ends() else tuple(parent.decode() for parent in git_object.parents)
        # A user may commit with git, in another encoding.
        author, message = (text.decode(errors="replace") for text in (git_object.author, git_object.message))
        return Entry(number, git_object.tree.decode(), parents, author, int(git_object.author_time), message)

    def history(self, start: str) -> Iterator[Entry]:
        """Give a commit and its ancestors along first parents."""
        number: str | None = start
        while number:
            entry = self.commit(number)
            yield entry
            number = next(iter(entry.parents), None)

    def common(self, ours: Entry, theirs: Entry) -> Entry | None:
        """Return the merge base of two commits, the newest if there are several; None without any."""
        try:
            numbers = find_merge_base(self._repo, [ObjectID(entry.id.encode()) for entry in (ours, theirs)])
        except KeyError as error:
            raise self.objects.damaged(f"object {error.args[0].decode()} is missing") from None
        except Exception as error:
            # As in `Objects.read`; `fsck` tells which commit it is.
            raise self.objects.damaged("a commit is damaged", error) from error
        entries = [self.commit(number.decode()) for number in numbers]
        return max(entries, key=lambda entry: (entry.time, entry.id), default=None)

    def descends(self, entry: Entry, ancestor: Entry) -> bool:
        """Return whether a commit equals another one or descends from it."""
        return ancestor in (entry, self.common(entry, ancestor))

    def head(self, branch: str = MAIN) -> Entry | None:
        """Return the last commit of a branch; None without any."""
        number = self.references.get(f"heads/{branch}")
        return self.commit(number) if number else None

    def resolve(self, text: str) -> Entry:
        """Return the commit of a branch, a tag, an id or a prefix of one; `~2` is the second one before it.

        Raises UsageError if there is no such commit, or more than one.
        """
        if match := _ANCESTOR.fullmatch(text):
            start, steps = self.resolve(match["name"]), int(match["steps"])
            entries = [entry for _, entry in zip(range(steps + 1), self.history(start.id), strict=False)]
            if len(entries) <= steps:
                raise UsageError(
                    f"{text}: no more than {counted(len(entries) - 1, 'commit')} before {match['name']}"
                )
            return entries[-1]
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
        """Return the parents of a commit, also if the history ends with it."""
        git_object = self.objects.read(number)
        return [parent.decode() for parent in git_object.parents] if isinstance(git_object, Commit) else []

    def _beginning(self, prefix: str) -> list[Entry]:
        numbers = self.objects.beginning(prefix)
        return [self.commit(number) for number in numbers if isinstance(self.objects.read(number), Commit)]

    # Writing

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the repository; LakehouseError after a timeout."""
        with (self.path / "lakehouse.lock").open("w") as handle:
            if not locks.hold(handle, _LOCK_SECONDS):
                raise LakehouseError(
                    f"{self.path}: another program has been writing for {_LOCK_SECONDS:.0f} s",
                    f"fuser -v {self.path}/lakehouse.lock",
                )
            self.objects.sweep()
            yield

    def record(  # noqa: PLR0913, PLR0917 -- the fields of a commit
        self, tree: str, parent: Entry | None, author: str, moment: int, message: str, branch: str = MAIN
    ) -> Entry:
        """Commit an existing tree to a branch; LakehouseError if the branch has moved meanwhile."""
        commit = self.add(tree, [parent] if parent else [], author, moment, message)
        self.move(branch, parent, commit)
        return commit

    def add(self, tree: str, parents: Iterable[Entry], author: str, moment: int, message: str) -> Entry:
        """Create a commit of an existing tree, which no branch has yet."""
        commit = Commit()
        commit.tree = ObjectID(tree.encode())
        commit.parents = [ObjectID(parent.id.encode()) for parent in parents]
        commit.author = commit.committer = author.encode()
        commit.author_time = commit.commit_time = moment
        commit.author_timezone = commit.commit_timezone = 0
        commit.encoding = b"UTF-8"
        commit.message = message.encode()
        self.objects.keep([commit])
        return self.commit(commit.id.decode())

    def move(self, branch: str, before: Entry | None, after: Entry) -> None:
        """Move a branch from the commit `before` to `after`; LakehouseError if it has moved meanwhile."""
        if not self.references.put(f"heads/{branch}", before.id if before else None, after.id):
            raise LakehouseError(
                f"{self.path}: {branch} has another commit by now; this one was dropped", COMMIT
            )

    # Where the history ends

    def ends(self) -> frozenset[str]:
        """Return the commits whose parents were removed, or never fetched: git's own `shallow`."""
        return frozenset(commit.decode() for commit in self._repo.get_shallow())

    def end_where_needed(self, commits: Iterable[str]) -> None:
        """End the history at those of these commits, and of its ends, whose parents are missing."""
        present = {commit for commit in {*commits, *self.ends()} if commit in self.objects}
        self._end_at(
            {
                commit
                for commit in present
                if not all(parent in self.objects for parent in self.parents(commit))
            }
        )

    def forget_all_but(self, ends: Iterable[str]) -> None:
        """Keep the commits that references reach, up to these ends, as one pack, and delete all others.

        A kill leaves all commits, some of them twice. `self` is locked.
        """
        self._end_at(set(ends))
        self.objects.keep_only(set(self.references.tips()))

    def _end_at(self, commits: Collection[str]) -> None:
        if commits != self.ends():
            files.write(self.path / "shallow", "".join(f"{commit}\n" for commit in sorted(commits)))
            files.to_disk(self.path)
