"""Several copies and a clock commit to one history: nothing is lost, whatever is killed when."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
from hive_metastore.ttypes import MetaException

from lakehouse import host_code
from lakehouse.catalog import build, checksums, exchange, forgetting, fsck
from lakehouse.catalog.disk import Objects
from lakehouse.catalog.exchange import reconcile
from lakehouse.catalog.hosted.serving import FollowedCommit
from lakehouse.catalog.overlay import Batch
from lakehouse.catalog.served.handler import refused
from lakehouse.catalog.store import Entry, Store
from lakehouse.cluster_catalog import sync
from lakehouse.errors import LakehouseError, UsageError
from lakehouse.run import ROOT
from suites.testbed.waiting import wait_for
from tests.unit import metastore_database, patience

WHO = "Ann <ann@example.org>"
DAY = 24 * 3600


class Cluster:
    """The cluster's history in a folder, whose programs are run here as on its host."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.repository = folder / "catalog.git"
        self.settings = folder / "settings.json"
        folder.mkdir()
        self.settings.write_text(json.dumps({
            "cluster": "test", "folder": str(folder), "keep_days": 0, "psql": ["false"],
            "namenode": "http://127.0.0.1:1", "superuser": "hdfs",
            "root": "/lakehouse", "owner": "hive", "snapshot_hours": 0, "snapshot_days": 0,
            "past_commit": "HEAD", "past_address": "127.0.0.1", "past_port": 0, **settings,
        }))  # fmt: skip

    @property
    def argv(self) -> list[str]:
        return [sys.executable, "-m", "lakehouse.catalog.hosted", "--settings", str(self.settings)]

    @contextmanager
    def node(self, program: str, asked: Mapping[str, Any]) -> Iterator[tuple[bytes, IO[bytes]]]:
        done = subprocess.run(
            [*self.argv, program], input=f"{json.dumps(asked)}\n".encode(), capture_output=True, check=False,
            cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        line, _, rest = done.stdout.partition(b"\n")
        assert line, done.stderr.decode()
        yield line, io.BytesIO(rest)

    def store(self) -> Store:
        return Store.made(self.repository)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path / "node")


@pytest.fixture
def copy(tmp_path: Path) -> Callable[[str], Store]:
    return lambda name: Store.made(tmp_path / name)


def commit(store: Store, text: str, branch: str = "main", moment: int = 1000) -> Entry:
    """Make a commit whose one file says this, so many seconds after the one before."""
    with store.locked():
        return commit_in(store, text, branch, moment)


def commit_in(store: Store, text: str, branch: str = "main", moment: int = DAY) -> Entry:
    """Make a commit in a repository that is locked."""
    batch, parent = Batch(store), store.head(branch)
    tree = batch.add_tree({"a.json": (False, batch.add_blob(json.dumps(text).encode()))})
    batch.flush()
    return store.record(tree, parent, WHO, moment + (parent.time if parent else 0), text, branch)


def meet(store: Store, cluster: Cluster) -> list[str]:
    said: list[str] = []
    sync.synchronize(store, cluster.node, said.append)
    return said


def subjects(store: Store, branch: str = "HEAD") -> list[str]:
    return [one.subject for one in store.history(store.resolve(branch).id)]


def test_a_copy_has_what_the_clock_commits(cluster: Cluster, copy: Callable[[str], Store]) -> None:
    with closing(cluster.store()) as node, closing(copy("mine")) as mine:
        commit(node, "one")
        meet(mine, cluster)
        commit(node, "two")
        meet(mine, cluster)
        assert subjects(mine) == ["two", "one"]
        assert mine.resolve("HEAD") == node.resolve("HEAD")
        assert fsck.check(mine).faults == []


def test_what_one_operator_names_another_one_sees(cluster: Cluster, copy: Callable[[str], Store]) -> None:
    with closing(cluster.store()) as node, closing(copy("ann")) as ann, closing(copy("bob")) as bob:
        commit(node, "one")
        meet(ann, cluster)
        ann.references.add("tags/before", ann.resolve("HEAD").id)
        ann.references.add("heads/dev", ann.resolve("HEAD").id)
        commit(ann, "desired", "dev")
        meet(ann, cluster)
        meet(bob, cluster)
        assert exchange.names(bob) == exchange.names(ann) == exchange.names(node)
        assert subjects(bob, "dev") == ["desired", "one"]
        bob.references.remove("tags/before")
        meet(bob, cluster)
        meet(ann, cluster)
        assert "tags/before" not in exchange.names(ann)


