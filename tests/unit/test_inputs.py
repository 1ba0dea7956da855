"""The digest of what the roles are given changes with each of them, and with nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lakehouse.model import inputs

HOSTS: dict[str, dict[str, Any]] = {
    "n1": {
        "ansible_host": "10.0.0.1",
        "ansible_check_mode": False,
        "spark_worker_cores": "{{ node_cores }}",
        "lakehouse_readers": ["ann"],
        "__node_preflight": {"lines": []},
        "ansible_facts": {"memtotal_mb": 8000, "processor_vcpus": 2, "lakehouse_settled": True},
    },
    "n2": {"ansible_host": "10.0.0.2", "ansible_facts": {"memtotal_mb": 8000}},
}


def evaluate(host: str, value: Any) -> Any:
    """Stand for Ansible's templates."""
    return f"{host}: {value}"


@pytest.fixture
def kit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kit with one role, and an inventory beside it."""
    for name in ("kit/roles/spark/tasks", "kit/docs", "inventory/group_vars"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "kit/roles/spark/tasks/main.yml").write_text("[]\n", encoding="utf-8")
    (tmp_path / "kit/versions.yml").write_text("{}\n", encoding="utf-8")
    (tmp_path / "inventory/hosts.yml").write_text("all: {}\n", encoding="utf-8")
    monkeypatch.setattr(inputs, "ROOT", tmp_path / "kit")
    return tmp_path


def digest(kit: Path, host: str = "n1", **changes: Any) -> str:
    hosts = {**HOSTS, host: HOSTS[host] | changes}
    return inputs.files(kit / "inventory") + inputs.variables(hosts, evaluate)


@pytest.mark.parametrize(
    "changes",
    [
        {"ansible_host": "10.0.0.9"},
        {"spark_worker_cores": 3},
        {"lakehouse_readers": ["ann", "ben"]},
        {"spark_defaults": {}},
        {"ansible_facts": HOSTS["n1"]["ansible_facts"] | {"memtotal_mb": 9000}},
        {"ansible_facts": HOSTS["n1"]["ansible_facts"] | {"lakehouse_members": ["ben"]}},
    ],
    ids=["address", "value", "entry", "variable", "memory", "members"],
)
def test_each_input_of_any_host_changes_it(kit: Path, changes: dict[str, Any]) -> None:
    assert digest(kit, **changes) != digest(kit)


@pytest.mark.parametrize(
    "changes",
    [
        {"ansible_check_mode": True},
        {"__node_preflight": {"lines": ["x"]}},
        {"lakehouse_run": "1"},
        {"lakehouse_restarts": False},
        {"ansible_facts": HOSTS["n1"]["ansible_facts"] | {"lakehouse_settled": False}},
    ],
    ids=["mode", "result", "run", "restarts", "other fact"],
)
def test_what_one_run_is_told_does_not(kit: Path, changes: dict[str, Any]) -> None:
    assert digest(kit, **changes) == digest(kit)


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        ("kit/roles/spark/tasks/main.yml", True),
        ("kit/roles/spark/tasks/new.yml", True),
        ("kit/versions.yml", True),
        ("inventory/hosts.yml", True),
        ("inventory/group_vars/all.yml", True),
        ("kit/docs/page.md", False),
        ("kit/roles/__pycache__", False),
        ("inventory/.git", False),
    ],
)
def test_files_count_where_roles_read_them(kit: Path, path: str, counts: bool) -> None:
    before = digest(kit)
    (kit / path).write_text("other\n", encoding="utf-8")
    assert (digest(kit) != before) is counts


def test_a_folder_that_is_too_large_equals_nothing(kit: Path) -> None:
    with (kit / "kit" / "roles" / "large").open("wb") as stream:
        stream.truncate(17 << 20)
    assert digest(kit) != digest(kit)


def test_the_place_of_a_checkout_does_not_count(kit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest(kit, inventory_dir=str(kit))
    moved = kit.rename(kit.with_name("moved"))
    monkeypatch.setattr(inputs, "ROOT", moved / "kit")
    assert digest(moved, inventory_dir=str(moved)) == before


def test_another_bill_of_materials_counts(kit: Path) -> None:
    bill = kit / "kit" / "build"
    bill.mkdir()
    digests = set()
    for text in ("a", "b"):
        (bill / "next.yml").write_text(text, encoding="utf-8")
        digests.add(inputs.files(kit / "inventory", "build/next.yml"))
    assert len(digests) == 2


def test_the_result_of_a_lookup_counts(kit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = {"password": "{{ lookup('ansible.builtin.env', 'PASSWORD') }}"}
    before = digest(kit, **changes)
    assert digest(kit, **changes) == before
    monkeypatch.setattr("tests.unit.test_inputs.evaluate", lambda *_: "another")
    assert digest(kit, **changes) != before


def test_a_lookup_that_takes_what_a_role_knows_equals_nothing(
    kit: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ValueError

    monkeypatch.setattr("tests.unit.test_inputs.evaluate", fails)
    changes = {"password": "{{ lookup('x', role_variable) }}"}
    assert digest(kit, **changes) != digest(kit, **changes)
