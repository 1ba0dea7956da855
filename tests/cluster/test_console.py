"""`lakehouse console` in a real browser, started and asked as its page says."""

from __future__ import annotations

import json
import os
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from lakehouse.model import services
from lakehouse.model.inventory import Inventory
from lakehouse.run import ROOT
from suites.testbed.engines.trino import Trino
from tests import pages
from tests.cluster.browser import Browser, browser
from tests.cluster.looking import secrets
from tests.cluster.machines import Machines

pytestmark = [pytest.mark.cluster]

# From the first line to the page, and to the end.
START_SECONDS, END_SECONDS = 40, 10
# A look, the pause after it, and a page that asks every other second; a machine may be busy.
RENEWED_SECONDS = 30
# A TaskManager that was stopped counts again.
RETURN_SECONDS = 45


def runbook(path: str, port: int) -> list[str]:
    """Return the commands of the page, for another inventory and port."""
    blocks = pages.blocks(ROOT / "docs" / "monitoring.md", "Console")
    text = "".join(blocks).replace("inventory/local", path).replace("8765", str(port))
    return text.replace(".venv/bin/lakehouse", f"{sys.executable} -m lakehouse.cli").splitlines()


@dataclass(frozen=True)
class Console:
    """A console that runs: its process, its page, and what is done with it."""

    process: subprocess.Popen[str]
    url: str
    commands: list[str]


