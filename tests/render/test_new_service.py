"""A service of an unknown name is added as CONTRIBUTING.md says, and found by everything."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from lakehouse import run
from tests.render import rendering
from tests.trees import Tree

# Tests that would have more files touched by a service than those that it touches.
WANTING = (
    "tests/unit/test_services.py",
    "tests/unit/test_roles.py",
    "tests/unit/test_shipped.py",
    "tests/unit/test_floor.py",
    "tests/unit/test_change.py",
    "tests/unit/test_removal.py",
    "tests/unit/test_compose_file.py",
    "tests/unit/test_readme.py::test_the_picture_shows_the_local_inventory",
    "tests/render/test_hard_wired.py::test_no_role_no_template_and_no_container_knows_the_local_cluster",
    "tests/render/test_hard_wired.py::test_the_cluster_of_the_tests_leaves_no_default_as_it_is",
)
# The rows of the catalogue, by the section that they are put first into.
ROWS = {
    "users": "    echo: {account: echo, description: User of echo.}\n",
    "groups": "    echo: {hosts: optional, profile: core, band: compute, label: Echo}\n",
    "services": """\
    echo:
      groups: [echo]
      role: echo
      unit: echo
      user: echo
      listeners:
        echo_http: {port: 7007, protocol: http, description: Web address of echo.}
      ready: [{kind: http, port: echo_http}]
      notice: its callers hear nothing
      http: echo_http
      memory: [echo_heap_mb]
      heap: {divisor: 8, least: 64, most: 1024}
""",
}
ROLE = {
    "defaults/main.yml": "---\necho_heap_mb: '{{ node_sizes[inventory_hostname].echo_heap_mb }}'\n",
    "meta/main.yml": (run.ROOT / "roles" / "java" / "meta" / "main.yml").read_text(encoding="utf-8"),
    "meta/argument_specs.yml": """\
---
argument_specs:
  main:
    short_description: Says what it is told
    options:
      echo_heap_mb: {type: int, description: ['Heap, in MiB.', 'Default: M/8']}
""",
    "vars/main.yml": """\
---
_echo_service:
  User: "{{ lakehouse_users.echo }}"
  ExecStart: "/usr/bin/echo --port={{ lakehouse_ports.echo_http }} --heap={{ echo_heap_mb }}"
_echo_files:
  - dest: /etc/echo.conf
    template: lines.j2
    read_by: [echo]
    vars: {lines: [hello]}
_echo_reads: "{{ _echo_files | by_reader({'echo': []}) }}"
_echo_unit_file: "{{ node_service | combine(_echo_service) | unit_file('echo', 'Echo', _echo_reads) }}"
""",
    "tasks/main.yml": """\
---
- name: Configure echo
  ansible.builtin.import_tasks: configure.yml
- name: Echo runs
  lakehouse_daemon:
    name: echo
    files: "{{ _echo_reads.echo }}"
    ready: "{{ query('ready_of', 'echo') }}"
  become: true
""",
    "tasks/configure.yml": """\
---
- name: Write the files of echo
  lakehouse_config_files:
    files: "{{ _echo_files + [_echo_unit_file] }}"
  become: true
""",
}
IN_SITE = """\
    - role: echo
      tags: [lakehouse, echo]
      when: "'echo' in lakehouse_roles_here"
"""
IN_RENDER = """\
    - name: Echo
      ansible.builtin.import_role:
        name: echo
        tasks_from: configure
      when: "'echo' in lakehouse_roles_here"

