"""The history of the stack's catalog: Trino and Spark, as they are, read what was dropped since a commit."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator

import pytest

from lakehouse import run
from lakehouse.local.compose import stack
from lakehouse.local.compose.dotenv import Settings
from lakehouse.local.nodes import docker_api
from suites.testbed.engines import EngineError
from suites.testbed.engines.trino import Trino
from suites.testbed.tables import suffix
from tests import pages
from tests.compose.conftest import ENV_FILE, connect, elsewhere, lakehouse, succeed, surroundings, up

pytestmark = pytest.mark.cluster

TARGET = ("--target", "compose", "--env-file", str(ENV_FILE))
APART = 300


def catalog(verb: str, *words: str) -> str:
    return succeed("catalog", verb, *words, *TARGET)


@pytest.fixture(scope="module")
def complete(core: Settings) -> Settings:
    """The stack with what reads the past: Trino, and the container in which people work."""
    wanted = core.with_values(COMPOSE_PROFILES="trino,client,past")
    up(wanted)
    return wanted


@pytest.fixture(scope="module")
def trino(complete: Settings) -> Trino:
    return Trino.connect(f"http://127.0.0.1:{complete.values['TRINO_HTTP_PORT']}", "trino")


@pytest.fixture(scope="module")
def dropped(complete: Settings, trino: Trino) -> Iterator[tuple[str, str]]:
    """A commit, and its database: of the tables in it the live metastore knows none any more."""
    database = f"past_{suffix()}"
    place = f"hdfs://lakehouse/lakehouse/hive/tables/{database}"
    trino.sql(f"CREATE SCHEMA hive.{database} WITH (location = '{place}')")
    trino.sql(f"CREATE TABLE iceberg.{database}.ice AS SELECT 1 a")
    trino.sql(f"CREATE TABLE hive.{database}.days WITH (external_location = '{place}/days') AS SELECT 7 n")
    commit = json.loads(catalog("commit", "--json"))["commit"]
    trino.sql(f"INSERT INTO iceberg.{database}.ice VALUES 2")
    # Both leave the files.
    spark = connect(complete)
    spark.sql(f"DROP TABLE iceberg.{database}.ice")
    spark.session.stop()
    trino.sql(f"DROP TABLE hive.{database}.days")
    yield commit, database
    trino.sql(f"DROP SCHEMA hive.{database}")


def test_trino_reads_dropped_tables_with_their_rows_of_then(trino: Trino, dropped: tuple[str, str]) -> None:
    _, database = dropped
    assert catalog("diff").splitlines()[:2] == [
        f"- table hive.{database}.days: hive, 1 column",
        f"- table hive.{database}.ice: iceberg, 1 column",
    ]
    assert trino.sql(f"SHOW TABLES FROM hive.{database}") == []
    assert trino.sql(f"TABLE iceberg_past.{database}.ice") == [(1,)]
    assert trino.sql(f"TABLE hive_past.{database}.days") == [(7,)]
    with pytest.raises(EngineError, match="Access Denied: Cannot insert into table"):
        trino.sql(f"INSERT INTO hive_past.{database}.days VALUES 8")


def test_spark_connect_reads_a_dropped_table_in_its_catalog_of_the_past(
    complete: Settings, dropped: tuple[str, str]
) -> None:
    spark = connect(complete)
    try:
        assert spark.sql(f"TABLE iceberg_past.{dropped[1]}.ice") == [(1,)]
    finally:
        spark.session.stop()


@pytest.mark.longdrill
def test_a_session_of_spark_in_the_past_reads_them_and_is_refused(
    complete: Settings, dropped: tuple[str, str]
) -> None:
    commit, database = dropped
    past = f"spark.hadoop.hive.metastore.uris=thrift://past:{complete.values['CATALOG_PAST_PORT']}"
    statements = f"TABLE iceberg_past.{database}.ice; TABLE {database}.days; DROP TABLE {database}.days"
    words = ["exec", "--no-TTY", "client", "spark-sql", "-S", "--conf", past, "-e", statements]
    said = subprocess.run(
        stack.compose(complete, *words),
        capture_output=True, text=True, check=False, env={**surroundings(), **complete.values},
    )  # fmt: skip
    assert said.stdout.split() == ["1", "7"], said
    assert f"this metastore serves commit {commit[:12]} read-only; drop_table" in said.stderr, said


@pytest.mark.usefixtures("core")
def test_every_command_of_the_page_does_what_it_says() -> None:
    found = [one for one in pages.catalog(pages.HISTORY) if "--target compose" in one]
    assert len(found) == 3
    for command in found:
        succeed(*shlex.split(command), "--env-file", str(ENV_FILE))


def test_the_history_is_its_owners_and_the_container_only_reads_it(core: Settings) -> None:
    assert core.state.stat().st_mode & 0o777 == 0o700
    with docker_api.connect() as client:
        past = client.containers.get(f"{core.project}-past-1")
        [history] = [one for one in past.attrs["Mounts"] if one["Destination"].endswith("catalog.git")]
        assert history["RW"] is False
        # The database's passwords are not for it.
        assert past.exec_run(["test", "!", "-s", "/config/etc/lakehouse/secrets.json"]).exit_code == 0


def test_a_stack_that_is_down_is_one_line() -> None:
    values = elsewhere(f"kit-test-{suffix()}", APART)
    done = lakehouse("catalog", "commit", *TARGET, environment=values)
    project = values["COMPOSE_PROJECT_NAME"]
    assert (done.returncode, done.stderr) == (
        2, f"error: {project}: the stack does not run; next: make compose-up\n",
    )  # fmt: skip
    assert not (run.ROOT / ".state" / f"compose-{project}").exists()
