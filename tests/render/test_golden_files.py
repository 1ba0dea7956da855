"""What the golden files leave out is found again, and they leave out all that they can."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.render import golden_files, rendering
from tests.render.golden_files import Difference
from tests.trees import Tree

COMMON = {"etc/core-site.xml": "key\n", "etc/tz": "-> UTC\n"}
TREES = {
    "local": {
        **{f"node1/{path}": text for path, text in COMMON.items()},
        "node1/etc/address": "1\n",
        "node1/etc/more": "x\n",
        **{f"node2/{path}": text for path, text in COMMON.items()},
        "node2/etc/address": "2\n",
        **{f"node3/{path}": text for path, text in COMMON.items()},
        "node3/etc/address": "2\n",
    },
    "three-node": {f"node1/{path}": text for path, text in COMMON.items()},
}
CHANGE = "etc/core-site.xml"


def lay(trees: dict[str, dict[str, str]], root: Path) -> Path:
    """Write inventories as a rendering does."""
    for inventory, files in trees.items():
        for path, text in files.items():
            target = root / inventory / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if text.startswith("-> "):
                target.symlink_to(text[3:].strip())
            else:
                target.write_text(text, encoding="utf-8")
    return root


def test_a_host_is_stored_as_what_makes_it_different_from_another_of_its_inventory() -> None:
    full, differences = golden_files.pack(TREES)
    assert list(full) == ["local/node1", "three-node/node1"]
    assert differences == {
        "local/node2": Difference("local/node1", {"etc/address": "2\n"}, ("etc/more",)),
        "local/node3": Difference("local/node2", {}, ()),
    }
    assert golden_files.unpack(full, differences) == TREES


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    golden_files.write(lay(TREES, tmp_path / "rendered"), TREES, tmp_path / "golden")
    assert golden_files.unpack(*golden_files.read(tmp_path / "golden")) == TREES
    stored = golden_files.read_tree(tmp_path / "golden")
    assert [path for path in stored if path.startswith(("local/node2", "local/node3"))] == [
        "local/node2/etc/address"
    ]


def test_a_change_of_every_host_is_a_change_of_one_file_of_each_inventory(tmp_path: Path) -> None:
    changed = {
        inventory: {path: text.replace("key", "other") for path, text in files.items()}
        for inventory, files in TREES.items()
    }
    for name, trees in {"before": TREES, "after": changed}.items():
        golden_files.write(lay(trees, tmp_path / f"{name}-rendered"), trees, tmp_path / name)
    before, after = (golden_files.read_tree(tmp_path / name) for name in ("before", "after"))
    assert before.keys() == after.keys()
    assert [path for path in before if before[path] != after[path]] == [
        f"{inventory}/node1/{CHANGE}" for inventory in TREES
    ]


def test_the_golden_files_are_as_few_as_they_can_be() -> None:
    stored = golden_files.read()
    assert golden_files.pack(golden_files.unpack(*stored)) == stored, "next: make golden"
    assert golden_files.expected().keys() == {*rendering.GOLDEN}


@pytest.mark.parametrize("name", rendering.GOLDEN)
def test_a_change_of_any_file_of_any_host_is_noticed_and_named(name: str) -> None:
    golden = golden_files.expected()[name]
    assert golden
    assert golden_files.changes(name, golden) == []
    for path, text in golden.items():
        rest = {file: golden[file] for file in golden if file != path}
        for files in (rest, rest | {path: f"{text}more\n"}, rest | {path: text.removesuffix("\n")}):
            assert f"golden/{name}/{path}" in "\n".join(golden_files.changes(name, files)), path
        assert golden_files.changes(name, rest | {path: f"{text}more\n"})[-1] == "+more"
    assert f"+++ rendered/{CHANGE}" in golden_files.changes(name, {**golden, CHANGE: "new\n"})


def test_a_changed_variable_or_template_is_printed_for_every_host_that_has_the_file(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "kit")
    variables, old, new = (
        "roles/trino/vars/main.yml",
        "MethodRecompilationCutoff=10000",
        "MethodRecompilationCutoff=1",
    )
    text = (tree.root / variables).read_text(encoding="utf-8")
    assert text.count(old) == 1
    (tree.root / variables).write_text(text.replace(old, new), encoding="utf-8")
    tree.insert("templates/spark-env.sh.j2", "", "KIT_TEST=1\n")
    tree.play("render", "-e", f"lakehouse_render_dir={tmp_path / 'files'}", *rendering.NO_SECRETS)
    lines = golden_files.changes("tests", golden_files.read_tree(tmp_path / "files"))
    expected = golden_files.expected()["tests"]
    paths = [path for path in expected if path.endswith(("/jvm.config", "/spark-env.sh"))]
    assert len(paths) == 6
    assert [line for line in lines if line.startswith("+++ ")] == [
        f"+++ rendered/{path}" for path in sorted(paths)
    ]
    for line in (f"--XX:Per{old}", f"+-XX:Per{new}", "+KIT_TEST=1"):
        assert lines.count(line) == 3, lines
