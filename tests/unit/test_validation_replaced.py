"""What one file of an inventory takes from another is said in a line that names both."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader

from lakehouse import run
from lakehouse.validation.duplicates import twice
from lakehouse.validation.replaced import replaced
from tests.render import rendering


def found(root: Path, **files: str) -> list[str]:
    """Write files (``__`` for a slash in their names) and return the findings."""
    for name, text in files.items():
        path = root / f"{name.replace('__', '/')}.yml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return [str(one) for one in replaced(root, DataLoader())]


def test_a_dict_that_loses_keys(tmp_path: Path) -> None:
    assert found(
        tmp_path,
        group_vars__all__nodes="hdfs_site: {dfs.replication: 2, dfs.heartbeat.interval: 1s, dfs.umask: 2}",
        group_vars__all__tuning="hdfs_site: {dfs.replication: 2}",
    ) == [
        "WARN vars.replaced all: hdfs_site of group_vars/all/tuning.yml replaces that of "
        "group_vars/all/nodes.yml, without dfs.heartbeat.interval and 1 more: "
        "say all of it in group_vars/all/tuning.yml, and take it out of group_vars/all/nodes.yml"
    ]


def test_a_value_of_a_host(tmp_path: Path) -> None:
    [line] = found(tmp_path, host_vars__n1__a="trino_heap_mb: 2048", host_vars__n1__b="trino_heap_mb: 1024")
    assert (
        "vars.replaced n1: trino_heap_mb of host_vars/n1/b.yml replaces that of host_vars/n1/a.yml: " in line
    )


def test_a_secret_is_not_shown(tmp_path: Path) -> None:
    [line] = found(
        tmp_path,
        group_vars__all__cluster="vault_metastore_password: hush-hush",
        group_vars__all__vault="vault_metastore_password: another-word",
    )
    assert "hush" not in line
    assert "another" not in line


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"group_vars__all__a": "trino_heap_mb: 1024", "group_vars__all__b": "trino_heap_mb: 1024"},
        # That a group or a host has the last word is what they are for.
        {"group_vars__all__a": "trino_heap_mb: 1024", "group_vars__trino_workers": "trino_heap_mb: 2048"},
        {"group_vars__all": "trino_heap_mb: 1024", "host_vars__n1": "trino_heap_mb: 2048"},
        {"group_vars__all__empty": "---\n", "group_vars__all__b": "trino_heap_mb: 1024"},
    ],
)
def test_what_replaces_nothing(tmp_path: Path, files: dict[str, str]) -> None:
    assert found(tmp_path, **files) == []


@pytest.mark.parametrize("path", rendering.INVENTORIES.values(), ids=str)
def test_the_kits_own_inventories_say_everything_once(path: Path) -> None:
    assert replaced(rendering.REPOSITORY / path, DataLoader()) == []


def test_a_run_says_it_and_goes_on(tmp_path: Path) -> None:
    copied = rendering.copy(Path("inventory/local"), tmp_path)
    (copied / "group_vars/all/tuning.yml").write_text(
        "hdfs_datanode_hdfs_site: {dfs.datanode.handler.count: 20}\n", encoding="utf-8"
    )
    done = subprocess.run(
        [run.program("ansible-playbook"), "-i", str(copied), "playbooks/validate.yml"],
        cwd=run.ROOT, env=os.environ | {"ANSIBLE_NOCOLOR": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        "WARN vars.replaced all: hdfs_datanode_hdfs_site of group_vars/all/tuning.yml replaces that of "
        "group_vars/all/nodes.yml, without dfs.heartbeat.interval: " in done.stdout + done.stderr
    )


def test_names_that_stand_twice_are_found_at_every_depth_and_values_are_not_shown(tmp_path: Path) -> None:
    files = {
        "hosts.yml": "all:\n  hosts:\n    a:\n    b:\n    a:\n",
        "group_vars/all/lists.yml": "catalogs:\n  - name: x\n    name: hunter2\n",
        "group_vars/all/vault.yml": "$ANSIBLE_VAULT;1.1;AES256\n6162\n",
        "group_vars/all/tagged.yml": "secret: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  6162\n",
        "group_vars/all/broken.yml": "a: [\n",
        "group_vars/all/empty.yml": "",
        "notes.yml": "a: 1\na: 2\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert [finding.fact for finding in twice(tmp_path, [tmp_path / "hosts.yml"])] == [
        "hosts.yml has a twice in one place (lines 3 and 5)",
        "group_vars/all/lists.yml has name twice in one place (lines 2 and 3)",
    ]