"""
HOST = "\necho:\n  hosts:\n    beta2:\n"
# What the report and the pages say, as Python of the copied tree says it.
ASKED = """\
import json, sys
from pathlib import Path
from lakehouse.model import services
from lakehouse.dev import placementdocs, roledocs
from lakehouse.report import cluster, picture
found = cluster.read(Path(sys.argv[1]))
print(json.dumps({
    "ports": roledocs.ports(),
    "placement": placementdocs.table(services.load()),
    "role": roledocs.render(services.ROOT / "roles" / "lakehouse"),
    "addresses": [[address.service, address.url] for address in found.addresses],
    "drawn": [box.text for box in picture.draw(found).services],
}))
"""
# What the sizing model gives a host with and without the service.
SIZED = """\
import json
from lakehouse.sizing import placed, plan
machines = [placed.Machine(groups, {}, 6144, 2) for groups in ({"spark_workers"}, {"spark_workers", "echo"})]
print(json.dumps([plan(placed.cluster({"n1": of}, {})).sizes["n1"] for of in machines]))
"""
# What restarts it, and what it has to answer then.
RESTARTED = """\
import json
from dataclasses import asdict
from lakehouse.model import inventory
from lakehouse.rolling import ready, steps
from lakehouse.model import placement
found = placement.read(inventory.load("tests/inventory"))
[step] = steps.plan(found, "echo", None)
host = next(host for host in found.hosts if host.name == step.host)
asked = [asdict(question) for question in ready.questions_of(found, "echo", host)]
print(json.dumps({"step": asdict(step), "asked": [question["probe"] for question in asked]}))
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """The kit with one more service."""
    copied = Tree(tmp_path_factory.mktemp("kit"))
    for section, row in ROWS.items():
        text = (copied.root / "services.yml").read_text(encoding="utf-8")
        head = f"  {section}:\n"
        assert text.count(head) == 1
        (copied.root / "services.yml").write_text(text.replace(head, head + row), encoding="utf-8")
    for path, text in ROLE.items():
        copied.write(f"roles/echo/{path}", text)
    copied.insert("playbooks/site.yml", "    - role: python_clients\n", IN_SITE)
    copied.insert("playbooks/render.yml", "    - name: Python clients\n", IN_RENDER)
    copied.insert("tests/inventory/hosts.yml", "", HOST)
    named = "tests/inventory/group_vars/all/catalogue.yml"
    copied.insert(named, "  flink: stream\n", "  echo: repeater\n")
    copied.insert(named, "  namenode_rpc: 18020\n", "  echo_http: 17007\n")
    # Before a test makes more of it.
    copied.of_service = copied.changed()
    return copied


@pytest.fixture(scope="module")
def endpoints(tree: Tree) -> Path:
    """Where everything is, the new service among it."""
    path = tree.root / "endpoints.json"
    tree.play("endpoints", "-e", f"lakehouse_endpoints_file={path}")
    return path


