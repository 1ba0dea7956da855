"""What an inventory leaves unsaid has a default, entry by entry in the tables."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lakehouse import run
from lakehouse.model import defaults, inventory

HOSTS = """\
all:
  hosts:
    n1:
    n2: {lakehouse_data_dir: /disk2}
    n3: {lakehouse_datanode_dirs: [/disk3], lakehouse_ports: {trino_http: 9999}}
  vars:
    ansible_connection: local
    lakehouse_cluster: of-the-test
    lakehouse_cluster_id: CID-of-the-test
    lakehouse_nameservice: lake
    lakehouse_database: {password: a-word-of-the-test}
    lakehouse_users: "{{ {'spark': 'compute'} }}"
    my_url: "http://n1:{{ lakehouse_ports.trino_http }}"
"""
PLAY = """\
- hosts: n1
  gather_facts: false
  roles: [lakehouse]
  tasks:
    - ansible.builtin.assert:
        that:
          - lookup('effective', 'lakehouse_datanode_dirs', host=item.key) == [item.value]
      loop:
        - {key: n1, value: /var/lib/lakehouse/hdfs/datanode}
        - {key: n2, value: /disk2/hdfs/datanode}
        - {key: n3, value: /disk3}
    - ansible.builtin.assert:
        that:
          - lakehouse_users.spark == 'compute'
          - lakehouse_users.hdfs == 'hdfs'
          - lakehouse_ports.trino_http == 8090
          - lakehouse_database.name == 'metastore'
          - lakehouse_database.password == 'a-word-of-the-test'
          - my_url == 'http://n1:8090'
"""


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    path = tmp_path / "hosts.yml"
    path.write_text(HOSTS, encoding="utf-8")
    return path


def test_a_table_that_is_said_in_full_is_as_it_was_said() -> None:
    full = {name: 20000 + number for number, name in enumerate(defaults.defaults()["lakehouse_ports"])}
    assert defaults.completed({"lakehouse_ports": full})["lakehouse_ports"] == full


def test_an_inventory_says_its_differences_alone(hosts: Path) -> None:
    _, second, third = inventory.load(hosts).hosts
    assert second.variables["lakehouse_datanode_dirs"] == ["/disk2/hdfs/datanode"]
    assert third.variables["lakehouse_datanode_dirs"] == ["/disk3"]
    assert third.variables["lakehouse_ports"] == defaults.defaults()["lakehouse_ports"] | {"trino_http": 9999}
    assert third.variables["my_url"] == "http://n1:9999"
    # One that is a template is completed as well.
    assert third.variables["lakehouse_users"] == defaults.defaults()["lakehouse_users"] | {"spark": "compute"}


def test_a_play_sees_the_same_of_every_host(hosts: Path, tmp_path: Path) -> None:
    play = tmp_path / "play.yml"
    play.write_text(PLAY, encoding="utf-8")
    program = run.program("ansible-playbook")
    environment = os.environ | {"ANSIBLE_CONFIG": str(run.ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}
    done = subprocess.run(
        [program, "-i", hosts, play],
        cwd=run.ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