def test_two_who_go_on_with_a_branch_lose_nothing(cluster: Cluster, copy: Callable[[str], Store]) -> None:
    with closing(cluster.store()) as node, closing(copy("ann")) as ann, closing(copy("bob")) as bob:
        first = commit(node, "one")
        node.references.add("heads/dev", first.id)
        meet(ann, cluster)
        meet(bob, cluster)
        commit(ann, "of ann", "dev")
        meet(ann, cluster)
        own = commit(bob, "of bob", "dev")
        [said] = meet(bob, cluster)
        assert said.endswith(f"the local commit is now heads/dev-{own.short}")
        assert subjects(bob, "dev") == ["of ann", "one"]
        assert subjects(node, f"dev-{own.short}") == ["of bob", "one"]
        meet(ann, cluster)
        assert exchange.names(ann) == exchange.names(bob)


def test_a_history_from_before_the_timer_is_its_beginning(
    cluster: Cluster, copy: Callable[[str], Store]
) -> None:
    with closing(copy("mine")) as mine:
        commit(mine, "one")
        mine.references.add("tags/before", mine.resolve("HEAD").id)
        meet(mine, cluster)
        with closing(cluster.store()) as node:
            commit(node, "two")
        meet(mine, cluster)
        assert subjects(mine) == ["two", "one"]


def test_a_history_that_the_timer_did_not_wait_for_is_a_branch(
    cluster: Cluster, copy: Callable[[str], Store]
) -> None:
    with closing(cluster.store()) as node, closing(copy("mine")) as mine:
        commit(node, "of the timer", moment=7)
        own = commit(mine, "mine")
        meet(mine, cluster)
        assert subjects(mine) == ["of the timer"]
        assert subjects(node, f"main-{own.short}") == ["mine"]


def test_a_host_that_was_made_anew_gets_its_history_back(
    tmp_path: Path, cluster: Cluster, copy: Callable[[str], Store]
) -> None:
    with closing(copy("mine")) as mine:
        with closing(cluster.store()) as node:
            commit(node, "one")
        meet(mine, cluster)
        other = Cluster(tmp_path / "anew")
        meet(mine, other)
        with closing(other.store()) as node:
            assert subjects(node) == subjects(mine) == ["one"]


@pytest.mark.parametrize("killed_after", ["give", "take"])
def test_who_was_killed_between_goes_on_with_the_next(
    cluster: Cluster, copy: Callable[[str], Store], killed_after: str
) -> None:
    class KilledError(Exception):
        pass

    @contextmanager
    def broken(program: str, asked: Mapping[str, Any]) -> Iterator[tuple[bytes, IO[bytes]]]:
        with cluster.node(program, asked) as answer:
            if program == killed_after:
                raise KilledError
            yield answer

    with closing(cluster.store()) as node, closing(copy("mine")) as mine:
        commit(node, "one")
        meet(mine, cluster)
        mine.references.add("heads/dev", mine.resolve("HEAD").id)
        desired = commit(mine, "desired", "dev")
        with pytest.raises(KilledError):
            sync.synchronize(mine, broken, print)
        assert meet(mine, cluster) == []
        assert node.references.names("heads")["dev"] == mine.references.names("heads")["dev"] == desired.id


@pytest.mark.parametrize(
    ("kept", "why"),
    [
        (slice(-30), "what came is no whole pack"),
        (slice(0), "heads/main of the cluster's history was not sent"),
    ],
)
def test_half_an_answer_moves_nothing(
    cluster: Cluster, copy: Callable[[str], Store], kept: slice, why: str
) -> None:
    @contextmanager
    def cut(program: str, asked: Mapping[str, Any]) -> Iterator[tuple[bytes, IO[bytes]]]:
        with cluster.node(program, asked) as (line, rest):
            yield line, io.BytesIO(rest.read()[kept])

    with closing(cluster.store()) as node, closing(copy("mine")) as mine:
        commit(node, "one")
        with pytest.raises(LakehouseError, match=why):
            sync.synchronize(mine, cut, print)
        assert exchange.names(mine) == {}
        meet(mine, cluster)
        assert subjects(mine) == ["one"]


def test_a_damaged_object_is_the_answer(cluster: Cluster, copy: Callable[[str], Store]) -> None:
    with closing(cluster.store()) as node, closing(copy("mine")) as mine:
        tree = commit(node, "one").tree
        damaged = node.path / "objects" / tree[:2] / tree[2:]
        damaged.chmod(0o644)
        damaged.write_bytes(b"what a disk makes of it")
        with pytest.raises(LakehouseError, match="an object is damaged"):
            meet(mine, cluster)
        assert exchange.names(mine) == {}


