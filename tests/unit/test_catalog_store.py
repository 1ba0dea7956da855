"""A history outlives a kill at any moment, says what is damaged, and is one that git itself can read."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lakehouse.catalog import fsck
from lakehouse.catalog.disk import DamagedError
from lakehouse.catalog.overlay import Batch
from lakehouse.catalog.references import is_name
from lakehouse.catalog.store import Entry, Store
from lakehouse.errors import LakehouseError, UsageError
from lakehouse.run import ROOT

GIT = shutil.which("git")
# Commits without end, of as many files as are asked for: small ones are loose objects, large ones packs.
WRITER = """
import sys
from pathlib import Path
from lakehouse.catalog.overlay import Batch
from lakehouse.catalog.store import Store
store, size, number = Store.made(Path(sys.argv[1])), int(sys.argv[2]), 0
while True:
    number += 1
    with store.locked():
        parent, batch = store.head(), Batch(store)
        told = [(f"{one}.json", batch.add_blob(b'{"%d": %d}' % (one, number))) for one in range(size)]
        files = batch.add_tree({name: (False, file) for name, file in told})
        tree = batch.add_tree({"catalog": (True, files)})
        batch.flush()
        store.record(tree, parent, "w <w@example.org>", number, f"commit {number}\\n")
    print(number, flush=True)
