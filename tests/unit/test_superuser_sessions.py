"""No program of the kit logs in to the metastore's database as PostgreSQL's superuser.

The server refuses it (pg_hba.conf); these tests find it before there is a server.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from backup import database as backup_database
from backup.config import Settings
from lakehouse.cluster_catalog import live
from lakehouse.model.inventory import Host
from lakehouse.run import ROOT
from lakehouse.status import questions
from plugins.module_utils.lakehouse import metastore_sql

NAMES = {"lakehouse_database": {"name": "meta", "user": "hms"}, "lakehouse_ports": {"postgresql": 5433}}
HOST = Host("db1", "10.0.0.1", frozenset({"postgresql"}), NAMES)
RULES = sorted((ROOT / "tests" / "render" / "golden").rglob("pg_hba.conf"))


def login(argv: list[str]) -> tuple[str, str]:
    """The role and the database of a call of psql."""
    return argv[argv.index("-U") + 1], argv[argv.index("-d") + 1]


def settings() -> Settings:
    return Settings(
        cluster="", folder="", keep=1, namenode="", superuser="", root="", left_out=(), database="meta",
        database_user="hms", database_port=1, database_ssh=(), checkpoint=(), checkpoint_folder="",
        spark_submit=(), spark_user="",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("argv", "role", "database"),
    [
        (shlex.split(questions.psql(HOST, "select 1")), "hms", "meta"),
        (shlex.split(questions.server_psql(HOST, "select 1")), "postgres", "postgres"),
        (live.psql(HOST), "hms", "meta"),
        (backup_database._psql(settings(), "hms", "meta"), "hms", "meta"),
    ],
    ids=["status, doctor, console, metastore", "the server", "catalog", "backup"],
)
def test_a_session_names_its_role_and_its_database(argv: list[str], role: str, database: str) -> None:
    assert login(argv) == (role, database)


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.parts[-6])
def test_the_server_refuses_the_superuser_in_the_metastores_database(path: Path) -> None:
    """The first rule that matches decides."""
    rules = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line[:1].isalpha()]
    local = [rule[1:] for rule in rules if rule[0] == "local"]
    [(metastore, *_)] = [rule for rule in local if rule[1:] == ["postgres", "reject"]]
    assert local.index([metastore, "postgres", "reject"]) < local.index(["all", "postgres", "peer"])
    [role, owner] = next(rule[1] for rule in local if "," in rule[1]).split(",")
    assert owner == metastore_sql.owner_of(role)
    others = {rule[2] for rule in rules if rule[0] != "local"}
    assert not others & {"postgres", "all", owner}, "both log in by the socket alone"
