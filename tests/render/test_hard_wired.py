"""What makes a cluster itself is its inventory's, or a shipped default: no role or template knows it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from lakehouse.model import defaults, inventory, services
from tests.render import rendering

# Accounts have the name of what they run.
PRODUCTS = {user.account for user in services.load().users.values()}
# Values of inventory/local that are words of their own as well, and why a role may say them.
COMMON_WORDS = {
    **dict.fromkeys(PRODUCTS, "the product, its command, its folders and its scheme"),
    "lakehouse": "the kit's own name, in headers and in the names of files that it shares a folder with",
    "metastore": "the service, and the group of the inventory that runs it",
    "full": "a choice of the kit's own, lakehouse_profile",
    "federation": "what the database is for",
    "10000": "how often Trino's JVM compiles a method anew, at most",
    "/etc": "where Debian keeps units, limits and the configuration of PostgreSQL",
}
# Where those defaults stand.
SHIPPED = rendering.REPOSITORY / "roles" / "lakehouse" / "defaults"
# What a run says of itself is in no inventory.
RUN = {"lakehouse_run", "lakehouse_bill", "lakehouse_restarts"}
# Numbers by which memory is divided tell nothing of a cluster, nor do switches, nor an address that is empty.
SIZES = {
    "lakehouse_memory_overcommit",
    "lakehouse_engine_weights",
    "lakehouse_backup_enabled",
    "lakehouse_past_catalog",
    "lakehouse_catalog_enabled",
    "lakehouse_timeline_enabled",
    "lakehouse_past_enabled",
    "lakehouse_past_commit",
    "lakehouse_monitoring_enabled",
    *RUN,
}
# The tests have everything on, and no service whose hosts have numbers or that listens with TLS.
SWITCHES = {
    "lakehouse_member_numbers",
    "lakehouse_tls_authority",
    "lakehouse_profile",
    "lakehouse_backup_enabled",
    "lakehouse_catalog_enabled",
    "lakehouse_timeline_enabled",
    "lakehouse_past_commit",
    *RUN,
}
AS_ACCOUNT = (r"User={}\b", r"\bu {}\b", r"owner: {}\b", r"HADOOP_USER_NAME={}\b", r"--user {}\b")
# Where such a word would be the cluster's value after all.
MEANT = {
    **{name: tuple(form.format(name) for form in AS_ACCOUNT) for name in PRODUCTS},
    "lakehouse": (
        r"hdfs://lakehouse\b",
        r"(?<!module_utils)\.lakehouse\b(?!\.conf|-)",
        r"(?<!\w)@lakehouse\b",
    ),
    "metastore": (r"jdbc:postgresql://[^\s<]*/metastore\b", r"\bhost metastore\b"),
    "full": (r"lakehouse_profile: full\b",),
    "federation": (r"jdbc:postgresql://[^\s<]*/federation\b", r"\bhost federation\b"),
    "10000": (r":10000\b", r"(?i)port\W+10000\b"),
    "/etc": (r"/etc/hadoop\b", r"/etc/hive\b", r"/etc/spark\b"),
}


def leaves(value: Any) -> Iterator[str]:
    """Every value inside lists and dicts."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from leaves(item)
    else:
        yield str(value)


@pytest.fixture(scope="module")
def own_values(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Every name, address, port, path and user of inventory/local, its defaults among them."""
    copied = rendering.copy(rendering.INVENTORIES["local"], tmp_path_factory.mktemp("local"))
    hosts = inventory.load(copied).hosts
    names = {value for host in hosts for value in (host.name, host.address)}
    shared = hosts[0].variables
    identity = {name for name in shared if name.startswith("lakehouse_")} - SIZES
    return names | {leaf for name in identity for leaf in leaves(shared[name]) if leaf}


def patterns(values: set[str]) -> Iterator[re.Pattern[str]]:
    """A value as a word of its own: no part of a name, of a longer number or of a longer path."""
    for value in sorted(values):
        if value in COMMON_WORDS:
            yield from map(re.compile, MEANT[value])
        else:
            yield re.compile(rf"(?<![\w/.-]){re.escape(value)}(?![\w-])")


def without_comments(text: str) -> str:
    """The text without the lines that only explain."""
    return re.sub(r"^\s*(#|<!--).*$", "", text, flags=re.MULTILINE)


def found(files: dict[str, str], values: set[str]) -> list[tuple[str, str]]:
    """Where a value occurs: the file and the line."""
    searched = list(patterns(values))
    return [
        (path, line.strip())
        for path, text in files.items()
        for line in [path, *without_comments(text).splitlines()]
        if any(pattern.search(line) for pattern in searched)
    ]


def test_the_exceptions_are_values_of_the_inventory(own_values: set[str]) -> None:
    assert COMMON_WORDS.keys() <= own_values | {"/etc"}
    assert COMMON_WORDS.keys() == MEANT.keys()


def test_no_role_no_template_and_no_container_knows_the_local_cluster(own_values: set[str]) -> None:
    folders = (
        "roles/*/defaults",
        "roles/*/tasks",
        "roles/*/vars",
        "templates",
        "compose/service",
        "compose/service/steps",
    )
    files = {
        str(path.relative_to(rendering.REPOSITORY)): path.read_text(encoding="utf-8")
        for folder in folders
        for path in rendering.REPOSITORY.glob(f"{folder}/*")
        if path.is_file() and path.parent != SHIPPED
    }
    assert len(files) > 30
    places = found(files, own_values)
    assert not places


def test_the_cluster_of_the_tests_leaves_no_default_as_it_is() -> None:
    own, local = (
        inventory.load(rendering.REPOSITORY / rendering.INVENTORIES[name]).hosts[0].variables
        for name in ("tests", "local")
    )
    for name in defaults.defaults().keys() - {*SWITCHES, *defaults.TABLES}:
        assert own[name] != local[name], name
    for name in defaults.TABLES:
        assert not [key for key, value in defaults.defaults()[name].items() if own[name][key] == value], name


def test_another_cluster_has_nothing_of_the_local_one(
    rendered: dict[str, dict[str, str]], own_values: set[str]
) -> None:
    places = found(rendered["tests"], own_values)
    assert not places


def test_the_local_cluster_is_recognised(rendered: dict[str, dict[str, str]], own_values: set[str]) -> None:
    seen = "\n".join(line for _, line in found(rendered["local"], own_values))
    assert {"cpu-node1", "172.28.0.12", "9083", "hdfs://lakehouse", "/var/lib/lakehouse"} <= {
        word for word in own_values | {"hdfs://lakehouse"} if word in seen
    }