"""


def commit(store: Store, *texts: str, message: str = "what") -> Entry:
    """Make a commit with a file for each text."""
    batch = Batch(store)
    files = {f"f{number}.json": (False, batch.add_blob(text.encode())) for number, text in enumerate(texts)}
    tree = batch.add_tree({"catalog": (True, batch.add_tree(files))})
    batch.flush()
    with store.locked():
        return store.record(tree, store.head(), "a <a@example.org>", 1_800_000_000, message)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.made(tmp_path / "history.git")) as made:
        yield made


@pytest.mark.parametrize("size", [3, 400])
def test_a_kill_at_any_moment_leaves_whole_commits_and_the_next_one_works(tmp_path: Path, size: int) -> None:
    path, dice = tmp_path / "history.git", random.Random(size)  # noqa: S311 -- moments, not secrets
    known = 0
    for _ in range(10):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(size)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        # It lives; then some moment of the next commits.
        process.stdout.readline()
        until = time.monotonic() + dice.random() * 0.2
        while time.monotonic() < until:
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.communicate()
        with closing(Store(path)) as store:
            entries = list(store.history(store.resolve("HEAD").id))
            assert len(entries) > known
            known = len(entries)
    with closing(Store(path)) as store:
        checked = fsck.check(store)
        assert (checked.faults, checked.commits) == ([], known)
        assert commit(store, "{}").parents == (entries[0].id,)


def test_the_same_files_are_the_same_tree_and_are_written_once(tmp_path: Path) -> None:
    with closing(Store.made(tmp_path / "a.git")) as one, closing(Store.made(tmp_path / "b.git")) as other:
        assert commit(one, "{}", "[]").tree == commit(other, "{}", "[]").tree
        before = {path for path in (tmp_path / "a.git" / "objects").rglob("*") if path.is_file()}
        commit(one, "{}", "[]", message="again")
        after = {path for path in (tmp_path / "a.git" / "objects").rglob("*") if path.is_file()}
        assert len(after - before) == 1


def test_what_a_killed_program_left_is_in_nobodys_way(store: Store) -> None:
    commit(store, "{}")
    (store.path / "refs" / "heads" / "main.lock").touch()
    left, written = (store.path / "objects" / "pack" / f"tmp_pack_{one}" for one in ("left", "written"))
    left.touch()
    os.utime(left, (0, 0))
    # By git itself, which does not ask for the lock.
    written.touch()
    commit(store, "[]")
    assert (left.exists(), written.exists()) == (False, True)
    assert len(list(store.history(store.resolve("HEAD").id))) == 2
    store.references.add("tags/v1", store.resolve("HEAD").id)
    (store.path / "refs" / "tags" / "v1.lock").touch()
    store.references.remove("tags/v1")
    assert store.references.names("tags") == {}


def test_a_commit_on_another_one_than_the_last_is_dropped(store: Store) -> None:
    first = commit(store, "{}")
    last = commit(store, "[]")
    with store.locked(), pytest.raises(LakehouseError, match="main has another commit by now"):
        store.record(first.tree, first, "a <a@example.org>", 1, "late")
    assert store.head() == last


@pytest.mark.skipif(GIT is None, reason="git is not installed")
@pytest.mark.parametrize("size", [5, 500])
def test_git_reads_it_and_finds_no_fault(store: Store, size: int) -> None:
    commit(store, *(f'{{"n": {number}}}' for number in range(size)))
    commit(store, *(f'{{"m": {number}}}' for number in range(size)), message="zürich\n\nEvent: none\n")

    def git(*words: str) -> str:
        argv = [str(GIT), "--git-dir", str(store.path), *words]
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout

    git("fsck", "--strict", "--no-dangling")
    assert git("log", "--format=%s|%an|%at").splitlines() == ["zürich|a|1800000000", "what|a|1800000000"]
    git("gc", "--quiet")
    with closing(Store(store.path)) as packed:
        assert packed.resolve("HEAD~1").subject == "what"
        assert fsck.check(packed).faults == []


@pytest.mark.parametrize("damage", ["missing", "cut", "another"])
def test_a_damaged_object_is_named_with_its_place(store: Store, damage: str) -> None:
    entry, other = commit(store, '{"a": 1}', '{"b": 2}'), commit(store, '{"c": 3}')
    number = store.tree(store.tree(entry.tree)["catalog"])["f1.json"]
    path = store.path / "objects" / number[:2] / number[2:]
    path.chmod(0o644)
    if damage == "missing":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:5])
    else:
        [content] = store.tree(store.tree(other.tree)["catalog"]).values()
        path.write_bytes((store.path / "objects" / content[:2] / content[2:]).read_bytes())
    with closing(Store(store.path)) as again:
        [fault] = fsck.check(again).faults
        assert fault.path == f"{entry.short}:/catalog/f1.json"
        assert number in fault.why
        with pytest.raises(DamagedError, match=r"lakehouse catalog fsck$"):
            again.blob(number)


def test_what_is_no_document_is_named(store: Store) -> None:
    entry = commit(store, "{", "{}")
    [fault] = fsck.check(store).faults
    assert (fault.path, fault.why.startswith("is no document")) == (f"{entry.short}:/catalog/f0.json", True)


def test_a_commit_has_many_names(store: Store) -> None:
    first, last = commit(store, "{}"), commit(store, "[]")
    store.references.add("tags/v1.0", first.id)
    store.references.add("heads/try", first.id)
    for text in (first.id, first.short, "v1.0", "try", "HEAD~1", "main~1", f"{last.short}~1"):
        assert store.resolve(text) == first, text
    assert store.resolve("HEAD") == last
    for text, why in (
        ("HEAD~2", "no more than 1 commit before"),
        ("v2", "no commit, branch or tag"),
        ("0000000", "no commit, branch or tag"),
    ):
        with pytest.raises(UsageError, match=why):
            store.resolve(text)
    for name in ("", "a/b", "a b", "-x", ".x", "x.lock", "a..b", "abcdef12", "x\n"):
        with pytest.raises(UsageError):
            store.references.add(f"tags/{name}", first.id)


def test_a_folder_without_a_repository_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(LakehouseError, match="there is no history of the catalog yet"):
        Store(tmp_path / "nothing.git")


def test_two_programs_make_one_repository(tmp_path: Path) -> None:
    with closing(Store.made(tmp_path / "a.git")) as one, closing(Store.made(tmp_path / "a.git")) as other:
        commit(one, "{}")
        assert other.head() == one.head()
    assert [path.name for path in tmp_path.iterdir()] == ["a.git"]


def git(store: Store, *words: str, **environment: str) -> None:
    subprocess.run(
        [str(GIT), "--git-dir", str(store.path), "-c", "user.name=Ann", "-c", "user.email=a@b", *words],
        check=True, env={**os.environ, **environment},
    )  # fmt: skip


@pytest.mark.skipif(not GIT, reason="needs git")
def test_names_and_commits_that_git_has_made_are_read(store: Store) -> None:
    first, last = commit(store, "{}"), commit(store, "[]")
    git(store, "tag", "-a", "v1", "-m", "a tag that is an object", "HEAD~1")
    git(store, "update-ref", "refs/heads/fix/it", last.id)
    assert store.references.names("tags") == {"v1": first.id}
    assert store.resolve("v1") == first
    assert not is_name("heads/fix/it")
    assert fsck.check(store).faults == []
    store.references.put("tags/v1", first.id, last.id)
    assert store.references.names("tags") == {"v1": last.id}
    git(store, "tag", "-a", "v2", "-m", "another one", "HEAD")
    store.references.remove("tags/v2")
    assert store.references.names("tags") == {"v1": last.id}
    latin = (
        f"tree {last.tree}\nparent {last.id}\nauthor J\xf6rg <j@b> 1 +0000\ncommitter J <j@b> 1 +0000\n"
        "\nf\xfcr\n"
    )
    made = subprocess.run(
        [str(GIT), "--git-dir", str(store.path), "hash-object", "-t", "commit", "-w", "--stdin"],
        input=latin.encode("latin-1"), capture_output=True, check=True,
    )  # fmt: skip
    assert store.commit(made.stdout.decode().strip()).subject == "f\N{REPLACEMENT CHARACTER}r"


@pytest.mark.parametrize(
    ("folder", "name"), [("tags", "v1."), ("tags", "main"), ("tags", "HEAD"), ("heads", "a/b")]
)
def test_what_is_no_name_is_said(store: Store, folder: str, name: str) -> None:
    entry = commit(store, "{}")
    with pytest.raises(UsageError, match="letters, digits"):
        store.references.add(f"{folder}/{name}", entry.id)
