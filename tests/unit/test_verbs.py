"""What Ansible changed is counted, what failed is quoted, and a failed check stops before the cluster."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from rich.console import Console

from lakehouse import cli, commands, phases, report, run, verbs
from lakehouse.commands import test
from lakehouse.dev import bench
from lakehouse.errors import LakehouseError
from lakehouse.local import nodes
from lakehouse.local.compose import dotenv, names, stack
from lakehouse.maybe import Answer
from lakehouse.tables import census_program
from lakehouse.tables.census_program import Reply

RECAP = """\
TASK [changed=99 stands in a task's name] ***
PLAY RECAP *********************************************************************
n1   : ok=7    changed=6    unreachable=0    failed=0    skipped=0    rescued=0    ignored=0
n2   : ok=4    changed=13   unreachable=0    failed=0    skipped=3    rescued=0    ignored=0
n3   : ok=4    changed=0    unreachable=0    failed=0    skipped=3    rescued=0    ignored=0
"""


@pytest.fixture(autouse=True)
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A build folder of its own."""
    monkeypatch.setattr(run, "BUILD", tmp_path)
    monkeypatch.setattr(run, "LOGS", tmp_path / "log")
    monkeypatch.setattr(verbs, "REPORT", tmp_path / "report")
    monkeypatch.setattr(verbs, "PHASES", tmp_path / "report" / "phases.json")
    return tmp_path


@pytest.fixture
def ansible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of a program that stands in for ansible-playbook."""
    program = tmp_path / "ansible-playbook"
    monkeypatch.setattr(run, "program", lambda name: str(tmp_path / name))
    return program


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


def statuses() -> dict[str, str]:
    """The phases of this run by name."""
    return {phase.name: phase.status for phase in phases.read(verbs.PHASES)}


WARNING = "WARN hadoop.keys all: Hadoop has no key dfs.replicaton (hdfs_site): did you mean dfs.replication?"


class TestPlaybook:
    """A run of Ansible."""

    @pytest.mark.parametrize("phase", ["converge", "configuration"])
    def test_warnings_of_a_run_that_succeeds_are_printed_and_recorded(
        self, phase: str, ansible: Path
    ) -> None:
        script(ansible, f"cat <<'END'\nTASK [x]\n{WARNING}\nWARN is no check: x\n{RECAP}END")
        console = Console(file=io.StringIO(), force_terminal=False, width=80)
        shown = phases.Phases(verbs.PHASES, console)
        if phase == "converge":
            verbs.converge(shown, "inventory/x")
        else:
            stack.render(shown, dotenv.load(environment={}))
        assert isinstance(console.file, io.StringIO)
        assert [line for line in console.file.getvalue().splitlines() if "WARN" in line] == [WARNING]
        assert [each.warnings for each in phases.read(verbs.PHASES)] == [(WARNING,)]

    def test_changed_tasks_are_summed_over_hosts(self, ansible: Path, build: Path) -> None:
        script(ansible, f"cat <<'END'\n{RECAP}END")
        assert run.playbook("site", "inventory/x") == 19
        assert (build / "log" / "site.log").read_text(encoding="utf-8") == RECAP

    def test_it_is_told_inventory_playbook_and_the_rest(self, ansible: Path, build: Path) -> None:
        script(ansible, 'echo "$@" "$LAKEHOUSE_TIMINGS"')
        assert run.playbook("load", "inventory/x", "--tags", "a b") == 0
        log = (build / "log" / "load.log").read_text(encoding="utf-8")
        assert log == f"-i inventory/x playbooks/load.yml --tags a b {build}/bench/load.json\n"

    def test_a_failure_shows_the_end_and_where_the_rest_is(self, ansible: Path, build: Path) -> None:
        script(ansible, 'for line in $(seq 100); do echo "line $line"; done; echo "the reason" >&2; exit 4')
        with pytest.raises(LakehouseError) as failed:
            run.playbook("site", "inventory/x")
        lines = failed.value.message.splitlines()
        assert lines[-2:] == ["the reason", "ansible-playbook failed (exit 4)"]
        assert len(lines) == run.SHOWN_LINES + 1
        assert failed.value.next_command == f"less {build / 'log' / 'site.log'}"


class TestTimed:
    """A program on this terminal."""

    def test_it_passes_or_not_and_both_are_recorded(self) -> None:
        timer = verbs.start()
        assert verbs.timed(timer, "good", ["true"])
        assert not verbs.timed(timer, "bad", ["false"])
        assert statuses() == {"good": phases.PASSED, "bad": phases.FAILED}


class TestStart:
    """A new list of phases."""

    def test_it_forgets_the_last_run(self) -> None:
        verbs.timed(verbs.start(), "old", ["true"])
        verbs.start()
        assert statuses() == {}

    def test_what_came_before_counts_from_the_time_that_make_knows(self) -> None:
        verbs.start(time.time() - 10)
        [tools] = phases.read(verbs.PHASES)
        assert tools.name == "tools"
        assert 10 <= tools.seconds < 60


def test_only_an_inventory_of_containers_is_local() -> None:
    assert verbs.is_local(str(run.ROOT / "inventory" / "local"))
    assert not verbs.is_local(str(run.ROOT / "inventory" / "three-node"))


def test_real_machines_need_no_docker_and_no_nodes() -> None:
    verbs.up(verbs.start(), str(run.ROOT / "inventory" / "three-node"))
    assert statuses() == {}


@pytest.mark.parametrize("broken", ["lint", "unit"])
def test_a_failed_check_ends_the_test_before_any_cluster(
    monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def untouched(*_: object) -> None:
        raise AssertionError("a cluster was touched")

    monkeypatch.setattr(names, "unknown", lambda _: [])
    monkeypatch.setattr(nodes, "down", untouched)
    monkeypatch.setattr(verbs, "machines", untouched)
    monkeypatch.setattr(verbs, "fetch", lambda *_, **__: None)
    monkeypatch.setattr(verbs, "images_of_tests", lambda _: None)
    monkeypatch.setattr(test, "FAST_CHECKS", {"lint": ["true"], "unit": ["true"], broken: ["false"]})
    assert cli.main(["test", "-i", "tests/inventory"]) == 1
    assert statuses()[broken] == phases.FAILED


@pytest.mark.parametrize("broken", ["", "network tests", *verbs.CLUSTER_TESTS])
def test_every_marker_is_run_and_must_pass(monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    ran: dict[str, list[str]] = {}

    def timed(_: phases.Phases, name: str, argv: list[str]) -> bool:
        ran[name] = argv[1:]
        return name != broken

    def done(result: object) -> Callable[..., object]:
        return lambda *_, **__: result

    monkeypatch.setattr(names, "unknown", done([]))
    monkeypatch.setattr(nodes, "down", done(None))
    monkeypatch.setattr(report, "build", done(0))
    for verb, result in {
        "fetch": None,
        "images_of_tests": None,
        "machines": None,
        "core_first": True,
        "serve": None,
        "converge": 0,
        "compose_test": True,
    }.items():
        monkeypatch.setattr(verbs, verb, done(result))
    monkeypatch.setattr(verbs, "timed", timed)
    assert cli.main(["test", "-i", "tests/inventory"]) == int(bool(broken))
    assert ran["network tests"] == [test.NETWORK_TESTS, "-m", "network"]
    for name, chosen in verbs.CLUSTER_TESTS.items():
        assert ran[name] == ["tests/cluster", "--inventory", "tests/inventory", *chosen]


def test_the_real_mavens_tests_are_all_asked_for() -> None:
    mark = "pytest.mark." + "network"
    marked = [path for path in (run.ROOT / "tests").rglob("*.py") if mark in path.read_text(encoding="utf-8")]
    assert marked == [run.ROOT / test.NETWORK_TESTS]


def test_what_is_no_long_drill_is_run_once_on_the_cluster() -> None:
    expressions = [arguments[1] for arguments in verbs.CLUSTER_TESTS.values()]
    for flags in product([False, True], repeat=3):
        marks = dict(zip(("alone", "drill", verbs.LONG), flags, strict=True))
        # Pytest's grammar is a part of Python's.
        run_in = [bool(eval(one, {}, marks)) for one in expressions]  # noqa: S307 -- our own text
        assert sum(run_in) == int(not marks[verbs.LONG])


class TestConfirm:
    """Nodes that are there are removed only by the name of their cluster."""

    LOCAL, TESTS, REAL = (
        str(run.ROOT / path) for path in ("inventory/local", "tests/inventory", "inventory/three-node")
    )

    @pytest.fixture(autouse=True)
    def running(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        states = ["exited", "absent"]
        monkeypatch.setattr(verbs, "docker", lambda *_: None)
        monkeypatch.setattr(
            nodes, "status", lambda _: [nodes.NodeStatus("n", "10.0.0.1", state) for state in states]
        )
        return states

    @pytest.mark.parametrize("typed", [None, "", "lakehouse", "kit-test"])
    def test_without_the_name_nothing_is_removed(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str | None
    ) -> None:
        monkeypatch.setattr(nodes, "down", None)
        refusal = "nodes of lakehouse-local with their data; nothing was removed; next: repeat with CONFIRM="
        confirm = [] if typed is None else ["--confirm", typed]
        assert cli.main(["test", "-i", self.LOCAL, *confirm]) == commands.FAILED
        assert refusal in capsys.readouterr().err
        with pytest.raises(LakehouseError, match=refusal):
            bench.measure(self.LOCAL, typed)

    @pytest.mark.parametrize(("path", "cluster"), [(LOCAL, "lakehouse-local"), (TESTS, "kit-test")])
    def test_with_the_name_they_are_whoever_made_them(
        self, monkeypatch: pytest.MonkeyPatch, path: str, cluster: str
    ) -> None:
        removed: list[tuple[str, bool]] = []
        monkeypatch.setattr(nodes, "down", lambda path, _, *, whosever: removed.append((path, whosever)))
        verbs.confirm(verbs.start(), path, cluster)
        assert removed == [(path, True)]

    def test_where_there_are_none_no_name_is_wanted(self, running: list[str]) -> None:
        running[:] = ["absent", "absent"]
        verbs.confirm(verbs.start(), self.LOCAL, None)

    @pytest.mark.parametrize("typed", [None, "", "another"])
    def test_the_cluster_of_the_tests_and_real_machines_need_no_name(
        self, monkeypatch: pytest.MonkeyPatch, typed: str | None
    ) -> None:
        monkeypatch.setattr(nodes, "down", None)
        verbs.confirm(verbs.start(), self.TESTS, typed)
        verbs.confirm(verbs.start(), self.REAL, None)


def test_who_may_not_write_the_names_hears_it_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(names, "unknown", list)
    monkeypatch.setattr(names, "HOSTS", tmp_path / "of-root")
    assert cli.main(["test", "-i", "tests/inventory"]) == commands.FAILED
    assert "; next: sudo make compose-names ENV_FILE=tests/compose/test.env\n" in capsys.readouterr().err


def test_an_earlier_smoke_result_is_never_taken_for_this_one(ansible: Path, build: Path) -> None:
    old = build / "report" / "smoke-junit.xml"
    old.parent.mkdir()
    old.write_text("<testsuites/>", encoding="utf-8")
    script(ansible, "exit 0")
    script(ansible.with_name("pytest"), "exit 1")
    assert not verbs.smoke(verbs.start(), "inventory/x")
    assert not old.exists()
    assert statuses() == {"endpoints": phases.PASSED, "smoke": phases.FAILED}


class TestMatrix:
    """The suite of several engines."""

    @pytest.fixture
    def suite(self, ansible: Path, build: Path) -> Path:
        script(ansible, "true")
        script(build / "pytest", f'echo "$@" > {build}/asked')
        return build / "asked"

    def test_it_runs_where_there_is_more_than_spark(self, suite: Path, build: Path) -> None:
        (build / "endpoints.json").write_text('{"trino": {}, "flink": null}', encoding="utf-8")
        assert verbs.matrix(verbs.start(), "inventory/x", "-k", "merge")
        results = build / "report" / "matrix-junit.xml"
        assert suite.read_text(encoding="utf-8") == f"suites/matrix --junit-xml={results} -k merge\n"
        assert statuses() == {"endpoints": phases.PASSED, "matrix": phases.PASSED}

    def test_spark_alone_has_no_matrix(self, suite: Path, build: Path) -> None:
        (build / "endpoints.json").write_text('{"trino": null, "spark": {}}', encoding="utf-8")
        assert verbs.matrix(verbs.start(), "inventory/x")
        assert not suite.exists()
        assert statuses() == {"endpoints": phases.PASSED}

    def test_the_smoke_suite_is_the_core(self, suite: Path, build: Path) -> None:
        assert verbs.smoke(verbs.start(), "inventory/x")
        results = build / "report" / "smoke-junit.xml"
        assert suite.read_text(encoding="utf-8") == f"smoke --junit-xml={results}\n"


@pytest.mark.parametrize(
    ("verb", "renewed"), [(verbs.compose_image, [{"renewed": True}]), (verbs.compose_up, [{}])]
)
def test_only_who_asks_for_images_moves_a_tag_of_ones_own(
    monkeypatch: pytest.MonkeyPatch, verb: Callable[..., None], renewed: list[dict[str, bool]]
) -> None:
    asked: list[dict[str, bool]] = []
    for name in ("check", "render", "up"):
        monkeypatch.setattr(stack, name, lambda *_: None)
    for name in ("engine", "fetch", "_refuse_foreign"):
        monkeypatch.setattr(verbs, name, lambda *_, **__: None)
    monkeypatch.setattr(stack, "build", lambda *_, **how: asked.append(how))
    verb(verbs.start(), dotenv.load(environment={}))
    assert asked == renewed


class TestCensus:
    """The page beside the report."""

    @pytest.fixture
    def replies(self, build: Path, monkeypatch: pytest.MonkeyPatch) -> list[Reply]:
        (build / "report").mkdir()
        answers: list[Reply] = []
        monkeypatch.setattr(census_program, "run", lambda *_: answers.pop(0))
        return answers

    def test_it_is_written_after_both_programs(self, replies: list[Reply], build: Path) -> None:
        row = {"name": "iceberg", "table_count": 1, "files": 1, "size_bytes": 1}
        groups = dict.fromkeys(("formats", "versions", "databases", "owners"), (row,))
        document = {**groups, "findings": [], "history": []}
        replies += [Reply(Answer(0), {"tables": 1}, ""), Reply(Answer(0), document, "")]
        verbs.census(verbs.start(), str(run.ROOT / "tests/inventory"))
        assert "iceberg" in (build / "report" / report.CENSUS).read_text()
        assert [phase.status for phase in phases.read(verbs.PHASES)] == [phases.PASSED]

    def test_a_failure_is_a_phase_that_failed(self, replies: list[Reply], build: Path) -> None:
        replies.append(Reply(Answer(2), {"error": "HDFS does not answer"}, ""))
        verbs.census(verbs.start(), str(run.ROOT / "tests/inventory"))
        assert not (build / "report" / report.CENSUS).exists()
        assert [phase.status for phase in phases.read(verbs.PHASES)] == [phases.FAILED]
