"""The callback that loads plugins before tasks are forked names plugins that there are, and can be loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible.plugins import loader
from ansible.utils.collection_loader import AnsibleCollectionConfig

from plugins.callback import preload

ROOT = Path(__file__).parents[2]
OWN = {path.stem for path in (ROOT / "plugins" / "action").glob("*.py")}
# Ansible in a Python that does not have the kit's package.
ELSEWHERE = """
import sys
from ansible.cli import playbook
sys.modules["lakehouse"] = None
playbook.main(["ansible-playbook", "-i", "one,", "-c", "local", sys.argv[1]])
"""

if not AnsibleCollectionConfig.collection_finder:
    loader.init_plugin_loader()


def test_every_action_of_the_kit_is_among_them() -> None:
    assert OWN
    assert set(preload.ACTIONS) >= OWN


@pytest.mark.parametrize("name", sorted(set(preload.ACTIONS) - OWN))
def test_an_action_of_ansible_is_found(name: str) -> None:
    assert loader.action_loader.get_with_context(name, class_only=True).object


@pytest.mark.parametrize("name", preload.CONNECTIONS)
def test_a_connection_is_found(name: str) -> None:
    assert loader.connection_loader.get_with_context(name, class_only=True).object


def test_another_python_than_the_kits_is_one_line(tmp_path: Path) -> None:
    play = tmp_path / "play.yml"
    play.write_text("- {hosts: all, gather_facts: false, tasks: [lakehouse_validate_inventory: ]}\n")
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, str(play)], cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "ANSIBLE_LOCAL_TEMP": str(tmp_path / "tmp")}, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: no package 'lakehouse' here")
    assert done.stderr.endswith("; next: scripts/bootstrap, then .venv/bin/ansible-playbook\n")
