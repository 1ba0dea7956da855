from __future__ import annotations

import pytest

from suites.testbed.nodes import CommandError
from suites.testbed.systemd import SystemdNodes


class Recorder:
    """A shell that writes down what it is told and answers from a script."""

    def __init__(self, *answers: tuple[int, str, str]) -> None:
        self.commands: list[tuple[str, str]] = []
        self.answers = list(answers)

    def run(self, host: str, command: str) -> tuple[int, str, str]:
        self.commands.append((host, command))
        return self.answers.pop(0) if self.answers else (0, "", "")


def test_a_program_runs_as_a_user_with_a_time_limit() -> None:
    shell = Recorder((0, "done", ""))
    output = SystemdNodes(shell).run("n1", "echo", "a b", user="etl", environment={"X": "1 2"}, seconds=5)
    assert output == "done"
    assert shell.commands == [("n1", "runuser -u etl -- env 'X=1 2' timeout 5 echo 'a b'")]


def test_root_is_who_comes_in() -> None:
    shell = Recorder()
    SystemdNodes(shell).run("n1", "id")
    assert shell.commands == [("n1", "env timeout 60 id")]


def test_a_failure_says_where_and_what() -> None:
    with pytest.raises(CommandError, match="n1: systemctl start x: status 5: Unit x not found"):
        SystemdNodes(Recorder((5, "", "Unit x not found"))).start("n1", "x")


def test_a_stopped_unit_is_started_whatever_happens() -> None:
    shell = Recorder()
    with pytest.raises(ZeroDivisionError), SystemdNodes(shell).stopped("n3", "datanode"):
        raise ZeroDivisionError
    assert [command.rpartition("systemctl ")[2] for _, command in shell.commands] == [
        "stop datanode",
        "start datanode",
    ]


def test_a_killed_unit_is_left_to_systemd() -> None:
    shell = Recorder()
    SystemdNodes(shell).kill("n3", "datanode")
    [(host, command)] = shell.commands
    assert (host, command.rpartition("systemctl ")[2]) == ("n3", "kill -s KILL datanode")


def test_rows_of_postgresql() -> None:
    shell = Recorder((0, '[{"NAME": "default"}]\n', ""))
    rows = SystemdNodes(shell).select("n1", "hms", "hive", 'SELECT "NAME" FROM "DBS"')
    assert rows == [{"NAME": "default"}]
    assert shell.commands[0][1].startswith("runuser -u postgres -- ")
