"""Scripts on hosts: what they say, how they end, and that nothing goes on without us."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse.model.inventory import Host
from lakehouse.remote import hosts, openssh
from lakehouse.remote.openssh import Line
from suites.testbed.waiting import wait_for
from tests.unit import patience

ONE, TWO = (Host(name, f"10.0.0.{number}", frozenset(), {}) for number, name in enumerate(("n1", "n2"), 1))


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell of this computer in place of ssh, and no sudo."""
    monkeypatch.setattr(hosts, "ssh", lambda _: ["sh", "-c"])
    monkeypatch.setattr(hosts, "as_root", lambda script: script)


def gone(pid: str) -> bool:
    """Wait until a process has ended; a busy machine may take seconds to do that."""
    return wait_for("its end", lambda: not Path(f"/proc/{pid}").exists(), seconds=patience.SECONDS)


def test_each_host_says_its_lines_and_how_its_script_ended() -> None:
    said: list[Line] = []
    scripts = {"n1": "echo out; echo err >&2", "n2": "printf 'no end'; exit 255"}
    ended = openssh.run(scripts, (ONE, TWO), said.append, 10)
    assert {name: answer.value for name, answer in ended.items()} == {"n1": 0, "n2": 255}
    assert set(said) == {Line("n1", "out"), Line("n1", "err", wrong=True), Line("n2", "no end")}


def test_what_a_script_complains_of_may_have_no_end_of_its_line() -> None:
    said: list[Line] = []
    ended = openssh.run({"n1": "printf oops >&2; exit 3"}, (ONE,), said.append, 10)
    assert (ended["n1"].value, said) == (3, [Line("n1", "oops", wrong=True)])
    with openssh.output(ONE, "printf oops >&2; exit 4", 10) as (_, code):
        assert code().value == 4


def test_a_host_that_was_not_reached_is_unknown_for_what_ssh_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "ssh", lambda _: ["sh", "-c", "echo 'n1: no route to host' >&2; exit 255"])
    ended = openssh.run({"n1": "true"}, (ONE,), lambda _: None, 10)
    assert ended["n1"].why == "n1: no route to host"


def test_a_connection_that_was_lost_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "ssh", lambda _: ["sh", "-c", "echo half"])
    assert not openssh.run({"n1": "true"}, (ONE,), lambda _: None, 10)["n1"].known


def test_the_limit_ends_a_script_and_what_it_has_started() -> None:
    said: list[Line] = []
    ended = openssh.run({"n1": "sleep 60 & echo $!; wait"}, (ONE,), said.append, 0.5)
    assert ended["n1"].value == openssh.TIMED_OUT
    assert gone(said[0].text)


def test_nothing_goes_on_after_an_interrupt() -> None:
    said: list[Line] = []

    def interrupted(line: Line) -> None:
        said.append(line)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        openssh.run({"n1": "sleep 60 & echo $!; wait"}, (ONE,), interrupted, None)
    assert gone(said[0].text)


def test_what_is_given_is_read_on_stdin_whole() -> None:
    said: list[Line] = []
    given = "SELECT 'ü $HOME `x` %s';\n" * 5000
    ended = openssh.run({"n1": "wc -c; ps -o args= -p $$"}, (ONE,), said.append, 10, given)
    assert ended["n1"].value == 0
    # A shell drops the last end of a line.
    assert said[0].text == str(len(given.encode()) - 1)
    assert "HOME" not in said[1].text


def test_bytes_come_as_they_are() -> None:
    with openssh.output(ONE, "printf '\\000\\377\\n'; exit 3", 10) as (stream, ended):
        assert stream.read() == b"\x00\xff\n"
        assert ended().value == 3


def test_ssh_is_called_as_ansible_calls_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    variables = {
        "ansible_user": "admin",
        "ansible_port": 2222,
        "ansible_ssh_private_key_file": "/keys/id",
        "ansible_ssh_common_args": "-o 'ProxyJump=gate' -o StrictHostKeyChecking=accept-new",
        "ansible_password": "a-secret",
    }
    words = hosts.ssh(Host("n1", "10.0.0.1", frozenset(), variables))
    assert words[:2] == ["ssh", "-T"]
    assert words[-2:] == ["--", "10.0.0.1"]
    assert words[2:12] == [
        "-o", "ProxyJump=gate", "-o", "StrictHostKeyChecking=accept-new",
        "-p", "2222", "-l", "admin", "-i", "/keys/id",
    ]  # fmt: skip
    # The first of two values counts.
    assert words.index("StrictHostKeyChecking=accept-new") < words.index("StrictHostKeyChecking=yes")
    assert "a-secret" not in words
