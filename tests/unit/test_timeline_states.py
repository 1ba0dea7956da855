"""Instants of the timeline in a real PostgreSQL: states, versions, files, and writers at once."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, permutations

import pytest

from lakehouse.timeline import schema
from lakehouse.timeline.store import Store
from tests.unit import metastore_database
from tests.unit.metastore_database import Database
from tests.unit.timeline_tables import ask

STATES = ("requested", "inflight", "completed")


@pytest.fixture(scope="module")
def server() -> Iterator[Database]:
    with metastore_database.bare() as administrator:
        administrator.run("CREATE DATABASE template_timeline")
        template = Database(administrator.sockets, "template_timeline")
        Store(ask(template)).create()
        yield template


@pytest.fixture
def database(server: Database) -> Database:
    copy = server.copy("own")
    for number in (1, 2):
        copy.run(
            "INSERT INTO timeline.tables (source, created, database, name, format, location)"
            f" VALUES ({number}, 1, 'x', 't{number}', 'delta', '/x/t{number}')"
        )
    return copy


def requested(database: Database, table: int = 1) -> int:
    return int(database.run(f"SELECT timeline.request({table}, 'write')"))


def inflight(database: Database, table: int = 1) -> int:
    instant = requested(database, table)
    database.run(f"SELECT timeline.begin({table}, {instant})")
    return instant


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode != 0, done.stdout
    return done.stderr


def in_state(database: Database, state: str) -> int:
    instant = requested(database)
    if state != "requested":
        database.run(f"SELECT timeline.begin(1, {instant})")
    if state == "completed":
        database.run(f"SELECT timeline.complete(1, {instant}, 'c{instant}')")
    return instant


@pytest.mark.parametrize(("before", "after"), list(permutations(STATES, 2)))
def test_an_instant_moves_in_one_order_only(database: Database, before: str, after: str) -> None:
    instant = in_state(database, before)
    move = {
        "inflight": f"SELECT timeline.begin(1, {instant})",
        "completed": f"SELECT timeline.complete(1, {instant}, 'c')",
        "requested": f"SELECT timeline.move(1, {instant}, 'completed', 'requested', '{{\"again\": 1}}')",
    }[after]
    done = database.attempt(f"\\set VERBOSITY verbose\n{move}")
    if (before, after) in pairwise(STATES):
        assert done.returncode == 0, done.stderr
    elif before == "completed" and after == "requested":
        assert database.run(f"SELECT state FROM timeline.instants WHERE instant = {instant}") == "completed\n"
    else:
        assert "55000" in refusal(done)
        assert f"is {before}, and cannot become {after}" in done.stderr


def test_a_step_that_is_repeated_changes_nothing(database: Database) -> None:
    instant = requested(database)
    for _ in range(2):
        database.run(f"SELECT timeline.begin(1, {instant}, '{{\"a\": 1}}')")
    versions = {
        database.run(f"SELECT timeline.complete(1, {instant}, 'c', NULL, '{{\"b\": 1}}')") for _ in range(2)
    }
    assert versions == {"1\n"}
    assert database.run("SELECT count(*) FROM timeline.instants") == "1\n"
    assert database.run("SELECT string_agg(state, ' ' ORDER BY state) FROM timeline.contents") == (
        "completed inflight requested\n"
    )
    later = database.attempt(f"SELECT timeline.complete(1, {instant}, 'c', NULL, '{{\"b\": 2}}')")
    assert "cannot become completed" in refusal(later)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELECT timeline.request(9, 'write')", "there is no table 9"),
        ("SELECT timeline.begin(1, 5)", "table 1 has no instant 5"),
        ("SELECT timeline.heartbeat(1, 5)", "table 1 has no open instant 5"),
        ("SELECT * FROM timeline.files_at(1, 1)", "the files of version 1 of table 1 are not known"),
    ],
)
def test_what_is_not_there_is_one_line(database: Database, statement: str, message: str) -> None:
    assert message in refusal(database.attempt(statement)).splitlines()[0]


def test_instants_of_many_callers_increase(database: Database) -> None:
    calls = "SELECT timeline.request(1, 'write');\n" * 125

    def called(_: int) -> list[int]:
        return [int(line) for line in database.run(calls).split()]

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(called, range(8)))
    assert all(earlier < later for answer in answers for earlier, later in pairwise(answer))
    assert len({instant for answer in answers for instant in answer}) == 1000


def test_writers_at_once_get_versions_and_numbers_without_gaps(database: Database) -> None:
    def written(writer: int) -> None:
        table = 1 + writer % 2
        for commit in range(20):
            instant = inflight(database, table)
            database.run(f"SELECT timeline.complete({table}, {instant}, '{writer}.{commit}')")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(written, range(4)))
    for table in (1, 2):
        versions = database.run(f"SELECT version FROM timeline.instants WHERE table_id = {table} ORDER BY 1")
        assert versions.split() == [str(number) for number in range(1, 41)]
    numbers = database.run("SELECT number FROM timeline.instants ORDER BY number")
    assert numbers.split() == [str(number) for number in range(1, 81)]


def test_a_writer_with_an_old_version_is_refused_as_a_whole(database: Database) -> None:
    first, second = inflight(database), inflight(database)
    database.run(f"SELECT timeline.complete(1, {first}, 'a', 0)")
    done = database.attempt(f"\\set VERBOSITY verbose\nSELECT timeline.complete(1, {second}, 'b', 0)")
    assert "40001" in refusal(done)
    assert database.run("SELECT count(*) FROM timeline.contents WHERE state = 'completed'") == "1\n"
    assert database.run(f"SELECT timeline.complete(1, {second}, 'b', 1)") == "2\n"


def test_a_silent_writer_is_abandoned_until_it_speaks(database: Database) -> None:
    instant = int(database.run("SELECT timeline.request(1, 'write', '{}', interval '0 s')"))
    database.run(f"SELECT timeline.begin(1, {instant})")
    assert database.run("SELECT instant FROM timeline.abandoned") == f"{instant}\n"
    database.run("UPDATE timeline.instants SET lease = '1 hour'")
    database.run(f"SELECT timeline.heartbeat(1, {instant})")
    assert database.run("SELECT instant FROM timeline.abandoned") == ""


def observed(*commits: dict[str, object], source: int = 1) -> dict[str, object]:
    return {
        "source": source, "created": 1, "database": "x", "name": f"t{source}", "format": "delta",
        "location": "/x", "commits": list(commits), "open": [], "state": "s", "fault": "", "lag": "",
        "dropped": False,
    }  # fmt: skip


def commit(number: int, **details: object) -> dict[str, object]:
    return {"commit": str(number), "action": "write", "details": {"time_ms": number * 1000, **details}}


def file(path: str) -> dict[str, object]:
    return {"path": path, "partition": "", "bytes": 1, "rows": 1, "content": "data"}


def paths(database: Database, version: int) -> set[str]:
    return set(database.run(f"SELECT path FROM timeline.files_at(1, {version})").split())


def test_a_commit_that_is_observed_again_is_there_once(database: Database) -> None:
    store = Store(ask(database))
    first = commit(1, added=[file("a"), file("b")], removed=[], whole=True)
    second = commit(2, added=[file("c")], removed=["a"])
    assert store.observe([observed(first)]) == 1
    assert store.observe([observed(first, second)]) == 1
    assert store.observe([observed(first, second)]) == 0
    assert [row["commit"] for row in store.next_commits(0, 10)] == ["1", "2"]
    assert paths(database, 1) == {"a", "b"}
    assert paths(database, 2) == {"b", "c"}


def test_files_of_a_version_are_known_once_its_commits_are_synchronized(database: Database) -> None:
    store = Store(ask(database))
    store.observe([observed(commit(1, added=[file("a")], removed=[], whole=True))])
    instant = inflight(database)
    # The writer says that it is done; which files it has written is read from the table.
    database.run(f"SELECT timeline.complete(1, {instant}, '2')")
    assert "are not known" in refusal(database.attempt("SELECT * FROM timeline.files_at(1, 2)"))
    assert paths(database, 1) == {"a"}
    store.observe([observed(commit(2, added=[file("b")], removed=[]))])
    assert paths(database, 2) == {"a", "b"}


def test_the_instant_of_a_writer_is_completed_by_its_commit(database: Database) -> None:
    instant = inflight(database)
    assert Store(ask(database)).observe([observed(commit(1, instant=str(instant)))]) == 1
    assert database.run("SELECT instant, state FROM timeline.instants") == f"{instant}|completed\n"


def test_a_text_that_the_database_refuses_is_the_fault_of_its_table(database: Database) -> None:
    store = Store(ask(database))
    bad = [observed(commit(1, author=text), source=number) for number, text in ((1, "\x00"), (3, "\ud800"))]
    assert store.observe([*bad, observed(commit(1), source=2)]) == 1
    faults = database.run("SELECT fault FROM timeline.tables ORDER BY source").split("\n")
    assert [fault.partition(": ")[0] for fault in faults[:3]] == [
        "PostgreSQL refuses its commits", "", "PostgreSQL refuses its commits",
    ]  # fmt: skip


def test_a_commit_between_two_that_are_not_known_makes_files_unknown(database: Database) -> None:
    store = Store(ask(database))
    store.observe([observed(commit(1, added=[file("a")], removed=[], whole=True), commit(2))])
    store.observe([observed(commit(3, added=[file("b")], removed=[]))])
    assert "are not known" in refusal(database.attempt("SELECT * FROM timeline.files_at(1, 3)"))
    store.observe([observed(commit(4, added=[file("c")], removed=[], whole=True))])
    assert paths(database, 4) == {"c"}
    assert "are not known" in refusal(database.attempt("SELECT * FROM timeline.files_at(1, 1)"))


def test_old_commits_are_forgotten_and_the_newest_of_a_table_stays(database: Database) -> None:
    store = Store(ask(database))
    store.observe([observed(
        commit(1, added=[file("a")], removed=[], whole=True), commit(2, added=[file("b")], removed=["a"])
    )])  # fmt: skip
    database.run("UPDATE timeline.instants SET observed = observed - interval '9 days'")
    store.forget(5)
    assert [row["commit"] for row in store.next_commits(0, 10)] == ["2"]
    assert paths(database, 2) == {"b"}
    assert database.run("SELECT count(*) FROM timeline.files") == "1\n"


def test_each_commit_notifies_its_listeners_once_and_in_order(database: Database) -> None:
    listener = subprocess.Popen(
        [*database.argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert listener.stdin is not None
    assert listener.stdout is not None
    listener.stdin.write("LISTEN timeline; SELECT 'listens';\n")
    assert listener.stdout.readline() == "listens\n"
    store = Store(ask(database))
    store.observe([observed(commit(1), commit(2))])
    store.observe([observed(commit(1), commit(2), commit(3))])
    listener.stdin.write("SELECT 'end';\n")
    out, _ = listener.communicate(timeout=60)
    notified = [json.loads(line.partition('payload "')[2].rpartition('" received')[0])
                for line in out.splitlines() if "payload" in line]  # fmt: skip
    assert [(row["number"], row["table"], row["commit"]) for row in notified] == [
        (1, "t1", "1"), (2, "t1", "2"), (3, "t1", "3"),
    ]  # fmt: skip


def test_another_version_of_the_schema_keeps_the_rows(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(ask(database))
    store.observe([observed(commit(1))])
    monkeypatch.setattr(schema, "IS_CURRENT", "SELECT jsonb_build_object('current', false)")
    barrier = threading.Barrier(2)

    def create(_: int) -> None:
        barrier.wait()
        Store(ask(database)).create()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(create, range(2)))
    assert [row["commit"] for row in store.next_commits(0, 10)] == ["1"]
