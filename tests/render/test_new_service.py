"""A service that nobody has heard of is added as CONTRIBUTING.md says, and found by everything."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lakehouse import run
from tests.render import rendering

# What a tree needs to be rendered, and what is not copied of it.
PARTS = ("inventory", "lakehouse", "library", "metastore", "playbooks", "plugins", "roles", "templates")
FILES = ("ansible.cfg", "services.yml", "versions.yml")
# The rows of the catalogue, by the section that they are put first into.
ROWS = {
    "users": "    echo: {account: echo, description: User of echo.}\n",
    "groups": "    echo: {hosts: one, profile: core, band: compute, label: Echo}\n",
    "services": """\
    echo:
      groups: [echo]
      role: echo
      unit: echo
      user: echo
      ports:
        echo_http: {number: 7007, description: Web address of echo.}
      http: echo_http
      memory: [echo_heap_mb]
""",
}
ROLE = {
    "defaults/main.yml": "---\necho_heap_mb: 64\n",
    "meta/argument_specs.yml": """\
---
argument_specs:
  main:
    short_description: Says what it is told
    options:
      echo_heap_mb: {type: int, description: 'Heap, in MiB. Default: 64'}
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
    ready:
      - {kind: http, url: "http://{{ ansible_host }}:{{ lakehouse_ports.echo_http }}"}
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
HOST = "\necho:\n  hosts:\n    cpu-node2:\n"
# What the report and the pages say, as Python of the copied tree says it.
ASKED = """\
import json, sys
from pathlib import Path
from lakehouse import services
from lakehouse.dev import roledocs
from lakehouse.report import cluster, picture
found = cluster.read(Path(sys.argv[1]))
print(json.dumps({
    "ports": roledocs.ports(),
    "role": roledocs.render(services.ROOT / "roles" / "lakehouse"),
    "addresses": [[address.service, address.url] for address in found.addresses],
    "drawn": [box.text for box in picture.draw(found).services],
}))
"""


class Tree:
    """A copy of the repository, and the programs of this one run on it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.touched: set[str] = set()
        for part in PARTS:
            shutil.copytree(
                run.ROOT / part, root / part, symlinks=True, ignore=shutil.ignore_patterns("__pycache__")
            )
        for name in FILES:
            shutil.copy(run.ROOT / name, root / name)

    def insert(self, path: str, anchor: str, text: str) -> None:
        """Put text in front of a line that is there once, or at the end."""
        file = self.root / path
        old = file.read_text(encoding="utf-8")
        assert old.count(anchor) == 1 or not anchor
        file.write_text(old.replace(anchor, text + anchor) if anchor else old + text, encoding="utf-8")
        self.touched.add(path)

    def write(self, path: str, text: str) -> None:
        """Write a new file."""
        file = self.root / path
        assert not file.exists()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def call(self, program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run a program of our own Python environment, with the copy's package."""
        environment = os.environ | {
            "PYTHONPATH": str(self.root),
            "ANSIBLE_CONFIG": str(self.root / "ansible.cfg"),
            "ANSIBLE_NOCOLOR": "1",
        }
        argv = [run.program(program), *map(str, arguments)]
        return subprocess.run(
            argv, cwd=self.root, env=environment, capture_output=True, text=True, check=False
        )

    def play(self, name: str, *options: object) -> str:
        """Run a playbook on the local inventory and return what it prints."""
        done = self.call("ansible-playbook", "-i", "inventory/local", f"playbooks/{name}.yml", *options)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """The kit with one more service."""
    copied = Tree(tmp_path_factory.mktemp("kit"))
    for section, row in ROWS.items():
        text = (copied.root / "services.yml").read_text(encoding="utf-8")
        head = f"  {section}:\n"
        assert text.count(head) == 1
        (copied.root / "services.yml").write_text(text.replace(head, head + row), encoding="utf-8")
    copied.touched.add("services.yml")
    for path, text in ROLE.items():
        copied.write(f"roles/echo/{path}", text)
    copied.insert("playbooks/site.yml", "    - role: python_clients\n", IN_SITE)
    copied.insert("playbooks/render.yml", "    - name: Python clients\n", IN_RENDER)
    copied.insert("inventory/local/hosts.yml", "", HOST)
    return copied


@pytest.fixture(scope="module")
def endpoints(tree: Tree) -> Path:
    """Where everything is, the new service among it."""
    path = tree.root / "endpoints.json"
    tree.play("endpoints", "-e", f"lakehouse_endpoints_file={path}")
    return path


