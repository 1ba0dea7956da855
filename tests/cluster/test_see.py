"""`logs`, `exec`, `sql` and `support-bundle` of the cluster, as a person starts them."""

from __future__ import annotations

import base64
import io
import json
import os
import pty
import re
import secrets
import shlex
import signal
import stat
import subprocess
import sys
import tarfile
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote
from xml.sax.saxutils import escape

import pytest

from lakehouse.maybe import Answer
from lakehouse.model.inventory import Inventory
from lakehouse.remote import openssh
from lakehouse.remote.openssh import Line
from lakehouse.run import ROOT
from tests import pages
from tests.cluster import looking
from tests.cluster.looking import Said, paused
from tests.cluster.machines import Machine, Machines

pytestmark = [pytest.mark.cluster]

LIMIT_SECONDS = 150
PAGES = ("logs-exec-sql",)
# What a bundle may take of this computer in a test.
MIB = 4


@pytest.fixture(scope="session")
def path(pytestconfig: pytest.Config) -> str:
    return str(pytestconfig.getoption("--inventory"))


def see(verb: str, path: str, *options: str, given: str | None = None) -> Said:
    return looking.look(verb, path, *options, seconds=LIMIT_SECONDS, given=given)


def documented() -> Iterator[str]:
    """Give each command of the pages of these verbs that ends by itself."""
    for page in PAGES:
        for block in pages.blocks(pages.RUNBOOKS / f"{page}.md"):
            yield from (line.partition("   ")[0].strip() for line in block.splitlines())