def test_outside_of_its_role_it_touches_the_files_that_the_page_names(tree: Tree) -> None:
    touched = {name for name in tree.of_service if not name.startswith("roles/echo/")}
    page = (run.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = page.partition("## Add a service\n")[2].partition("\n## ")[0]
    numbered = re.findall(r"^ *\d\. `(\S+)`", section, re.MULTILINE)
    assert sorted(numbered) == sorted(touched)


def test_its_unit_is_rendered_on_its_host_alone(tree: Tree) -> None:
    target = tree.root / "rendered"
    tree.play("render", "-e", f"lakehouse_render_dir={target}")
    unit = "etc/systemd/system/echo.service"
    assert [path.parts[-5] for path in target.glob(f"*/{unit}")] == ["beta2"]
    text = (target / "beta2" / unit).read_text(encoding="utf-8")
    assert "User=repeater\n" in text
    # The doctor reads it there.
    assert "X-Reads=/etc/echo.conf\n" in text
    [heap] = re.findall(r"^ExecStart=/usr/bin/echo --port=17007 --heap=(\d+)$", text, re.MULTILINE)
    # Of least and most in its row: what the others on this host leave.
    assert 64 <= int(heap) <= 1024


def test_its_heap_is_taken_from_the_engines_of_its_host(tree: Tree) -> None:
    done = tree.call(Path(sys.executable).name, "-c", SIZED)
    assert done.returncode == 0, done.stderr
    without, beside = json.loads(done.stdout)
    assert beside["echo_heap_mb"] == 768
    # Its process takes 845 MiB, of which executors had 704 for their heaps.
    assert without["spark_worker_memory_mb"] - beside["spark_worker_memory_mb"] >= 704


def test_the_site_playbook_runs_its_role(tree: Tree) -> None:
    assert "echo : Echo runs" in tree.play("site", "--list-tasks", "--tags", "echo")


def test_it_has_endpoints_and_stands_on_the_page(tree: Tree, endpoints: Path) -> None:
    found = json.loads(endpoints.read_text(encoding="utf-8"))
    assert found["units"]["echo"] == "echo"
    assert found["users"]["echo"] == "repeater"
    assert found["echo"] == {"host": "beta2", "http": "http://172.29.7.22:17007"}
    asked = tree.call(Path(sys.executable).name, "-c", ASKED, endpoints)
    assert asked.returncode == 0, asked.stderr
    said = json.loads(asked.stdout)
    assert ["Echo", "http://172.29.7.22:17007"] in said["addresses"]
    assert "Echo" in said["drawn"]
    assert "| `echo_http` | 7007 | http | Web address of echo. | `echo` | `echo` |" in said["ports"]
    assert "| `echo` | none, or more | `echo` | `echo` | `/` answers |" in said["placement"]
    assert "| `lakehouse_users.echo` | str | User of echo. Default: echo |" in said["role"]


def test_it_is_restarted_behind_its_own_gate(tree: Tree) -> None:
    asked = tree.call(Path(sys.executable).name, "-c", RESTARTED)
    assert asked.returncode == 0, asked.stderr
    said = json.loads(asked.stdout)
    assert (said["step"]["service"], said["step"]["unit"], said["step"]["host"]) == (
        "echo",
        "echo",
        "beta2",
    )
    assert said["step"]["noticed"] == "its callers hear nothing"
    assert said["asked"] == [{"kind": "http", "url": "http://172.29.7.22:17007/"}]
    # What its role asks in the site playbook.
    assert _shown(tree, "query('ready_of', 'echo')") == said["asked"]


def _shown(tree: Tree, expression: str) -> Any:
    """Return what an expression is on the host of the service."""
    play, answer = tree.root / "playbooks/asked.yml", tree.root / "asked.json"
    play.write_text(
        "- hosts: beta2\n"
        "  gather_facts: false\n"
        "  roles: [lakehouse]\n"
        "  tasks:\n"
        "    - ansible.builtin.copy:\n"
        f'        content: "{{{{ {expression} | to_json }}}}"\n'
        f"        dest: {answer}\n"
        '        mode: "0600"\n'
        "      delegate_to: localhost\n"
        "      connection: local\n",
        encoding="utf-8",
    )
    tree.play("asked")
    play.unlink()
    return json.loads(answer.read_text(encoding="utf-8"))


def test_preflight_looks_at_its_port_and_its_memory(tree: Tree) -> None:
    [row] = [row for row in _shown(tree, "lakehouse_placed_here") if row["role"] == "echo"]
    assert row["unit"] == "echo.service"
    assert row["ports"] == ["echo_http"]
    assert row["memory"] == ["echo_heap_mb"]


def refused(tree: Tree, folder: Path, variables: str = "{}") -> str:
    """Say what validation finds in the local inventory, which has no host for echo, with more variables."""
    copied = rendering.copy(Path("inventory/local"), folder)
    (copied / "group_vars/all/more.yml").write_text(f"{variables}\n", encoding="utf-8")
    done = tree.call("ansible-playbook", "-i", copied, "playbooks/validate.yml")
    assert done.returncode != 0
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("variables", "faults"),
    [
        (
            "{lakehouse_ports: {ekho_http: 7008}, lakehouse_users: {echo: root}, echo_heap_mb: 0}",
            [
                "lakehouse_ports.ekho_http: did you mean echo_http?",
                "lakehouse_users.echo is 'root'",
                "echo_heap_mb is 0 (expected at least 1)",
            ],
        ),
        (
            "lakehouse_ports: {echo_http: 8090}",
            ["lakehouse_ports.trino_http is 8090, and so is lakehouse_ports.echo_http"],
        ),
    ],
)
def test_its_faults_are_found(tree: Tree, tmp_path: Path, variables: str, faults: list[str]) -> None:
    said = refused(tree, tmp_path, variables)
    assert [fault for fault in faults if fault not in said] == []


def test_a_host_is_missing_where_its_row_wants_one(tree: Tree, tmp_path: Path) -> None:
    catalogue = tree.root / "services.yml"
    text = catalogue.read_text(encoding="utf-8")
    catalogue.write_text(text.replace("echo: {hosts: optional", "echo: {hosts: one"), encoding="utf-8")
    try:
        assert "group echo is empty (expected exactly one host)" in refused(tree, tmp_path)
    finally:
        catalogue.write_text(text, encoding="utf-8")


def test_no_test_of_the_kit_wants_another_file(tree: Tree) -> None:
    pages = tree.call(Path(sys.executable).name, "-m", "lakehouse.dev.roledocs")
    assert pages.returncode == 0, pages.stderr
    done = tree.call("pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *WANTING)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
