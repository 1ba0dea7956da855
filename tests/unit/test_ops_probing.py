"""How a cluster is asked: one deadline for all, connections as Ansible has them, and no guess."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from lakehouse.errors import LakehouseError
from lakehouse.maybe import Answer
from lakehouse.model.inventory import Host
from lakehouse.remote import hosts, probing
from lakehouse.remote.probing import Http, Probe, Prober, Question, Session, Shell, Thrift
from lakehouse.run import ROOT
from suites.testbed.waiting import wait_for
from tests.unit import patience


def host(**variables: object) -> Host:
    return Host("n1", "10.0.0.1", frozenset(), variables)


@pytest.fixture
def asker() -> Iterator[Prober]:
    with closing(Prober()) as made:
        yield made


@pytest.fixture
def silent_ports() -> Iterator[list[int]]:
    """Ports that take a connection and never say a word, as those of a machine that hangs."""
    with ExitStack() as stack:
        yield [stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1] for _ in range(6)]


def fake(**responses: object) -> dict[str, Any]:
    return {"fake_responses": responses, "fake_delay": 0, "fake_delay_jitter": 0}


def test_silent_machines_and_services_are_unknown_at_the_one_deadline(
    asker: Prober, silent_ports: list[int]
) -> None:
    data = {
        f"n{port}": {"ssh_hostname": "127.0.0.1", "ssh_port": port, "ssh_strict_host_key_checking": "yes"}
        for port in silent_ports[:3]
    }
    questions: list[Question] = [
        *(Shell(name, name, "true") for name in data),
        Http("http", f"http://127.0.0.1:{silent_ports[3]}/", {}),
        Thrift("thrift", "127.0.0.1", silent_ports[4], "get_all_databases"),
    ]
    # Nothing ever answers here: what waits for one of them never ends.
    with patience.kept():
        answers = asker.ask(data, questions, time.monotonic() + 3)
    assert answers.keys() == {one.name for one in questions}
    assert {answer.why[:13] for answer in answers.values()} == {"no answer in "}


def test_one_host_that_answers_is_known_beside_one_that_refuses(asker: Prober) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    data = {"@fake/n1": fake(echo="word"), "n2": {"ssh_hostname": "127.0.0.1", "ssh_port": port}}
    questions = [Shell("one", "@fake/n1", "echo word"), Shell("two", "n2", "true")]
    answers = asker.ask(data, questions, time.monotonic() + patience.SECONDS)
    assert answers["one"].value is not None
    assert answers["one"].value.text == "word"
    assert not answers["two"].known


def test_a_command_that_fails_in_silence_is_unknown(asker: Prober) -> None:
    data = {"@fake/n1": fake(broken={"stdout": "", "stderr": "sh: broken: not found", "success": False})}
    answers = asker.ask(data, [Shell("one", "@fake/n1", "broken")], time.monotonic() + patience.SECONDS)
    assert answers["one"].why == "sh: broken: not found"


def test_a_line_that_was_cut_off_is_no_answer() -> None:
    whole = json.dumps({"name": "a", "value": "x", "why": "", "began": 1.0, "ended": 2.0})
    assert probing.parse_answers(f"{whole}\n{whole[:20]}") == {"a": Answer(probing.Reply("x", 1.0, 2.0))}


def test_a_host_is_reached_as_ansible_reaches_it() -> None:
    found = hosts.connection(
        host(
            ansible_user="admin",
            ansible_port=2222,
            ansible_ssh_private_key_file="/keys/id",
            ansible_ssh_common_args="-o StrictHostKeyChecking=accept-new",
            ansible_ssh_extra_args="-C -o 'UserKnownHostsFile=\"/a b/known\"'",
        )
    )
    assert found == {
        "ssh_hostname": "10.0.0.1",
        "ssh_user": "admin",
        "ssh_port": 2222,
        "ssh_key": "/keys/id",
        "ssh_strict_host_key_checking": "accept-new",
        "ssh_known_hosts_file": "/a b/known",
    }


def test_a_port_of_the_inventory_is_one_that_pyinfra_takes(asker: Prober) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    found = hosts.connection(Host("n1", "127.0.0.1", frozenset(), {"ansible_port": str(port)}))
    answers = asker.ask({"n1": found}, [Shell("one", "n1", "true")], time.monotonic() + patience.SECONDS)
    assert not answers["one"].known


def test_a_host_whose_key_nobody_knows_is_refused_and_no_password_is_handed_over() -> None:
    secrets = dict.fromkeys(("ansible_password", "ansible_become_password"), "a-secret")
    found = hosts.connection(host(**secrets))
    assert found == {"ssh_hostname": "10.0.0.1", "ssh_strict_host_key_checking": "yes"}


@pytest.fixture
def session() -> Iterator[Session]:
    with closing(Session({"@fake/n1": fake(echo="word", later="again")})) as made:
        yield made


def test_a_session_is_asked_again_and_again(session: Session) -> None:
    for script, said in (("echo word", "word"), ("later", "again")):
        answer = session.ask([Shell("one", "@fake/n1", script)], patience.SECONDS)["one"]
        assert answer.value is not None
        assert answer.value.text == said


def test_what_was_late_is_no_answer_to_the_next_question(session: Session, silent_ports: list[int]) -> None:
    slow = Http("one", f"http://127.0.0.1:{silent_ports[0]}/", {})
    assert session.ask([slow], 0.5)["one"].why.startswith("no answer in ")
    answer = session.ask([Shell("one", "@fake/n1", "echo word")], patience.SECONDS)["one"]
    assert answer.value is not None
    assert answer.value.text == "word"


def test_who_ends_a_long_question_is_answered_at_once(session: Session, silent_ports: list[int]) -> None:
    """As Ctrl-C does in a step that lasts: the lock is still to be given back."""

    def ends(*_: object) -> None:
        raise KeyboardInterrupt

    assert session.ask([Shell("one", "@fake/n1", "echo word")], patience.SECONDS)["one"].known
    before = signal.signal(signal.SIGALRM, ends)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            session.ask([Http("one", f"http://127.0.0.1:{silent_ports[0]}/", {})], 10 * patience.SECONDS)
    finally:
        signal.signal(signal.SIGALRM, before)
    answer = session.ask([Shell("one", "@fake/n1", "later")], patience.SECONDS)["one"]
    assert answer.value is not None
    assert answer.value.text == "again"


def test_another_child_repeats_what_the_one_before_it_did(tmp_path: Path) -> None:
    """A lock that is not touched any more would be taken for a dead one."""
    beat = tmp_path / "beat"
    with closing(Session({"@local": {}})) as made:
        made.repeat([Shell("beat", "@local", f"date +%s.%N > {beat}")], 0.2)
        made._worker.kill()
        with pytest.raises(LakehouseError, match="pyinfra"):
            made.ask([Shell("one", "@local", "true")], 1)
        beat.unlink(missing_ok=True)
        assert made.ask([Shell("one", "@local", "echo word")], patience.SECONDS)["one"].known
        wait_for("a beat", beat.exists, seconds=patience.SECONDS)


def test_a_session_whose_child_is_gone_is_one_line(session: Session) -> None:
    session.close()
    with pytest.raises(LakehouseError, match="pyinfra"):
        session.ask([Shell("one", "@fake/n1", "echo word")], 1)


def test_what_a_session_repeats_ends_with_the_program_that_asked(tmp_path: Path) -> None:
    """Killed so that it can tidy nothing up: a lock that is touched for ever would never be stale."""
    program = (
        "import sys, time; from lakehouse.remote.probing import Session, Shell\n"
        "session = Session({'@local': {}})\n"
        f"session.repeat([Shell('beat', '@local', 'date +%s.%N > {tmp_path}/beat')], 0.2)\n"
        "print('ready', flush=True); time.sleep(60)"
    )
    beat = tmp_path / "beat"
    argv = [sys.executable, "-c", program]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        wait_for("a first beat", beat.exists, seconds=patience.SECONDS)
        first = beat.read_text()
        wait_for("another one", lambda: beat.read_text() not in {"", first}, seconds=patience.SECONDS)
        process.kill()

    def silent() -> bool:
        return time.time() - beat.stat().st_mtime > 3

    wait_for("no beat", silent, seconds=patience.SECONDS)


def test_a_probe_is_asked_as_a_play_does(session: Session, silent_ports: list[int]) -> None:
    probe = {"kind": "thrift", "host": "127.0.0.1", "port": silent_ports[0], "call": "x"}
    answer = session.ask([Probe("one", probe)], 1)["one"]
    assert not answer.known
