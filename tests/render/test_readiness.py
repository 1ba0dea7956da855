"""A play and `lakehouse restart` ask a service the same questions: those of its row in services.yml."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from ansible.errors import AnsibleLookupError

from lakehouse import run
from lakehouse.model import inventory, placement, play, readiness, services
from lakehouse.model.placement import Cluster
from lakehouse.remote.probing import Probe, Session, Shell
from lakehouse.rolling import ready, restart
from lakehouse.rolling.facts import Living
from lakehouse.rolling.steps import Step
from tests.render import rendering

# In a role, or as the row of a unit in one.
NAMED = re.compile(r"query\('ready_of', '(\w+)'|^    service: (\w+)$", re.MULTILINE)
PLAY = """\
- hosts: all
  gather_facts: false
  roles: [lakehouse]
  tasks:
    - ansible.builtin.copy:
        dest: "{{ folder }}/{{ inventory_hostname }}.json"
        mode: "0600"
        content: "{{ {'alone': alone, 'joined': joined, 'settled': settled, 'gate': gate,
                      'announce': announce} | to_json }}"
      delegate_to: localhost
      connection: local
      vars:
        alone: >-
          {%- set found = {} -%}
          {%- for name in names[inventory_hostname] -%}
          {%- set _ = found.update({name: query('ready_of', name)}) -%}
          {%- endfor -%}
          {{ found }}
        joined: >-
          {%- set found = {} -%}
          {%- for name in names[inventory_hostname] -%}
          {%- set _ = found.update({name: query('ready_of', name, joined=true)}) -%}
          {%- endfor -%}
          {{ found }}
        settled: >-
          {%- set found = {} -%}
          {%- for name in names[inventory_hostname] -%}
          {%- set _ = found.update({name: query('ready_of', name, settled=true)}) -%}
          {%- endfor -%}
          {{ found }}
        gate: >-
          {%- set found = {} -%}
          {%- for name in names[inventory_hostname] -%}
          {%- set _ = found.update({name: query('gate_of', name)}) -%}
          {%- endfor -%}
          {{ found }}
        announce: >-
          {%- set found = {} -%}
          {%- for name in names[inventory_hostname] -%}
          {%- set _ = found.update({name: query('announce_of', name)}) -%}
          {%- endfor -%}
          {{ found }}
"""
# What the tests' inventory switches off is asked, too.
ASKED = services.load().services.values()
Probes = dict[str, dict[str, list[dict[str, Any]]]]


def run_play(folder: Path, names: dict[str, list[str]], source: Path) -> subprocess.CompletedProcess[str]:
    """Run the play on an inventory; it writes what each host is asked."""
    playbook = folder / "asked.yml"
    playbook.write_text(PLAY, encoding="utf-8")
    variables = json.dumps({"names": names, "folder": str(folder)})
    argv = [run.program("ansible-playbook"), "-i", str(source), str(playbook), "-e", variables]
    environment = os.environ | {
        "ANSIBLE_CONFIG": str(rendering.REPOSITORY / "ansible.cfg"),
        "ANSIBLE_NOCOLOR": "1",
    }
    return subprocess.run(
        argv, cwd=rendering.REPOSITORY, env=environment, capture_output=True, text=True, check=False
    )


def of(row: services.Service, host: inventory.Host) -> bool:
    """Whether a host asks a service: its own, or the NameNode, which clients wait for."""
    return bool(host.groups.intersection(row.groups)) or row.name == "namenode"


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return placement.read(inventory.load("tests/inventory"))


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory, cluster: Cluster) -> dict[str, Probes]:
    """What a play asks, by host, list and service."""
    folder = tmp_path_factory.mktemp("asked")
    names = {host.name: [row.name for row in ASKED if of(row, host)] for host in cluster.hosts}
    done = run_play(folder, names, Path("tests/inventory"))
    assert done.returncode == 0, done.stdout + done.stderr
    return {host.name: json.loads((folder / f"{host.name}.json").read_text()) for host in cluster.hosts}


@pytest.mark.parametrize("service", services.load().services)
def test_a_play_asks_what_the_row_says(service: str, cluster: Cluster, asked: dict[str, Probes]) -> None:
    row = services.load().services[service]
    for host in (host for host in cluster.hosts if of(row, host)):
        for part, questions in (
            ("alone", readiness.ready(row, alone=True)),
            ("joined", readiness.ready(row, alone=False)),
            ("settled", row.settled),
        ):
            probes = list(readiness.probes(cluster, row, questions, host))
            assert asked[host.name][part][service] == probes
        assert asked[host.name]["gate"][service] == list(readiness.gate(cluster, row, host))


def test_a_play_and_restart_tell_a_datanode_the_same(
    cluster: Cluster, asked: dict[str, dict[str, dict[str, list[str]]]]
) -> None:
    living = Living(cluster, cast("Session", None))
    for host in cluster.running("datanodes"):
        told = asked[host.name]["announce"]
        assert {name for name, words in told.items() if words} == {"datanode"}
        step = Step("datanode", "hdfs-datanode", host.name, "")
        assert shlex.join(told["datanode"][4:]) in restart.script(living, step)
        assert told["datanode"][:4] == ["runuser", "-u", "dfsadmin", "--"]
        assert f"{host.name}:19867" in told["datanode"]


@pytest.mark.parametrize("service", services.load().services)
def test_the_commands_ask_the_same_questions_over_their_own_connections(
    service: str, cluster: Cluster, asked: dict[str, Probes]
) -> None:
    row = services.load().services[service]
    for host in (host for host in cluster.hosts if of(row, host)):
        probes = asked[host.name]["joined"][service]
        questions = list(ready.questions_of(cluster, service, host))
        assert len(questions) == len(probes)
        for question, probe in zip(questions, probes, strict=True):
            if isinstance(question, Shell):
                assert question.host == host.name
                assert "select '" in " ".join(probe["argv"])
                assert "runuser" in question.script
            else:
                assert isinstance(question, Probe)
                assert question.probe == probe


def test_a_host_in_maintenance_counts_for_no_play_that_would_wait_for_it(cluster: Cluster) -> None:
    """Preflight refuses a play over such a host; a command waits for the others."""
    row = services.load().services["spark_master"]
    [host] = cluster.running("spark_master")
    workers = [worker.name for worker in cluster.running("spark_workers")]
    away = replace(cluster, away=frozenset(set(workers[-1:])))
    [probe] = readiness.probes(away, row, row.settled, host)
    assert probe["at_least"] == len(workers) - 1
    assert "equals" not in probe


def test_an_unknown_service_is_one_line_with_the_nearest_name() -> None:
    with pytest.raises(AnsibleLookupError, match=r"no service metastor \(did you mean metastore\?\)"):
        play.row("metastor")


def test_roles_and_compose_ask_services_that_exist_and_leave_none_out() -> None:
    files = [*(run.ROOT / "roles").rglob("*.yml"), run.ROOT / "playbooks" / "vars" / "compose.yml"]
    found = [pair for file in files for pair in NAMED.findall(file.read_text(encoding="utf-8"))]
    named = {name for pair in found for name in pair if name}
    assert named == services.load().services.keys()
