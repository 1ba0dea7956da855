"""A play and `lakehouse restart` ask a service the same questions, those of its row in services.yml."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleLookupError

from lakehouse import inventory, readiness, run, services
from ops.change import ready
from ops.probing import Probe, Shell
from ops.status import placement
from ops.status.placement import Cluster
from plugins.lookup import ready_of
from tests.render import rendering

PLAY = """\
- hosts: all
  gather_facts: false
  roles: [lakehouse]
  tasks:
    - ansible.builtin.copy:
        dest: "{{ folder }}/{{ inventory_hostname }}.json"
        mode: "0600"
        content: "{{ {'alone': alone, 'joined': joined, 'settled': settled} | to_json }}"
      delegate_to: localhost
      connection: local
      vars:
        alone: >-
          {%- set found = {} -%}
          {%- for name in names -%}
          {%- set _ = found.update({name: query('ready_of', name)}) -%}
          {%- endfor -%}
          {{ found }}
        joined: >-
          {%- set found = {} -%}
          {%- for name in names -%}
          {%- set _ = found.update({name: query('ready_of', name, joined=true)}) -%}
          {%- endfor -%}
          {{ found }}
        settled: >-
          {%- set found = {} -%}
          {%- for name in names -%}
          {%- set _ = found.update({name: query('ready_of', name, settled=true)}) -%}
          {%- endfor -%}
          {{ found }}
"""
Probes = dict[str, dict[str, list[dict[str, Any]]]]


def play(folder: Path, names: list[str], source: Path) -> subprocess.CompletedProcess[str]:
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


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return placement.read(inventory.load("tests/inventory"))


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory, cluster: Cluster) -> dict[str, Probes]:
    """What a play asks, by host, list and service."""
    folder = tmp_path_factory.mktemp("asked")
    done = play(folder, list(services.load().services), Path("tests/inventory"))
    assert done.returncode == 0, done.stdout + done.stderr
    return {host.name: json.loads((folder / f"{host.name}.json").read_text()) for host in cluster.hosts}


@pytest.mark.parametrize("service", services.load().services)
def test_a_play_asks_what_the_commands_ask(service: str, cluster: Cluster, asked: dict[str, Probes]) -> None:
    row = services.load().services[service]
    for host in cluster.hosts:
        for part, questions in (
            ("alone", readiness.ready(row, alone=True)),
            ("joined", readiness.ready(row, alone=False)),
            ("settled", row.settled),
        ):
            probes = list(readiness.probes(cluster, row, questions, host))
            assert asked[host.name][part][service] == probes


@pytest.mark.parametrize("service", services.load().services)
def test_the_commands_ask_the_same_questions_over_their_own_connections(
    service: str, cluster: Cluster, asked: dict[str, Probes]
) -> None:
    for host in cluster.hosts:
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
        ready_of.row("metastor")