def test_outside_of_its_role_it_touches_four_files(tree: Tree) -> None:
    assert tree.touched == {
        "services.yml",
        "playbooks/site.yml",
        "playbooks/render.yml",
        "inventory/local/hosts.yml",
    }
    page = (run.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = page.partition("## Add a service\n")[2].partition("\n## ")[0]
    numbered = re.findall(r"^ *\d\. `(\S+)`", section, re.MULTILINE)
    assert {Path(path).name for path in numbered} == {Path(path).name for path in tree.touched}
    assert len(numbered) == len(tree.touched)


def test_its_unit_is_rendered_on_its_host_alone(tree: Tree) -> None:
    target = tree.root / "rendered"
    tree.play("render", "-e", f"lakehouse_render_dir={target}")
    unit = "etc/systemd/system/echo.service"
    assert [path.parts[-5] for path in target.glob(f"*/{unit}")] == ["cpu-node2"]
    text = (target / "cpu-node2" / unit).read_text(encoding="utf-8")
    assert "User=echo\n" in text
    # The doctor reads it there.
    assert "X-Reads=/etc/echo.conf\n" in text
    assert "ExecStart=/usr/bin/echo --port=7007 --heap=64\n" in text


def test_the_site_playbook_runs_its_role(tree: Tree) -> None:
    assert "echo : Echo runs" in tree.play("site", "--list-tasks", "--tags", "echo")


def test_it_has_endpoints_and_stands_on_the_page(tree: Tree, endpoints: Path) -> None:
    found = json.loads(endpoints.read_text(encoding="utf-8"))
    assert found["units"]["echo"] == "echo"
    assert found["users"]["echo"] == "echo"
    assert found["echo"] == {"host": "cpu-node2", "http": "http://172.28.0.12:7007"}
    asked = tree.call(Path(sys.executable).name, "-c", ASKED, endpoints)
    assert asked.returncode == 0, asked.stderr
    said = json.loads(asked.stdout)
    assert ["Echo", "http://172.28.0.12:7007"] in said["addresses"]
    assert "Echo" in said["drawn"]
    assert "| `echo_http` | 7007 | Web address of echo. | `echo` | `echo` |" in said["ports"]
    assert "| `lakehouse_users.echo` | str | User of echo. Default: echo |" in said["role"]


def test_preflight_looks_at_its_port_and_its_memory(tree: Tree) -> None:
    play = tree.root / "playbooks/asked.yml"
    play.write_text(
        "- hosts: cpu-node2\n"
        "  gather_facts: false\n"
        "  roles: [lakehouse]\n"
        "  tasks:\n"
        '    - ansible.builtin.debug: {msg: "{{ lakehouse_placed_here | to_json }}"}\n',
        encoding="utf-8",
    )
    said = tree.play("asked")
    play.unlink()
    assert '"unit": "echo.service"' in said
    assert '"ports": ["echo_http"]' in said
    assert '"memory": ["echo_heap_mb"]' in said


@pytest.mark.parametrize(
    ("variables", "hosts", "faults"),
    [
        (
            "{lakehouse_ports: {ekho_http: 7008}, lakehouse_users: {echo: root}, echo_heap_mb: 0}",
            "",
            [
                "lakehouse_ports.ekho_http: did you mean echo_http?",
                "lakehouse_users.echo is 'root'",
                "echo_heap_mb is 0 (expected at least 1)",
                "group echo is empty (expected exactly one host)",
            ],
        ),
        (
            "lakehouse_ports: {echo_http: 8090}",
            f"{HOST}    cpu-node1:\n",
            [
                "lakehouse_ports.trino_http is 8090, and so is lakehouse_ports.echo_http",
                "group echo has 2 hosts (expected exactly one host)",
            ],
        ),
    ],
)
def test_its_faults_are_found(
    tree: Tree, tmp_path: Path, variables: str, hosts: str, faults: list[str]
) -> None:
    copied = rendering.copy(Path("inventory/local"), tmp_path)
    with (copied / "hosts.yml").open("a", encoding="utf-8") as stream:
        stream.write(hosts)
    (copied / "group_vars/all/more.yml").write_text(f"{variables}\n", encoding="utf-8")
    done = tree.call("ansible-playbook", "-i", copied, "playbooks/validate.yml")
    assert done.returncode != 0
    assert [fault for fault in faults if fault not in done.stdout + done.stderr] == []
