"""What another machine says never runs here, leads nowhere else, and is refused in one line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from lakehouse import inventory, yamlfile
from lakehouse.artifacts import parts
from lakehouse.run import ROOT
from ops.answer import Answer
from ops.change import lock
from ops.change.ending import Ending, Stopped
from ops.change.lock import Holder
from ops.probing import Reply
from ops.status import placement
from ops.status.placement import Cluster
from ops.upgrade import hdfs, installed, postgresql

HOSTILE = (
    "$(touch pwned)",
    "`touch pwned`",
    "a;touch${IFS}pwned",
    "a'b",
    'a"b',
    "../../etc",
    "/etc/passwd",
    "-rf",
    "a\0b",
    "a\x1b[2J",
    "a\u202eb",
    "{{lookup('pipe','touch${IFS}pwned')}}",
    "",
    "x" * 10_000_000,
)


def short(value: object) -> str:
    """The name of a test has no 10 MB."""
    return ascii(value)[:24]


HOLDER = Holder("r17", "restart", "ops", "ops1", 4121, 0.0, "abc")
BILL = yamlfile.read(ROOT / "versions.yml")


def reply(text: str) -> Reply:
    return Reply(text, 0.0, 0.0)


def one_line(error: Exception) -> bool:
    """A person is told what is wrong, and the terminal is not steered."""
    return 0 < len(str(error)) < 300 and str(error).isprintable()


@pytest.fixture
def nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """A folder in which hostile text would leave a file."""
    monkeypatch.chdir(tmp_path)
    return lambda: not (tmp_path / "pwned").exists()


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return placement.read(inventory.load("tests/inventory"))


# The releases of hosts, which an upgrade hands to a playbook


@pytest.mark.parametrize("name", [*HOSTILE, "4.1.4 abc"], ids=short)
def test_a_release_that_a_host_names_is_no_template_and_no_path(name: str) -> None:
    """Ansible evaluates the variables of its command line: here, and as whoever runs it."""
    text = f"@@ spark {name}\njars/a.jar\n"
    found = Answer(reply(text)).then(lambda one: dict(installed.releases(one.text, parts.parts(BILL))))
    assert not found.known


# The lock, whose holder is broken by his mark on every host


@pytest.mark.parametrize("field", ["mark", "run", "verb"])
@pytest.mark.parametrize("value", [*HOSTILE, "abc\ntouch pwned", None, 7, ["abc"]], ids=short)
def test_a_lock_with_other_words_than_a_run_writes_names_nobody(field: str, value: Any) -> None:
    record = json.dumps({**asdict(HOLDER), field: value})
    assert lock.held({"n1": Answer(reply(f"@@held 3\n{record}\n"))}) == {}


@pytest.mark.parametrize("text", ["[]", "7", "{}", '{"run": "r1"}', "[" * 100_000, '"\\ud800"'], ids=short)
def test_a_lock_that_is_no_document_names_nobody(text: str) -> None:
    assert lock.held({"n1": Answer(reply(f"@@held 3\n{text}\n"))}) == {}


def test_a_lock_tells_no_more_than_its_fields() -> None:
    record = json.dumps({**asdict(HOLDER), "more": 1})
    [found] = lock.held({"n1": Answer(reply(f"@@held 3\n{record}\n"))}).values()
    assert found.holder == HOLDER


@pytest.mark.parametrize("script", [lock.beat, lock.release])
def test_a_mark_is_one_word_of_a_script(
    script: Callable[[str], str], nothing_runs: Callable[[], bool]
) -> None:
    for mark in ("$(touch pwned)", "x /dev/null; touch pwned #", "-f/etc/passwd", "'; touch pwned; '"):
        subprocess.run(["sh", "-c", script(mark)], check=True, capture_output=True)
    assert nothing_runs()


# PostgreSQL's packages, of which a host and its mirrors tell


@pytest.mark.parametrize("row", ["package postgresql-17 {}", "package {} 17.1-1", "candidate {}"])
@pytest.mark.parametrize("word", [word for word in HOSTILE if word], ids=short)
def test_a_package_or_version_that_is_none_is_refused(row: str, word: str) -> None:
    rows = ["package postgresql-17 17.1-1", "candidate 17.2-1", row.format(word)]
    with pytest.raises(ValueError, match="not allowed there") as refused:
        postgresql.told_packages("postgresql-17", "\n".join(rows if "candidate" not in row else rows[::2]))
    assert one_line(refused.value)


@pytest.mark.parametrize("word", [word for word in HOSTILE if word], ids=short)
def test_what_else_lies_among_kept_packages_is_no_version(word: str) -> None:
    text = f"package postgresql-17 17.1-1\ncandidate 17.2-1\nknown 17.2-1\nknown {word}\n"
    assert postgresql.told_packages("postgresql-17", text).known == ("17.2-1",)


def test_packages_are_words_of_the_scripts_that_keep_and_install_them(
    cluster: Cluster, nothing_runs: Callable[[], bool], tmp_path: Path
) -> None:
    [host, *_] = cluster.running("postgresql")
    script = postgresql.installing(host, "postgresql$(touch pwned)", str(tmp_path), "17$(touch pwned)")
    stubs = "systemctl() { :; }; apt-get() { :; }; dpkg() { :; }; sleep() { exit; }; date() { :; }\n"
    subprocess.run(["sh", "-c", stubs + script], check=False, capture_output=True, timeout=60)
    assert nothing_runs()


def test_a_moment_that_is_none_is_not_counted() -> None:
    assert postgresql.gap("@@up 1.0\n@@up 1.2.3\n@@up ...\n@@up 2.0\n") == pytest.approx(1.0)


# Layouts of HDFS, which become a line of the NameNode's unit


class DataNodes:
    """As `Living`: every host answers one text."""

    def __init__(self, cluster: Cluster, text: str) -> None:
        self.cluster, self.text = cluster, text

    def having(self, service: str) -> Any:
        return self.cluster.running({"namenode": "namenode", "datanode": "datanodes"}[service])

    def do(self, *_: Any) -> Answer[str]:
        return Answer(self.text)


@pytest.mark.parametrize("word", [*HOSTILE, "-57\\", "-57\nEnvironment=X=1", "-57, namenode -1"], ids=short)
def test_a_layout_is_a_number(cluster: Cluster, word: str) -> None:
    with pytest.raises(Stopped) as stopped:
        hdfs.layouts(DataNodes(cluster, f"datanode {word}"))  # type: ignore[arg-type] # as the tests' own
    assert stopped.value.ending is Ending.REFUSED
    assert stopped.value.fact.isprintable()
    assert hdfs.layouts(DataNodes(cluster, "datanode -57")) == {"datanode -57"}  # type: ignore[arg-type] # as above


def test_the_holder_of_a_lock_is_as_it_was_written() -> None:
    text = f"@@held 3\n{json.dumps(asdict(replace(HOLDER, started='boot 7')))}\n"
    [found] = lock.held({"n1": Answer(reply(text))}).values()
    assert found.holder.started == "boot 7"
