"""Desired state is a commit of a branch: merge, cherry-pick and revert, as a person calls them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lakehouse import cli, shared_options
from lakehouse.catalog import build, documents, fsck, objects
from lakehouse.catalog.names import Name
from lakehouse.catalog.overlay import Batch
from lakehouse.catalog.store import Store
from lakehouse.cluster_catalog import merging
from lakehouse.shared_options import MergeOptions
from tests.unit.catalog_states import commit, day, days, table, tree

P = "hive.d.t/ds=2"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.made(tmp_path / "history.git")) as made:
        yield made


def ask(store: Store, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Run a verb; return its exit code, what it said, and its last line."""
    code = cli.main(["catalog", *words, "--store", str(store.path)])
    out, err = capsys.readouterr()
    return code, out, err.strip().splitlines()[-1] if err else ""


def asked(store: Store, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    return dict(json.loads(ask(store, capsys, *words, "--json")[1]))


def state(store: Store) -> tuple[list[str], dict[str, str]]:
    """Return what is in a repository: all objects, and where branches are."""
    files = (store.path / "objects").rglob("*")
    return sorted(one.name for one in files if one.is_file()), store.references.names("heads")


def test_what_was_merged_for_a_stack_is_served_beside_it(store: Store) -> None:
    made = commit(store, {"d": {"t": table()}})
    for target, verb in ((shared_options.COMPOSE, "serve"), (shared_options.MACHINES, "restore")):
        assert merging._next_verb(MergeOptions("inv", target), made, "") == f"catalog {verb} {made.short}"


def test_a_merge_has_two_parents_on_a_branch_of_its_own(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(store, {"d": {"t": table()}})
    dev = commit(store, {"d": {"t": table(), "dev": table()}}, "dev")
    last = commit(store, {"d": {"t": table("a", "b", "c")}})
    code, out, line = ask(store, capsys, "merge", "dev", "--author", "Ann")
    made = store.resolve(f"merge-{dev.short}")
    assert (code, out) == (0, "+ table hive.d.dev: hive, 2 columns\n")
    assert made.parents == (last.id, dev.id)
    assert (made.author, made.subject) == ("Ann <>", "merge dev: dev")
    assert made.facts["Merged"] == dev.id
    assert made.time >= max(last.time, dev.time)
    assert line.startswith(f"catalog merge {store.path}: OK; {made.short} on merge-{dev.short}, 1 change, ")
    assert line.endswith(f"; next: .venv/bin/lakehouse catalog restore {made.short} --store {store.path}")
    assert store.tree(made.tree) == store.tree(
        tree(Batch(store), {"d": {"t": table("a", "b", "c"), "dev": table()}})
    )
    # What the metastore has been is not touched.
    assert store.head() == last
    assert fsck.check(store).faults == []


def test_every_commit_that_a_merge_comes_from_is_checked(store: Store) -> None:
    commit(store, {"d": {}})
    dev = commit(store, {"d": {"dev": table()}}, "dev")
    commit(store, {"d": {"t": table()}})
    assert cli.main(["catalog", "merge", "dev", "--into", "all", "--store", str(store.path)]) == 0
    store.references.remove("heads/dev")
    path = store.path / "objects" / dev.id[:2] / dev.id[2:]
    path.unlink()
    [fault] = fsck.check(store).faults
    assert (fault.path, dev.id in fault.why) == (dev.short, True)


def test_a_branch_that_has_all_of_ours_is_taken_as_it_is_and_merged_once(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(store, {"d": {}})
    dev = commit(store, {"d": {"t": table()}}, "dev")
    code, _, line = ask(store, capsys, "merge", "dev", "--into", "desired")
    assert (code, store.references.names("heads")["desired"]) == (0, dev.id)
    assert "fast-forward" in line
    code, out, line = ask(store, capsys, "merge", "dev", "--into", "desired")
    assert (code, out) == (0, "")
    assert f"nothing to merge: {dev.short} has all of {dev.short}" in line
    code, _, line = ask(store, capsys, "merge", "HEAD")
    assert (code, "nothing to merge" in line) == (0, True)
    assert list(store.references.names("heads")) == ["desired", "dev", "main"]


def test_a_branch_can_have_what_the_metastore_has_become_and_be_merged_again(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(store, {"d": {}})
    commit(store, {"d": {"t": table(parameters={"k": "1"})}}, "dev")
    commit(store, {"d": {"u": table()}})
    assert ask(store, capsys, "merge", "main", "--into", "dev")[0] == 0
    commit(store, {"d": {"t": table(parameters={"k": "2"}), "u": table()}}, "dev")
    last = commit(store, {"d": {"u": table(), "v": table()}})
    found = asked(store, capsys, "merge", "dev", "--into", "desired")
    assert [one["table"] for one in found["changes"]] == ["t"]
    assert found["base"] == store.commit(last.parents[0]).id


def test_conflicts_are_lines_and_nothing_is_written(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    base = commit(store, {"d": {"t": table(partitions=days(1))}})
    dev = commit(store, {"d": {"t": table(partitions=days(1) | day(2, location="y"))}}, "dev")
    commit(store, {"d": {"t": table(partitions=days(1) | day(2, location="x"))}})
    before = state(store)
    code, out, line = ask(store, capsys, "merge", "dev")
    assert (code, out) == (1, f"{P}: location: ours x, theirs y (base none)\n")
    assert line.endswith(f"catalog diff {base.short} {dev.short} --store {store.path}")
    found = asked(store, capsys, "merge", "dev")
    assert found["exit"] == 1
    assert found["commit"] is None
    assert found["conflicts"] == [
        {
            "kind": "partition", "catalog": "hive", "database": "d", "table": "t", "partition": "ds=2",
            "field": "location", "base": None, "ours": "x", "theirs": "y",
        }
    ]  # fmt: skip
    [finding] = found["findings"]
    assert finding["code"] == "catalog.conflict"
    assert finding["what"] == "1 conflict, nothing is written; --ours or --theirs decides them all"
    assert state(store) == before
    found = asked(store, capsys, "merge", "dev", "--theirs")
    assert found["exit"] == 0
    [change] = found["changes"]
    assert (change["before"], change["after"]) == ("x", "y")


def test_a_change_goes_to_another_line_alone(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    commit(store, {"d": {"t": table("a")}})
    picked = commit(store, {"d": {"t": table("a", "b")}})
    last = commit(store, {"d": {"t": table("a", "b"), "u": table()}})
    store.references.add("heads/old", store.resolve("HEAD~2").id)
    code, out, _ = ask(store, capsys, "cherry-pick", picked.short, "--into", "old", "-m", "wanted there, too")
    made = store.resolve("old")
    assert (code, out) == (0, "~ table hive.d.t: column b: none -> int\n")
    assert (made.subject, made.facts["Picked"], len(made.parents)) == ("wanted there, too", picked.id, 1)
    code, _, line = ask(store, capsys, "cherry-pick", picked.short)
    assert (code, "nothing to cherry-pick" in line) == (0, True)
    assert store.head() == last


def test_a_change_is_taken_back_and_those_after_it_stay(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(store, {"d": {"t": table("a"), "gone": table()}})
    wrong = commit(store, {"d": {"t": table("a", "b"), "new": table()}})
    last = commit(store, {"d": {"t": table("a", "b", "c"), "new": table()}})
    code, out, line = ask(store, capsys, "revert", "HEAD~1")
    made = store.resolve(f"revert-{wrong.short}")
    assert (code, made.facts["Reverted"], made.parents) == (0, wrong.id, (last.id,))
    assert made.tree == tree(Batch(store), {"d": {"t": table("a", "c"), "gone": table()}})
    assert [one.partition(":")[0] for one in out.splitlines()] == [
        "+ table hive.d.gone", "- table hive.d.new", "~ table hive.d.t",
    ]  # fmt: skip
    # A table has to leave the catalog.
    assert line.endswith(f"catalog restore {made.short} --drop --store {store.path}")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["merge", "elsewhere"], "elsewhere: no commit, branch or tag of"),
        (["revert", "HEAD~7"], "no more than 1 commit before"),
        (["cherry-pick", "HEAD~1"], "is the first commit: nothing is before it"),
        (["revert", "HEAD~1"], "is the first commit: nothing is before it"),
        (["revert", "HEAD", "--into", "main"], "--into main: main is what the metastore has been"),
        (["revert", "HEAD", "--into", "a/b"], "a/b: letters, digits"),
        (["revert", "HEAD", "--author", "<>x"], "--author <>x: as in"),
    ],
)
def test_what_cannot_be_is_one_line_and_changes_nothing(
    store: Store, capsys: pytest.CaptureFixture[str], words: list[str], why: str
) -> None:
    commit(store, {"d": {}})
    commit(store, {"d": {"t": table()}})
    before = store.references.names("heads")
    code, out, line = ask(store, capsys, *words)
    assert (code, out, why in line) == (64, "", True), line
    assert store.references.names("heads") == before


def test_a_branch_of_an_earlier_try_is_not_gone_on_with_by_chance(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(store, {"d": {}})
    last = commit(store, {"d": {"t": table()}})
    assert ask(store, capsys, "revert", "HEAD")[0] == 0
    code, _, line = ask(store, capsys, "revert", "HEAD")
    assert (code, f"revert-{last.short} is there already; --into" in line) == (64, True)


@pytest.mark.parametrize("what", ["file", "commit"])
def test_a_damaged_history_is_one_line_with_the_next_command(
    store: Store, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    base = commit(store, {"d": {"t": table(parameters={"k": "0"})}})
    commit(store, {"d": {"t": table(parameters={"k": "1"})}}, "dev")
    commit(store, {"d": {"t": table(parameters={"l": "1"})}})
    place = objects.place(store, base.tree, Name("hive", "d", "t"))
    number = base.id if what == "commit" else store.tree(str(place))[build.TABLE]
    path = store.path / "objects" / number[:2] / number[2:]
    whole = path.read_bytes()
    path.chmod(0o644)
    for content in (whole[: len(whole) // 2], b""):
        path.write_bytes(content)
        code, out, line = ask(store, capsys, "merge", "dev")
        assert (code, out) == (2, "")
        assert "damaged" in line
        assert line.endswith("next: .venv/bin/lakehouse catalog fsck")
    path.unlink()
    code, _, line = ask(store, capsys, "merge", "dev")
    assert (code, f"object {number} is missing" in line) == (2, True), line
    assert list(store.references.names("heads")) == ["dev", "main"]


def test_a_commit_in_another_form_is_refused(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    commit(store, {"d": {}})
    batch = Batch(store)
    root = build.Folder()
    root.put((build.CATALOG, build.SETTINGS), batch.add_blob(documents.pretty({"format": 7})))
    made = root.write(batch)
    batch.flush()
    with store.locked():
        store.references.add("heads/newer", store.resolve("HEAD").id)
        store.record(made, store.head("newer"), "a <a@example.org>", 1_900_000_000, "newer\n", "newer")
    commit(store, {"d": {"t": table()}})
    code, _, line = ask(store, capsys, "merge", "newer")
    assert (code, "the commit's form is 7, and this program knows 1" in line) == (2, True)