def test_names_that_are_gits_alone_stay_in_a_copy(cluster: Cluster, copy: Callable[[str], Store]) -> None:
    with closing(cluster.store()) as node, closing(copy("mine")) as mine:
        entry = commit(node, "one")
        meet(mine, cluster)
        (mine.path / "refs" / "heads" / "fix").mkdir()
        (mine.path / "refs" / "heads" / "fix" / "it").write_text(f"{entry.id}\n")
        mine.references.add("tags/v1", entry.id)
        meet(mine, cluster)
        assert exchange.names(node) == {"heads/main": entry.id, "tags/v1": entry.id}
        wrong = {"moves": {"tags/v2": [None, entry.id], "heads/fix/it": [None, entry.id]}, "ends": []}
        with node.locked(), pytest.raises(UsageError, match="heads/fix/it: no name"):
            exchange.take(node, wrong, io.BytesIO())
        assert "tags/v2" not in exchange.names(node)


def test_main_never_goes_back(cluster: Cluster) -> None:
    with closing(cluster.store()) as node:
        first, second = commit(node, "one"), commit(node, "two")
        asked = {"moves": {"heads/main": [second.id, first.id]}, "ends": []}
        with node.locked():
            assert exchange.take(node, asked, io.BytesIO()) == ["heads/main"]
        assert node.resolve("HEAD") == second