@pytest.fixture(scope="module")
def console(pytestconfig: pytest.Config) -> Iterator[Console]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    start, *commands = runbook(str(pytestconfig.getoption("--inventory")), port)
    process = subprocess.Popen(
        [*shlex.split(start), "--every", "2"], cwd=ROOT, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout
        said, _, _ = select.select([process.stdout], [], [], START_SECONDS)
        assert said, f"nothing in {START_SECONDS} s"
        line = process.stdout.readline()
        assert line, process.communicate(timeout=END_SECONDS)[1]
        url = re.split(r"[ ;]+", line)[2]
        assert url == f"http://127.0.0.1:{port}/", line
        yield Console(process, url, commands)
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def page(console: Console, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        opened.open(console.url)
        yield opened


def rows(page: Browser, section: str) -> dict[str, str]:
    """Return the text of each row of a section by the text of its head."""
    script = (
        f"[...document.querySelectorAll('#{section} tbody tr')]"
        ".map((row) => [row.querySelector('th').innerText, row.innerText])"
    )
    return dict(page.value(script))


def test_it_shows_every_node_and_every_service_where_it_runs(page: Browser, cluster: Inventory) -> None:
    cluster_name = cluster.hosts[0].variables["lakehouse_cluster"]
    # Not its verdict, which is of all that tests beside this one do: every node answers, every service runs.
    figures = "[...document.querySelectorAll('header .figures li')]"
    page.wait(f"{figures}.length && {figures}.every((one) => one.className !== 'bad')", RENEWED_SECONDS)
    assert page.text("header h1").startswith(f"{cluster_name}: ")
    assert rows(page, "nodes").keys() == {host.name for host in cluster.hosts}
    shown = rows(page, "services")
    known = cluster.hosts[0].variables
    catalogue = {
        service.name: service
        for service in services.load().services.values()
        if service.switch is None or known.get(service.switch)
    }
    assert shown.keys() == {
        name for name, service in catalogue.items() if any(map(cluster.group, service.groups))
    }
    for name, text in shown.items():
        hosts = {host.name for group in catalogue[name].groups for host in cluster.group(group)}
        assert f"{len(hosts)} of {len(hosts)}" in text
        assert {host.name for host in cluster.hosts if host.name in text} == hosts
    nodes = [words[:2] for words in map(str.split, rows(page, "hdfs").values())]
    assert nodes == [
        [host.name, "live"] for host in sorted(cluster.group("datanodes"), key=lambda one: one.name)
    ]


def test_a_new_table_appears_with_its_files_and_replicas(
    page: Browser, cluster: Inventory, trino: Trino, schema: str
) -> None:
    page.value("window.unloaded = 'never'")
    trino.sql(f"create table iceberg.{schema}.seen as select 1 as one")
    link = f"[...document.links].find((link) => link.innerText === '{schema}.seen')"
    page.wait(f"{link} !== undefined", RENEWED_SECONDS)
    nodes = [host.name for host in cluster.group("datanodes")]
    replicas = int(cluster.hosts[0].variables.get("lakehouse_replication", min(3, len(nodes))))
    # The last of them may be reported a little later.
    page.wait(
        f"{link}.closest('tr').innerText.replace(/\\s+/g, ' ').includes('{replicas} of {replicas}')",
        RENEWED_SECONDS,
    )
    assert rows(page, "tables")[f"{schema}.seen"].split()[1] == "iceberg"
    assert page.value("window.unloaded") == "never"
    page.value(f"{link}.click()")
    page.wait("location.pathname === '/table' && document.querySelector('.files') !== null")
    files = page.value(
        "[...document.querySelectorAll('.files tbody tr')].map((row) => row.innerText.split(/\\s+/))"
    )
    [data] = [one for one in files if one[0].startswith("data/")]
    assert set(data) >= set(nodes) or len(nodes) > replicas
    assert {one[0].partition("/")[0] for one in files} == {"data", "metadata"}
    page.value("history.back()")
    page.wait("location.pathname === '/' && document.querySelector('#tables') !== null")


def test_it_loads_nothing_from_elsewhere_and_tells_no_secret(
    page: Browser, console: Console, cluster: Inventory
) -> None:
    assert [url for url in page.asked if not url.startswith((console.url, "data:,", "about:"))] == []
    assert page.complaints == []
    html = str(page.value("document.documentElement.outerHTML"))
    assert [secret for secret in secrets(cluster) if secret in html] == []


def test_the_commands_of_the_runbook_are_answered(console: Console, cluster: Inventory) -> None:
    said = [
        subprocess.run(
            ["sh", "-c", command], cwd=ROOT, capture_output=True, text=True, check=True, timeout=20
        )
        for command in console.commands
    ]
    document = json.loads(said[0].stdout)
    assert (document["verb"], document["hosts"].keys()) == ("status", {host.name for host in cluster.hosts})
    assert [secret for secret in secrets(cluster) for one in said if secret in one.stdout] == []


@pytest.mark.drill
def test_a_service_that_stops_is_seen_without_a_reload(
    page: Browser, cluster: Inventory, machines: Machines
) -> None:
    if not cluster.group("flink_taskmanagers"):
        pytest.skip("this inventory has no Flink")
    machine = machines[cluster.group("flink_taskmanagers")[-1].name]
    title = "document.querySelector('header h1').innerText"
    page.value("window.unloaded = 'never'")
    machine.run("systemctl stop flink-taskmanager")
    try:
        # It may have been seen while it stops.
        services = "document.getElementById('services').innerText"
        page.wait(f"{services}.includes('{machine.name} stopped')", RENEWED_SECONDS)
        assert str(page.value(title)).endswith(": DEGRADED")
        [finding] = [line for line in page.text(".findings").splitlines() if "unit.stopped" in line]
        assert f"flink_taskmanager on {machine.name}: stopped" in finding
        assert "playbooks/site.yml" in page.text(".findings")
    finally:
        machine.run("systemctl start flink-taskmanager")
    page.wait(f"{title}.endsWith(': OK')", RETURN_SECONDS)
    assert page.value("window.unloaded") == "never"


@pytest.mark.drill
def test_an_interrupt_ends_it_with_130_and_the_page_says_so(console: Console, page: Browser) -> None:
    os.kill(console.process.pid, signal.SIGINT)
    assert console.process.wait(END_SECONDS) == 130
    assert console.process.stderr
    assert console.process.stderr.read() == "interrupted; next: run the same command again\n"
    session = ["pgrep", "--session", str(console.process.pid)]
    assert subprocess.run(session, capture_output=True, text=True, check=False).stdout == ""
    page.wait("getComputedStyle(document.getElementById('lost')).display !== 'none'", RENEWED_SECONDS)
