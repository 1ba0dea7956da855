"""The command line: every verb is there, and an error is one line and exit code 1."""

from __future__ import annotations

import argparse
import errno
from collections.abc import Iterator

import pytest

from lakehouse import cli, commands, nodes, run, targets, verbs
from lakehouse.dev import bench
from lakehouse.errors import LakehouseError

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


def every_verb(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Give the words of each verb, and of those that only group others."""
    yield words
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, verb in action.choices.items():
                yield from every_verb(verb, (*words, name))


class TestParser:
    """Verbs and their arguments."""

    @pytest.mark.parametrize("verb", VERBS)
    def test_every_verb_takes_an_inventory_and_has_the_local_one(self, verb: str) -> None:
        assert cli.parser().parse_args([verb]).inventory == "inventory/local"
        assert cli.parser().parse_args([verb, "-i", "other"]).inventory == "other"

    @pytest.mark.parametrize("verb", ["fetch", "lock"])
    def test_artifacts_has_verbs_of_its_own(self, verb: str) -> None:
        assert callable(cli.action(cli.parser().parse_args(["artifacts", verb]).action))

    @pytest.mark.parametrize("verb", VERBS)
    def test_every_verb_does_something(self, verb: str) -> None:
        assert callable(cli.action(cli.parser().parse_args([verb]).action))

    @pytest.mark.parametrize("words", [*every_verb(cli.parser())], ids=" ".join)
    def test_every_verb_has_a_help(self, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as ended:
            cli.parser().parse_args([*words, "--help"])
        assert ended.value.code == 0
        assert capsys.readouterr().out.startswith(f"usage: {' '.join(('lakehouse', *words))} ")

    def test_the_targets_are_those_that_the_suites_know(self) -> None:
        assert (commands.MACHINES, commands.COMPOSE) == targets.KINDS

    def test_the_options_of_single_verbs(self) -> None:
        assert cli.parser().parse_args(["test", "--keep"]).keep
        assert cli.parser().parse_args(["smoke", "a", "b"]).selection == ["a", "b"]

    @pytest.mark.parametrize(
        ("words", "name", "value"),
        [
            (["catalog", "diff", "A", "--json", "B"], "new", "B"),
            (["catalog", "show", "A", "-i", "other", "db.t"], "name", "db.t"),
            (["smoke", "a", "--started", "3", "b"], "selection", ["a", "b"]),
            (["smoke", "a", "--", "-k", "b"], "selection", ["a", "-k", "b"]),
        ],
    )
    def test_an_option_may_stand_between_two_arguments(
        self, words: list[str], name: str, value: object
    ) -> None:
        assert getattr(cli.parsed(words), name) == value

    @pytest.mark.parametrize("argv", [[], ["artifacts"], ["destroy"], ["up", "--unknown"]])
    def test_what_it_does_not_know_is_a_usage_error(
        self, argv: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(SystemExit) as ended:
            cli.main(argv)
        assert ended.value.code == cli.USAGE
        assert "usage: lakehouse" in capsys.readouterr().err


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
        assert cli.main(["down", "-i", "inventory/none"]) == 1
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
        assert cli.main(["status", "-i", "inventory/none"]) == commands.NOT_KNOWN
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err == "error: inventory inventory/none does not exist; next: ls -d inventory/*\n"

    def test_nodes_prints_a_line_per_node(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(nodes, "status", lambda _: ["n1 running", "n2 absent"])
        assert cli.main(["nodes"]) == 0
        assert capsys.readouterr().out == "n1 running\nn2 absent\n"