def test_what_is_too_old_is_forgotten_and_ids_stay(cluster: Cluster, copy: Callable[[str], Store]) -> None:
    with closing(cluster.store()) as node, closing(copy("mine")) as mine, closing(copy("late")) as late:
        made = [commit(node, f"day {day}", moment=DAY) for day in range(1, 11)]
        node.references.add("tags/release", made[2].id)
        meet(mine, cluster)
        with node.locked():
            assert forgetting.forget(node, 4, 10.5 * DAY)
            assert not forgetting.forget(node, 4, 10.6 * DAY)
        assert subjects(node) == [f"day {day}" for day in (10, 9, 8, 7, 6, 5)]
        assert subjects(node, "release") == ["day 3"]
        assert fsck.check(node).faults == []
        assert made[0].id not in node.objects
        git = subprocess.run(
            ["git", "--git-dir", str(node.path), "fsck", "--strict"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert git.returncode == 0, git.stderr
        # A copy keeps what it has fetched, and one that comes later ends where the cluster's does.
        commit(node, "day 11", moment=DAY)
        meet(mine, cluster)
        meet(late, cluster)
        assert len(subjects(mine)) == 11
        assert subjects(late) == subjects(node)
        assert fsck.check(mine).faults == fsck.check(late).faults == []
        # And what is written in either goes on.
        late.references.add("heads/dev", late.resolve("HEAD").id)
        commit(late, "desired", "dev")
        meet(late, cluster)
        assert subjects(node, "dev")[:2] == ["desired", "day 11"]


def test_forgetting_that_was_killed_is_done_by_the_next(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(cluster.store()) as node:
        for day in range(1, 11):
            commit(node, f"day {day}", moment=DAY)
        packed = Objects._sync

        def killed(objects: Objects, pack: Any) -> None:
            packed(objects, pack)
            raise KeyboardInterrupt

        monkeypatch.setattr(Objects, "_sync", killed)
        with node.locked(), pytest.raises(KeyboardInterrupt):
            forgetting.forget(node, 4, 10.5 * DAY)
        monkeypatch.undo()
    with closing(cluster.store()) as node:
        assert fsck.check(node).faults == []
        commit(node, "day 11", moment=DAY)
        with node.locked():
            forgetting.forget(node, 4, 11.5 * DAY)
        assert subjects(node) == [f"day {day}" for day in (11, 10, 9, 8, 7, 6)]
        assert fsck.check(node).faults == []
        assert len(list((node.path / "objects" / "pack").glob("*.pack"))) == 1


@pytest.mark.parametrize("commits_meanwhile", [0, 1, 3])
def test_a_clock_that_is_a_year_ahead_forgets_nothing(cluster: Cluster, commits_meanwhile: int) -> None:
    with closing(cluster.store()) as node:
        days = [commit(node, f"day {day}", moment=DAY) for day in range(1, 4)]
        ahead = 400 * DAY
        for number in range(commits_meanwhile):
            commit(node, f"ahead {number}", moment=ahead if not number else DAY)
        with node.locked():
            assert not forgetting.forget(node, 30, ahead + 5 * DAY)
            # It is right again.
            assert not forgetting.forget(node, 30, 4 * DAY)
        assert days[0].id in node.objects


def test_what_a_full_disk_has_left_is_forgotten_by_the_next(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with closing(cluster.store()) as node, node.locked():
        first, *_ = [commit_in(node, f"day {day}") for day in range(1, 11)]
        monkeypatch.setattr(Objects, "_pack", full)
        with pytest.raises(OSError, match="No space left"):
            forgetting.forget(node, 4, 10.5 * DAY)
        monkeypatch.undo()
        assert first.id in node.objects
        assert forgetting.forget(node, 4, 10.6 * DAY)
        assert first.id not in node.objects
        assert not forgetting.forget(node, 4, 10.7 * DAY)


def test_without_days_nothing_is_forgotten(cluster: Cluster) -> None:
    with closing(cluster.store()) as node:
        commit(node, "one")
        commit(node, "two")
        with node.locked():
            assert forgetting.forget(node, 0, 1e12) == 0
        assert subjects(node) == ["two", "one"]


@pytest.mark.parametrize(
    ("ours", "theirs", "before", "expected"),
    [
        ("a", "a", "b", {}),
        ("a", "b", "a", {"here": ("a", "b")}),
        ("b", "a", "a", {"there": ("a", "b")}),
        (None, "a", None, {"here": (None, "a")}),
        ("a", None, None, {"there": (None, "a")}),
        (None, "a", "a", {"there": ("a", None)}),
        ("a", None, "a", {"here": ("a", None)}),
        (None, "b", "a", {"here": (None, "b")}),
        ("b", None, "a", {"there": (None, "b")}),
        ("b", "c", "a", {"renamed": True}),
    ],
)  # fmt: skip
def test_who_wins(ours: str | None, theirs: str | None, before: str | None, expected: dict[str, Any]) -> None:
    def side(name: str, number: str | None) -> dict[str, str]:
        return {name: number} if number else {}

    for name in ("heads/dev", "tags/dev"):
        found = reconcile(side(name, ours), side(name, theirs), side(name, before), lambda *_: False)
        assert found.local.get(name) == (("b", "c") if "renamed" in expected else expected.get("here"))
        assert found.remote.get(name) == expected.get("there")
        assert bool(found.renamed) == ("renamed" in expected)


def test_main_goes_on_and_is_never_taken_away() -> None:
    main = "heads/main"
    # What both had is forgotten there, so that it cannot be seen that one comes from the other.
    away = reconcile({main: "a"}, {main: "z"}, {main: "a"}, lambda *_: False)
    assert (away.local, away.remote, away.renamed) == ({main: ("a", "z")}, {}, {})
    ahead = reconcile({main: "b"}, {main: "a"}, {main: "a"}, lambda one, other: (one, other) == ("b", "a"))
    assert (ahead.local, ahead.remote) == ({}, {main: ("a", "b")})
    lost = reconcile({main: "a"}, {}, {main: "a"}, lambda *_: False)
    assert (lost.local, lost.remote) == ({}, {main: (None, "a")})


# Prints the files of the kit's modules that the programs load.
LOADED = """
import sys
from lakehouse.catalog.hosted import __main__, serving
for name, one in sys.modules.items():
    if name.partition('.')[0] in {'lakehouse', 'plugins'} and getattr(one, '__file__', None):
        print(one.__file__)
"""


def test_the_modules_that_the_role_installs_are_enough(tmp_path: Path, cluster: Cluster) -> None:
    module = tmp_path / "module"
    for path in host_code.modules("lakehouse.catalog.hosted"):
        (module / path).parent.mkdir(parents=True, exist_ok=True)
        (module / path).write_bytes((ROOT / path).read_bytes())
    # A namespace has modules of this checkout, too: none of them may be needed.
    loaded = subprocess.run(
        [sys.executable, "-c", LOADED], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(module)},
    ).stdout.split()  # fmt: skip
    assert [path for path in loaded if not path.startswith(str(module))] == []
    done = subprocess.run(
        [*cluster.argv, "give"], input="{}\n", cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(module)},
    )  # fmt: skip
    assert json.loads(done.stdout.splitlines()[0]).keys() >= {"names"}, done.stderr
    with closing(cluster.store()) as node:
        entry = commit_catalog(node, "one")
    with serving(cluster, module) as said:
        served = f"HEAD is commit {entry.short} (one)"
        wait_for("it serves", lambda: said() == [served], seconds=patience.SECONDS)


def test_a_commit_that_is_not_there_is_said_once_and_served_when_it_is(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "node", past_commit="before")
    with closing(cluster.store()) as node, serving(cluster, ROOT) as said:
        entry = commit_catalog(node, "one")
        why = f"before: no commit, branch or tag of {cluster.repository}"
        missing = f"lakehouse_past_commit is not served yet: {why}"
        wait_for("it is said", lambda: said() == [missing], seconds=patience.SECONDS)
        node.references.add("tags/before", entry.id)
        served = [missing, f"before is commit {entry.short} (one)"]
        wait_for("it is served", lambda: said() == served, seconds=patience.SECONDS)


def test_who_waits_for_a_commit_is_well_until_it_is_there(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "node", past_commit="before")
    with closing(cluster.store()) as node:
        entry = commit(node, "one")
        with cluster.node("waits", {}) as (line, _):
            assert json.loads(line) == {"waits": f"before: no commit, branch or tag of {cluster.repository}"}
        node.references.add("tags/before", entry.id)
        with cluster.node("waits", {}) as (line, _):
            assert json.loads(line)["why"] == f"before is commit {entry.short}, and it is not served"


def test_the_clock_and_a_person_commit_what_a_database_holds(
    tmp_path: Path, copy: Callable[[str], Store]
) -> None:
    with metastore_database.server() as database, closing(copy("mine")) as mine:
        cluster = Cluster(tmp_path / "node", psql=database.argv)
        first = sync.call(cluster.node, "clock", {})
        assert (first["new"], first["counts"]["databases"]) == (True, 1)
        database.run(
            "INSERT INTO \"DBS\" VALUES (2, '', 'hdfs://lake/sales', 'sales', 'ann', 'USER', 'hive')"
        )
        own = sync.call(cluster.node, "commit", {"author": WHO, "message": "by hand"})
        assert sync.call(cluster.node, "clock", {})["commit"] == own["commit"]
        meet(mine, cluster)
        assert subjects(mine) == ["by hand", "the first commit"]
        # The copy knows what the last commit was made of: it need not read all of it again.
        assert checksums.read(mine)["commit"] == own["commit"]
        last = json.loads((cluster.repository.parent / "last.json").read_text())
        assert last["why"] == ""
        # A moment later the database is gone.
        cluster.settings.write_text(cluster.settings.read_text().replace(database.name, "nowhere"))
        with pytest.raises(LakehouseError, match='database "nowhere" does not exist'):
            sync.call(cluster.node, "clock", {})
        failed = json.loads((cluster.repository.parent / "last.json").read_text())
        assert failed["good"] == last["good"]
        assert "nowhere" in failed["why"]


def test_that_the_clock_cannot_open_its_repository_is_kept_for_those_who_look(cluster: Cluster) -> None:
    cluster.store().close()
    shutil.rmtree(cluster.repository / "objects")
    with cluster.node("clock", {}) as (line, _):
        said = json.loads(line)
    last = json.loads((cluster.repository.parent / "last.json").read_text())
    assert last["good"] is None
    assert said["why"] in last["why"]


def test_a_served_name_is_followed(cluster: Cluster) -> None:
    with closing(cluster.store()) as node:
        entry = commit_catalog(node, "one")
        following = FollowedCommit(cluster.repository, "HEAD")
        assert refusal(following()) == refused(entry, "drop_table")
        moved = commit_catalog(node, "two")
        assert refusal(following()) == refused(moved, "drop_table")


@contextmanager
def serving(cluster: Cluster, module: Path) -> Iterator[Callable[[], list[str]]]:
    """Serve a commit with the modules of a folder; what it said is what is yielded."""
    log = cluster.settings.with_name("said")
    with log.open("wb") as out, subprocess.Popen(
        [*cluster.argv, "serve"], stdout=out, stderr=subprocess.STDOUT, cwd=module,
        env={**os.environ, "PYTHONPATH": str(module)},
    ) as process:  # fmt: skip
        try:
            yield lambda: log.read_text(encoding="utf-8").splitlines()
        finally:
            process.kill()


def commit_catalog(store: Store, text: str) -> Entry:
    """Make a commit of a catalog with nothing in it."""
    batch, parent = Batch(store), store.head()
    folder = batch.add_tree({build.SETTINGS: (False, batch.add_blob(build.settings()))})
    note = batch.add_blob(json.dumps(text).encode())
    tree = batch.add_tree({build.CATALOG: (True, folder), "note.json": (False, note)})
    batch.flush()
    with store.locked():
        return store.record(tree, parent, WHO, 1000, text)


def refusal(handler: Any) -> str:
    with pytest.raises(MetaException) as found:
        handler.drop_table("a", "b", False)
    return str(found.value.message)
