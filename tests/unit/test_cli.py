"""The command line: every verb is there, and an error is one line and exit code 1."""

from __future__ import annotations

import errno
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import get_type_hints

import click
import pytest

from lakehouse import cli, commands, log, run, verbs
from lakehouse.dev import bench
from lakehouse.errors import LakehouseError
from lakehouse.local import nodes
from tests.unit import command_line

VERBS = (
    "deploy",
    "test",
    "up",
    "down",
    "nodes",
    "status",
    "doctor",
    "console",
    "smoke",
    "bench",
    "risky-tables",
)


def raising(error: BaseException) -> object:
    """Return a function that raises the error, whatever it is called with."""

    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


class TestParser:
    """Verbs and their arguments."""

    @pytest.mark.parametrize("verb", VERBS)
    def test_every_verb_takes_an_inventory_and_has_the_local_one(self, verb: str) -> None:
        assert command_line.parsed([verb]).params["inventory"] == "inventory/local"
        assert command_line.parsed([verb, "-i", "other"]).params["inventory"] == "other"

    @pytest.mark.parametrize("verb", ["fetch", "lock"])
    def test_artifacts_has_verbs_of_its_own(self, verb: str) -> None:
        assert callable(command_line.parsed(["artifacts", verb]).command.callback)

    @pytest.mark.parametrize("verb", VERBS)
    def test_every_verb_does_something(self, verb: str) -> None:
        assert callable(command_line.parsed([verb]).command.callback)

    @pytest.mark.parametrize("words", [*command_line.every()], ids=" ".join)
    def test_every_verb_has_a_help(self, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.main([*words, "--help"]) == 0
        usage, _, summary, *_ = capsys.readouterr().out.splitlines()
        assert usage.startswith(f"Usage: {' '.join(('lakehouse', *words))} ")
        assert summary.strip()

    @pytest.mark.parametrize("words", [*command_line.every()], ids=" ".join)
    def test_every_option_of_a_command_is_a_parameter_of_its_function(self, words: tuple[str, ...]) -> None:
        context = click.Context(cli.ROOT)
        command: click.Command = cli.ROOT
        for name in words:
            assert isinstance(command, click.Group)
            command = command.get_command(context, name) or command
        if isinstance(command, click.Group):
            return
        assert command.callback
        function = inspect.unwrap(command.callback)
        expected = set[str]()
        for name, kind in get_type_hints(function).items():
            expected |= {field.name for field in fields(kind)} if is_dataclass(kind) else {name}
        # What `exec` finds after --.
        line = {"line"} if words == ("exec",) else set[str]()
        assert {param.name for param in command.params} | line == expected - {"return"}

    def test_a_command_that_is_not_there_is_answered_with_the_nearest(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert cli.main(["restrat"]) == commands.USAGE
        [line] = capsys.readouterr().err.splitlines()
        assert "Did you mean one of: 'restart'" in line

    def test_an_option_of_a_group_is_the_default_of_its_commands(self) -> None:
        assert command_line.parsed(["catalog", "-i", "other", "log"]).params["inventory"] == "other"
        assert command_line.parsed(["catalog", "-i", "other", "log", "-i", "x"]).params["inventory"] == "x"
        assert command_line.parsed(["metastore", "-i", "other", "check"]).params["inventory"] == "other"

    def test_the_options_of_single_verbs(self) -> None:
        assert command_line.parsed(["test", "--keep"]).params["keep"]
        assert command_line.parsed(["smoke", "a", "b"]).params["selection"] == ("a", "b")

    @pytest.mark.parametrize(
        ("words", "name", "value"),
        [
            (["status"], "watch", None),
            (["status", "--watch"], "watch", 5.0),
            (["status", "--watch", "2"], "watch", 2.0),
            (["status", "--watch", "--json"], "watch", 5.0),
            (["catalog", "commit"], "pin", None),
            (["catalog", "commit", "--pin"], "pin", 30),
            (["catalog", "commit", "--pin", "7"], "pin", 7),
        ],
    )
    def test_the_value_of_an_option_may_be_left_out(self, words: list[str], name: str, value: object) -> None:
        assert command_line.parsed(words).params[name] == value

    @pytest.mark.parametrize(
        "words",
        [
            ["maintenance", "n1", "--for", "2h", "--end"],
            ["restore", "--table", "a.b", "--to", "x"],
            ["exec", "--host", "n1", "--group", "g", "--", "true"],
            ["logs", "trino", "--json", "--follow"],
            ["sql", "--engine", "trino", "--json", "--csv"],
            ["catalog", "diff", "--json", "--sql"],
            ["catalog", "revert", "x", "--ours", "--theirs"],
        ],
        ids=" ".join,
    )
    def test_options_that_exclude_each_other_are_a_usage_error(
        self, words: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert cli.main(words) == commands.USAGE
        [line] = capsys.readouterr().err.splitlines()
        assert "exclude each other; next: " in line

    @pytest.mark.parametrize(
        ("words", "name", "value"),
        [
            (["catalog", "diff", "A", "--json", "B"], "new", "B"),
            (["catalog", "show", "A", "-i", "other", "db.t"], "name", "db.t"),
            (["smoke", "a", "--started", "3", "b"], "selection", ("a", "b")),
            (["smoke", "a", "--", "-k", "b"], "selection", ("a", "-k", "b")),
        ],
    )
    def test_an_option_may_stand_between_two_arguments(
        self, words: list[str], name: str, value: object
    ) -> None:
        assert command_line.parsed(words).params[name] == value

    @pytest.mark.parametrize("argv", [[], ["artifacts"], ["destroy"], ["up", "--unknown"]])
    def test_what_it_does_not_know_is_a_usage_error(
        self, argv: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert cli.main(argv) == commands.USAGE
        text = capsys.readouterr().err
        assert ("Usage: lakehouse" if argv in ([], ["artifacts"]) else "; next: .venv/bin/lakehouse ") in text


class TestMain:
    """What a person sees in the end."""

    def test_an_error_is_one_line_with_the_next_command(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        error = LakehouseError("node n1 does not answer", "ssh n1")
        monkeypatch.setattr(verbs, "down", raising(error))
        assert cli.main(["down"]) == 1
        assert capsys.readouterr().err == "error: node n1 does not answer; next: ssh n1\n"

    def test_a_full_disk_is_one_line_too(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        error = OSError(errno.ENOSPC, "No space left on device", "/var/cache/x")
        monkeypatch.setattr(verbs, "down", raising(error))
        assert cli.main(["down"]) == 1
        assert capsys.readouterr().err == (
            "error: /var/cache/x: No space left on device; next: df -h, ls -ld /var/cache/x\n"
        )

    def test_an_interrupt_says_how_to_go_on(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(verbs, "down", raising(KeyboardInterrupt()))
        assert cli.main(["down"]) == 130
        assert capsys.readouterr().err == "interrupted; next: run the same command again\n"

    def test_an_inventory_that_is_not_there_is_one_line(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.main(["down", "-i", "inventory/none"]) == commands.USAGE
        assert (
            capsys.readouterr().err
            == "error: inventory inventory/none does not exist; next: ls -d inventory/*\n"
        )

    def test_real_machines_are_never_removed(self, capsys: pytest.CaptureFixture[str]) -> None:
        real = str(run.ROOT / "inventory" / "three-node")
        assert cli.main(["down", "-i", real]) == 1
        assert (
            "has real machines, which are never removed; next: .venv/bin/ansible-playbook"
            in capsys.readouterr().err
        )

    def test_the_code_of_the_verb_is_the_exit_code(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(bench, "measure", lambda *_: 7)
        assert cli.main(["bench"]) == 7

    def test_a_status_of_nothing_is_not_that_of_a_cluster_with_a_fault(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert cli.main(["status", "-i", "inventory/none"]) == commands.USAGE
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err == "error: inventory inventory/none does not exist; next: ls -d inventory/*\n"

    @pytest.mark.parametrize(
        "words",
        ["down", "nodes", "up", "status", "doctor", "console", "runs", "restart", "backup", "logs trino",
         "metastore check", "catalog log", "exec", "sql --engine trino x", "support-bundle"],
    )  # fmt: skip
    def test_an_inventory_that_is_not_there_has_the_same_exit_code_everywhere(
        self, words: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        line = ["--", "true"] if words == "exec" else []
        assert cli.main([*words.split(), "-i", "inventory/none", *line]) == commands.USAGE
        error = capsys.readouterr().err
        assert "error: inventory inventory/none does not exist; next: ls -d inventory/*" in error.splitlines()

    def test_nodes_prints_a_line_per_node(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(nodes, "status", lambda _: ["n1 running", "n2 absent"])
        assert cli.main(["nodes"]) == 0
        assert capsys.readouterr().out == "n1 running\nn2 absent\n"


class TestLog:
    """What a command logs, and where."""

    @pytest.fixture(autouse=True)
    def _quiet(self) -> Iterator[None]:
        yield
        log.configure(verbose=False, file=None)

    def test_nothing_is_logged_unless_asked_for(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(nodes, "status", lambda _: [])
        assert cli.main(["nodes"]) == 0
        assert capsys.readouterr().err == ""

    def test_verbose_logs_programs_on_stderr(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(nodes, "status", lambda _: [run.shown(["false"])])
        assert cli.main(["--verbose", "nodes", "-i", "other"]) == 0
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 3, lines
        assert lines[0].endswith("INFO lakehouse.commands: lakehouse nodes (other)")
        assert re.search(r"INFO lakehouse\.run: false: exit code 1 after \S+ s$", lines[1])
        assert re.search(r"INFO lakehouse\.cli: exit code 0 after \S+ s$", lines[2])

    def test_a_log_file_has_errors_too_and_is_continued(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        file = tmp_path / "kit.log"
        monkeypatch.setattr(nodes, "status", raising(LakehouseError("n1 is gone")))
        for _ in range(2):
            assert cli.main(["--log-file", str(file), "nodes"]) == 1
        assert capsys.readouterr().err == "error: n1 is gone\n" * 2
        assert file.read_text(encoding="utf-8").count(" ERROR lakehouse.printed: n1 is gone\n") == 2

    def test_an_error_is_printed_once_with_verbose(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(nodes, "status", raising(LakehouseError("n1 is gone")))
        assert cli.main(["-v", "nodes"]) == 1
        assert capsys.readouterr().err.count("n1 is gone") == 1

    def test_an_error_before_any_command_is_printed_once(self) -> None:
        argv = [sys.executable, "-m", "lakehouse.cli", "restrat"]
        done = subprocess.run(argv, cwd=run.ROOT, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr.count("restrat")) == (commands.USAGE, "", 1), done

    def test_a_log_file_that_cannot_be_written_is_one_line(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        assert cli.main(["--log-file", str(tmp_path), "nodes"]) == commands.USAGE
        assert capsys.readouterr().err == (
            f"error: --log-file {tmp_path}: Is a directory; next: .venv/bin/lakehouse --help\n"
        )