@pytest.mark.parametrize("command", list(documented()))
def test_a_command_of_the_documentation_does_what_it_says(command: str, path: str) -> None:
    # Of this checkout, and for this cluster.
    program = f"{sys.executable} -m lakehouse.cli"
    line = re.sub(r"\.venv/bin/lakehouse (\S+)", rf"{program} \1 --inventory {path}", command)
    [verb] = re.findall(r"\.venv/bin/lakehouse (\S+)", command)
    done = subprocess.run(
        ["sh", "-c", line], cwd=ROOT, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    if verb == "support-bundle":
        *_, last = done.stdout.splitlines()
        (ROOT / last.split()[2].rstrip(";")).unlink()
    elif "--json" in command:
        assert json.loads(done.stdout)["exit"] == 0
    else:
        *_, last = done.stderr.splitlines()
        assert last.startswith(f"{verb} ")


def test_every_host_of_a_service_is_heard_in_the_order_of_time(path: str, cluster: Inventory) -> None:
    said = see("logs", path, "datanode", "--lines", "5")
    assert said.code == 0, said.err
    heard = [line.split(" | ", 1) for line in said.out.splitlines()]
    names = {host.name for host in cluster.group("datanodes")}
    assert {name.strip() for name, _ in heard} == names
    stamps = [text.partition(" ")[0] for _, text in heard]
    assert stamps == sorted(stamps)
    assert f"; {len(names)} of {len(names)} hosts answered, " in said.err.splitlines()[-1]


def test_a_log_is_followed_until_ctrl_c_and_nothing_is_left(
    path: str, cluster: Inventory, machines: Machines
) -> None:
    """A DataNode says something every few seconds."""
    argv = [sys.executable, "-m", "lakehouse.cli", "logs", "datanode", "--inventory", path, "--follow"]
    hosts = {host.name for host in cluster.group("datanodes")}
    # What a shell starts in the background ignores the signal; a person's program does not.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(
        argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        signal.signal(signal.SIGINT, before)
        assert process.stdout
        watch = threading.Timer(LIMIT_SECONDS, process.kill)
        watch.start()
        left = set(hosts)
        while left and (line := process.stdout.readline()):
            left.discard(line.partition(" | ")[0].strip())
        process.send_signal(signal.SIGINT)
        process.communicate()
        watch.cancel()
    assert (left, process.returncode) == (set(), 130)
    reading = "pgrep -f '[j]ournalctl.*hdfs-datanode.*--follow' || true"
    until = time.monotonic() + 10
    while found := {name: pids for name in hosts if (pids := machines[name].run(reading))}:
        assert time.monotonic() < until, found


def test_a_command_runs_on_the_hosts_that_are_named_and_fails_by_host(path: str, cluster: Inventory) -> None:
    everybody = [host.name for host in cluster.hosts]
    said = see("exec", path, "--json", "--", "hostname; echo wrong >&2")
    hosts = json.loads(said.out)["hosts"]
    assert (said.code, {name: one["stdout"] for name, one in hosts.items()}) == (
        0,
        {name: [name] for name in everybody},
    )
    assert {tuple(one["stderr"]) for one in hosts.values()} == {("wrong",)}
    victim = everybody[-1]
    said = see("exec", path, "--", f"test $(hostname) != {victim}")
    assert said.code == 1
    assert f"DEGRADED exec.failed {victim}: exit code 1; " in said.err
    assert f"; {len(everybody)} of {len(everybody)} hosts chosen, {len(everybody)} answered, " in said.err


def test_the_limit_ends_a_command_on_its_host(path: str, machines: Machines, cluster: Inventory) -> None:
    machine = machines[cluster.hosts[0].name]
    seconds = str(3000 + secrets.randbelow(1000))
    said = see("exec", path, "--host", machine.name, "--limit", "1", "--", "sleep", seconds)
    assert said.code == 124
    assert machine.run("pgrep -fx %s || true", f"sleep {seconds}") == ""


def test_trino_returns_rows_in_three_forms_to_whom_it_may(path: str, cluster: Inventory) -> None:
    statement = "SELECT 1 AS id, CAST(NULL AS VARCHAR) AS name, ARRAY[1, NULL] AS list; SELECT 'a,b' AS x"
    as_json = json.loads(see("sql", path, "--engine", "trino", "--json", statement).out)
    assert as_json["results"] == [
        {"columns": ["id", "name", "list"], "rows": [[1, None, [1, None]]], "said": []},
        {"columns": ["x"], "rows": [["a,b"]], "said": []},
    ]
    as_csv = see(
        "sql", path, "--engine", "trino", "--csv", "-f", "-", given="SELECT 'a,b' AS x, NULL AS y, '' z"
    )
    assert as_csv.out == 'x,y,z\n"a,b",,""\n'
    reader, schema = cluster.hosts[0].variables["lakehouse_readers"][0], f"kit_{secrets.token_hex(4)}"
    refused = see("sql", path, "--engine", "trino", "--as", reader, f"CREATE SCHEMA iceberg.{schema}")
    assert (refused.code, refused.out) == (1, "")
    assert "Access Denied" in refused.err.splitlines()[1]


@pytest.mark.parametrize(
    ("engine", "texts"),
    {
        "trino": {
            "SELECT 'C:\\', 'it''s; -- so' -- why; /*": "C:\\,it's; -- so",
            "WITH FUNCTION f(x integer) RETURNS integer BEGIN DECLARE y integer; SET y = x; RETURN y; END"
            " SELECT f(1)": "1",
        },
        "spark": {
            r"SELECT 'it\'s /* a note */ here', 'b; c' /* a /* b; */ c; */": "it's /* a note */ here,b; c",
            "BEGIN DECLARE n INT DEFAULT 1; IF n = 1 THEN SET n = 2; END IF; SELECT n; END": "2",
        },
        "flink": {r"SELECT 'C:\', 'it''s; -- so' -- why;": "C:\\,it's; -- so"},
    }.items(),
)
def test_statements_arrive_as_they_are_and_a_wrong_one_is_the_engines_one_line(
    path: str, engine: str, texts: dict[str, str]
) -> None:
    """Texts, comments and bodies by the grammar of each engine; what comes before a refusal is shown."""
    statements = "\n;\n".join([*texts, "SELECT nothing_of_that_name"])
    said = see("sql", path, "--engine", engine, "--csv", statements)
    assert said.code == 1, said.err
    assert [one.splitlines()[-1] for one in said.out.split("\n\n")] == list(texts.values())
    _, finding, last = said.err.splitlines()
    assert finding.startswith(f"DEGRADED sql.refused {engine} on ")
    assert "nothing_of_that_name" in finding.lower()
    assert last.startswith(f"sql {engine} of ")


def test_without_a_statement_a_terminal_becomes_a_session(path: str) -> None:
    ours, its = pty.openpty()
    # A prompt wants room.
    termios.tcsetwinsize(its, (24, 80))
    argv = [sys.executable, "-m", "lakehouse.cli", "sql", "--inventory", path, "--engine", "trino"]
    terminal = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(
        argv, cwd=ROOT, stdin=its, stdout=its, stderr=its, env=terminal, start_new_session=True
    ) as process:
        os.close(its)
        # Its ssh has the terminal too.
        watch = threading.Timer(LIMIT_SECONDS, os.killpg, (process.pid, signal.SIGKILL))
        watch.start()
        said, asked, told = "", False, False
        # What a terminal gives at its end is an error.
        with suppress(OSError):
            while more := os.read(ours, 4096).decode(errors="replace"):
                said += more
                if not asked and re.search(r"trino[:\w]*>", said):
                    asked = bool(os.write(ours, b"SELECT 6 * 7 AS answer;\n"))
                if not told and re.search(r"\n\W*42\b", said):
                    told = bool(os.write(ours, b"quit\n"))
        process.wait()
        watch.cancel()
    os.close(ours)
    assert (told, process.returncode) == (True, 0), said


@pytest.mark.drill
def test_a_silent_host_is_named_by_every_verb(path: str, cluster: Inventory) -> None:
    if "local_nodes_cluster" not in cluster.hosts[0].variables:
        pytest.skip("real machines are not made to hang for a test")
    needed = {"namenode", "metastore", "postgresql", "trino_coordinator"}
    victim = next(host for host in reversed(cluster.group("datanodes")) if not needed & host.groups)
    with paused(victim):
        logs = see("logs", path, "datanode", "--lines", "1")
        ran = see("exec", path, "--limit", "5", "--", "true")
    count = len(cluster.hosts)
    assert (logs.code, ran.code) == (1, 1)
    assert f"logs.silent {victim.name}: did not answer" in logs.err
    assert f"exec.silent {victim.name}: did not answer" in ran.err
    assert f"; {count} of {count} hosts chosen, {count - 1} answered, {count - 1} succeeded, " in ran.err


@contextmanager
def planted(machine: Machine, file: str, text: str, owner: str = "root") -> Iterator[None]:
    """A file that was not there before, for a while; no argument list tells what is in it."""
    place, said = shlex.quote(file), list[Line]()
    script = f"test ! -e {place} && umask 077 && {{ cat; echo; }} > {place} && chown {owner} {place}"
    ended = openssh.run({machine.name: script}, [machine.host], said.append, LIMIT_SECONDS, text)
    assert ended == {machine.name: Answer(0)}, said
    try:
        yield
    finally:
        machine.run("rm -f %s", file)


@contextmanager
def linked(machine: Machine, work: str, text: str) -> Iterator[None]:
    """A file that only root may read, and a link by which Spark's account names it as a file of its own."""
    folder, link = f"/root/kit-{text[:8]}", f"{work}/app-{text[:8]}"
    machine.run("mkdir -m 0700 %s && echo %s > %s", folder, text, f"{folder}/stdout")
    script = 'mkdir "$0" && ln -s "$1" "$0/0"'
    account = machine.variable("lakehouse_users")["spark"]
    machine.run("runuser -u %s -- sh -c %s %s %s", account, script, link, folder)
    try:
        yield
    finally:
        machine.run("rm -rf %s %s", link, folder)


def test_no_secret_of_any_kind_is_in_a_bundle(path: str, cluster: Inventory, machines: Machines) -> None:
    """Fakes of every kind in the configuration and the logs of a node, and the cluster's own passwords."""
    machine = machines[cluster.group("trino_coordinator")[0].name]
    config, data, users = map(
        machine.variable, ("lakehouse_config_dir", "lakehouse_data_dir", "lakehouse_users")
    )
    fakes = {
        name: f"Fk{secrets.token_hex(8)}/+x;&,<' x"
        for name in ("env", "pgpass", "plain", "url", "xml", "block", "shell", "sql", "json")
    } | {name: f"Fk{secrets.token_hex(8)}/+x" for name in ("header", "key")}
    own = [
        *looking.secrets(cluster),
        *machine.run("sed -n 's/^[A-Z_]*=\"\\(.*\\)\"$/\\1/p' %s", f"{config}/trino/trino.env").splitlines(),
    ]
    assert len(own) >= 3
    log = "\n".join(
        [
            *(f"known {form}" for known in (*own, fakes["env"], fakes["pgpass"]) for form in written(known)),
            f"password={fakes['plain']}", f"Authorization: Bearer {fakes['header']}",
            f"-----BEGIN PRIVATE KEY-----\n{fakes['key']}\n-----END PRIVATE KEY-----",
            f"postgresql://ada:{quote(fakes['url'], safe='')}@db/x",
            f"<name>a.secret</name><final>true</final><value>{escape(fakes['xml'])}</value>",
            f"password: |\n  {fakes['block']}", f"+ keytool -keypass {shlex.quote(fakes['shell'])} -v",
            "ALTER ROLE ada PASSWORD '{}'".format(fakes["sql"].replace("'", "''")),
            json.dumps({"password": fakes["json"]}),
        ]
    )  # fmt: skip
    with (
        planted(machine, f"{config}/trino/kit.env", f'KIT_FAKE="{fakes["env"]}"'),
        planted(machine, "/root/.pgpass", f"db:5432:x:ada:{fakes['pgpass']}"),
        planted(machine, f"{config}/trino/kit-fake.txt", f"connection-password={fakes['plain']}"),
        planted(machine, f"{data}/trino/var/log/kit-fake.log", log, users["trino"]),
        linked(machine, f"{data}/spark/work", text=(of_root := secrets.token_hex(16))),
    ):
        logs = see("logs", path, "spark_worker", "--host", machine.host.name)
        said = see("support-bundle", path, "--size", str(MIB), "--json")
    document = json.loads(said.out)
    found = ROOT / document["archive"]
    try:
        assert (said.code, document["findings"]) == (0, []), said.err
        assert (stat.S_IMODE(found.stat().st_mode), found.stat().st_size <= MIB << 20) == (0o600, True)
        texts = unpacked(found)
    finally:
        found.unlink()
    everything = "\n".join(texts.values())
    places = {
        # The list of names alone: a failure must not print a password either.
        name: [file for file, text in texts.items() if any(form in text for form in traces(value))]
        for name, value in [*fakes.items(), *((f"own {number}", one) for number, one in enumerate(own))]
    }
    assert {name: files for name, files in places.items() if files} == {}
    assert of_root not in everything + logs.out
    assert document["masked"] >= len(own) + len(fakes)
    assert "known ********" in everything
    for host in cluster.hosts:
        files = {name.removeprefix(f"{host.name}/") for name in texts if name.startswith(f"{host.name}/")}
        assert {
            "machine/disk.txt",
            "machine/clock.txt",
            "units/states.txt",
            "journal/hdfs-datanode.txt",
        } <= files
        assert "Full thread dump" in texts[f"{host.name}/threads/hdfs-datanode.txt"]
    once = {
        "status.json",
        "doctor.json",
        "runs.json",
        "inventory/hosts.yml",
        "contents.json",
        "jobs/trino.json",
    }
    assert once <= texts.keys()


def written(secret: str) -> list[str]:
    """How a secret may stand in a log."""
    return [
        secret, quote(secret, safe=""), base64.b64encode(secret.encode()).decode(), json.dumps(secret)[1:-1],
        base64.b64encode(f"ada:{secret}".encode()).decode(), secret.encode().hex(),
    ]  # fmt: skip


def traces(secret: str) -> list[str]:
    """What of it would tell the secret: of base64 the part without a user's name."""
    *others, coded, code = written(secret)
    return [*others, code, coded[8:-4]]


def unpacked(archive: Path) -> dict[str, str]:
    """The texts of an archive by their names below its one folder."""
    with tarfile.open(archive) as found:
        return {
            one.name.partition("/")[2]: (found.extractfile(one) or io.BytesIO()).read().decode()
            for one in found
        }
