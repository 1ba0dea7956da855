"""What the golden files leave out is found again, and they leave out all that they can."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.render import golden_files, rendering
from tests.render.golden_files import Difference

COMMON = {"etc/core-site.xml": "key\n", "etc/tz": "-> UTC\n"}
TREES = {
    "local": {
        **{f"one/{path}": text for path, text in COMMON.items()},
        "one/etc/address": "1\n",
        **{f"two/{path}": text for path, text in COMMON.items()},
        "two/etc/address": "2\n",
    },
    "three-node": {
        **{f"big/{path}": text for path, text in COMMON.items()},
        "big/etc/address": "3\n",
        "big/etc/more": "x\n",
    },
}


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


def test_a_host_is_stored_as_what_makes_it_different() -> None:
    full, differences = golden_files.pack(TREES)
    assert list(full) == ["three-node/big"]
    assert differences == {
        "local/one": Difference("three-node/big", {"etc/address": "1\n"}, ("etc/more",)),
        "local/two": Difference("local/one", {"etc/address": "2\n"}, ()),
    }
    assert golden_files.unpack(full, differences) == TREES


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    golden_files.write(lay(TREES, tmp_path / "rendered"), TREES, tmp_path / "golden")
    assert golden_files.unpack(*golden_files.read(tmp_path / "golden")) == TREES
    stored = golden_files.read_tree(tmp_path / "golden")
    assert [path for path in stored if path.startswith("local/")] == [
        "local/one/etc/address",
        "local/two/etc/address",
    ]


def test_a_change_of_every_host_is_a_change_of_few_files(tmp_path: Path) -> None:
    changed = {
        inventory: {path: text.replace("key", "other") for path, text in files.items()}
        for inventory, files in TREES.items()
    }
    for name, trees in {"before": TREES, "after": changed}.items():
        golden_files.write(lay(trees, tmp_path / f"{name}-rendered"), trees, tmp_path / name)
    before, after = (golden_files.read_tree(tmp_path / name) for name in ("before", "after"))
    assert before.keys() == after.keys()
    assert [path for path in before if before[path] != after[path]] == ["three-node/big/etc/core-site.xml"]


def test_the_golden_files_are_as_few_as_they_can_be() -> None:
    stored = golden_files.read()
    assert golden_files.pack(golden_files.unpack(*stored)) == stored, "next: make golden"


def test_a_file_that_all_hosts_share_is_stored_few_times() -> None:
    full, differences = golden_files.read()
    hosts = {**full, **{name: each.own for name, each in differences.items()}}
    paths = [f"{name}/{path}" for name, files in hosts.items() for path in files]
    assert len([path for path in paths if path.endswith("/core-site.xml")]) <= 8


@pytest.mark.parametrize("name", rendering.INVENTORIES)
def test_every_inventory_has_golden_files(name: str) -> None:
    assert golden_files.expected()[name]
