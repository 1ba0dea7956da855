"""The callback that says where the time of a playbook goes, run by Ansible itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PLAYBOOK = """
- name: First play
  hosts: all
  gather_facts: false
  tasks:
    - name: Wait
      ansible.builtin.pause:
        seconds: 0
    - name: Only one
      ansible.builtin.set_fact:
        value: "{{ item }}"
      loop: [1, 2]
      when: inventory_hostname == 'one'
    - name: Same name
      ansible.builtin.assert:
        that: false
      ignore_errors: true
    - name: Same name
      ansible.builtin.assert:
        that: inventory_hostname == 'one'
- name: Second play
  hosts: one
  gather_facts: false
  roles:
    - quiet
"""


def run(folder: Path, timings: Path | None) -> subprocess.CompletedProcess[str]:
    (folder / "playbook.yml").write_text(PLAYBOOK)
    tasks = folder / "roles" / "quiet" / "tasks"
    tasks.mkdir(parents=True)
    (tasks / "main.yml").write_text(
        "- name: Say nothing\n  ansible.builtin.meta: noop\n- ansible.builtin.set_fact: {a: 1}\n"
    )
    environment = {
        **os.environ,
        "ANSIBLE_CALLBACK_PLUGINS": str(ROOT / "plugins/callback"),
        "ANSIBLE_CALLBACKS_ENABLED": "timings",
        "ANSIBLE_LOCAL_TEMP": str(folder / "tmp"),
    }
    environment.pop("LAKEHOUSE_TIMINGS", None)
    if timings:
        environment["LAKEHOUSE_TIMINGS"] = str(timings)
    command = [sys.executable, "-m", "ansible", "playbook", "-i", "one,two,", "-c", "local", "playbook.yml"]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("timings")
    result = run(folder, folder / "bench" / "timings.json")
    assert "failed=1" in result.stdout, result.stdout + result.stderr
    content: dict[str, Any] = json.loads((folder / "bench" / "timings.json").read_text())
    return content


def test_plays_hold_roles_and_roles_hold_tasks(report: dict[str, Any]) -> None:
    assert report["playbook"] == "playbook.yml"
    assert [play["name"] for play in report["plays"]] == ["First play", "Second play"]
    assert [role["name"] for play in report["plays"] for role in play["roles"]] == ["-", "quiet"]


def test_each_host_has_its_outcome_and_tasks_of_one_name_stay_apart(report: dict[str, Any]) -> None:
    tasks = report["plays"][0]["roles"][0]["tasks"]
    outcomes = [
        (task["name"], {host: run["status"] for host, run in task["hosts"].items()}) for task in tasks
    ]
    assert outcomes[1:] == [
        ("Only one", {"one": "ok", "two": "skipped"}),
        ("Same name", {"one": "ignored", "two": "ignored"}),
        ("Same name", {"one": "ok", "two": "failed"}),
    ]
    assert tasks[1]["path"] == "playbook.yml:9"


def test_seconds_fit_into_each_other(report: dict[str, Any]) -> None:
    for play in report["plays"]:
        assert play["seconds"] <= report["seconds"]
        for role in play["roles"]:
            assert role["seconds"] == pytest.approx(sum(task["seconds"] for task in role["tasks"]), abs=0.01)


def test_nothing_is_written_unless_asked_for(tmp_path: Path) -> None:
    result = run(tmp_path, None)
    assert "failed=1" in result.stdout, result.stdout + result.stderr
    assert not list(tmp_path.glob("**/*.json"))


def test_a_file_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = run(tmp_path, tmp_path / "file" / "timings.json")
    assert "cannot be written" in result.stderr
