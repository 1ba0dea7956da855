"""What PostgreSQL, systemd and the JVM know is read from them, and compared as they compare it."""

from __future__ import annotations

from typing import Any

import pytest

from lakehouse.artifacts import manifest
from lakehouse.dev import systemkeys
from lakehouse.model.inventory import Host
from lakehouse.run import BILL, ROOT
from lakehouse.validation import Finding, keylists, postgresql, units
from tests.render import golden_files

VERSIONS = manifest.load(ROOT / BILL, locked=False).versions
NEXT = "next: python -m lakehouse.dev.systemkeys lakehouse-core:<cluster> lakehouse-trino:<cluster>"


def a_host(*groups: str, **variables: Any) -> Host:
    return Host("n1", "10.0.0.1", frozenset(groups), variables)


def lines(findings: list[Finding]) -> list[str]:
    return list(map(str, findings))


def test_the_lists_are_of_the_versions_that_are_installed() -> None:
    assert keylists.version("postgresql") == VERSIONS["postgresql"], NEXT
    assert keylists.read("java").keys() == {"every", VERSIONS["java"], VERSIONS["trino_java"]}, NEXT


def test_what_the_programs_print_is_read() -> None:
    rows = "work_mem integer kB 64 2147483647\narchive_mode enum - - -\n"
    assert systemkeys.settings(rows) == ["archive_mode:enum:-:-:-", "work_mem:integer:kB:64:2147483647"]
    listing = (
        "systemd 257\n[Unit]\nWants=UNIT [...]\n\n[Service]\nRestart=TYPE\nPIDFile=OTHER\n[Socket]\nMark=X\n"
    )
    assert list(systemkeys.of_section(listing, "Service")) == ["Restart", "PIDFile"]
    flags = "[Global flags]\n     bool UseZGC  = false  {product} {default}\n    ccstr Flags :=  {product}\n"
    assert systemkeys.flags(flags) == {"UseZGC", "Flags"}
    assert systemkeys.by_java({"21": ["a", "b"], "25": ["b", "c"]}) == {
        "every": ["b"],
        "21": ["a"],
        "25": ["c"],
    }


@pytest.mark.parametrize(
    "settings",
    [
        {"shared_buffers": "1GB"},
        {"SHARED_BUFFERS": 16384},
        {"timezone": "Europe/Vienna", "datestyle": "iso"},
        {"statement_timeout": "1.5h", "idle_in_transaction_session_timeout": "5min"},
        {"ssl": True, "autovacuum": "of", "jit": "off", "fsync": 1},
        {"random_page_cost": 1.1, "effective_io_concurrency": "200"},
        {"huge_pages": "try", "wal_level": "logical"},
        {"pg_stat_statements.max": "any", "sort_mem": "4MB", "max_connections": None},
        {"max_wal_size": "0x10GB", "autovacuum_work_mem": -1},
    ],
)
def test_settings_that_postgresql_takes(settings: dict[str, Any]) -> None:
    assert lines(postgresql.keys(a_host(postgresql_settings=settings))) == []


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (
            {"shared_bufers": "1GB"},
            "PostgreSQL 17 has no setting shared_bufers (postgresql_settings): did you mean shared_",
        ),
        (
            {"xyzzy": 1},
            "PostgreSQL 17 has no setting xyzzy (postgresql_settings): remove it: PostgreSQL would not start",
        ),
        (
            {"work_mem": "lots"},
            "postgresql_settings.work_mem is 'lots' (expected 64 to 2147483647 kB): correct it, or",
        ),
        ({"work_mem": "8s"}, "postgresql_settings.work_mem is '8s' (expected 64 to 2147483647 kB)"),
        (
            {"shared_buffers": "64kB"},
            "postgresql_settings.shared_buffers is '64kB' (expected 16 to 1073741823 x 8kB)",
        ),
        ({"max_connections": 0}, "postgresql_settings.max_connections is 0 (expected 1 to 262143)"),
        ({"max_connections": True}, "postgresql_settings.max_connections is True (expected 1 to 262143)"),
        ({"jit": "perhaps"}, "postgresql_settings.jit is 'perhaps' (expected on or off)"),
        ({"server_version": "17"}, "PostgreSQL 17 has no setting server_version"),
    ],
)
def test_settings_with_which_postgresql_does_not_start(settings: dict[str, Any], line: str) -> None:
    [found] = lines(postgresql.keys(a_host(postgresql_settings=settings)))
    assert found.startswith(f"FAIL postgresql.keys n1: {line}")


def golden(pattern: str) -> list[str]:
    """Return the lines of all files that the kit writes to this path below a host."""
    found = [
        line for path in golden_files.GOLDEN.rglob(pattern) for line in path.read_text("utf-8").splitlines()
    ]
    assert found, pattern
    return found


def test_what_the_kit_writes_is_known_to_postgresql() -> None:
    written = {
        line.split(" = ")[0] for line in golden("postgresql/*/main/conf.d/lakehouse.conf") if " = " in line
    }
    assert written - postgresql.known().keys() == set()


def test_what_the_kit_writes_is_known_to_systemd() -> None:
    written = {
        line.split("=")[0]
        for text in (path.read_text("utf-8") for path in golden_files.GOLDEN.rglob("system/*.service"))
        for line in text.partition("[Service]")[2].partition("\n[")[0].splitlines()
        if "=" in line
    }
    assert len(written) > 10
    assert units.keys(a_host(node_unit_service=dict.fromkeys(written, 1))) == []


def test_what_the_kit_writes_is_known_to_the_jvm() -> None:
    words = {
        word.strip('"')
        for line in golden("system/*.service")
        for word in line.split()
        if word.startswith("-XX:")
    }
    assert words
    assert units.java(a_host(hdfs_namenode_java_options=sorted(words)), VERSIONS) == []
    words = {line for line in golden("trino/jvm.config") if line.startswith("-XX:")}
    assert units.java(a_host(trino_java_options=sorted(words)), VERSIONS) == []


def test_keys_that_systemd_ignores_are_a_warning() -> None:
    assert lines(
        units.keys(a_host(spark_unit_service={"MemoryHihg": "1G", "X-Mine": 1, "MemoryHigh": None}))
    ) == [
        "WARN units.keys n1: systemd 257 has no key MemoryHihg in [Service] (spark_unit_service): "
        "did you mean MemoryHigh?"
    ]


@pytest.mark.parametrize(
    ("groups", "variables", "found"),
    [
        ((), {"node_java_options": ["-XX:+UseZGC", "-XX:MaxMetaspaceSize=1g", "-Xss1m", "-Da.b=c"]}, []),
        ((), {"node_java_options": ["-XX:-UseFooGC", "-XX:+IgnoreUnrecognizedVMOptions"]}, []),
        (
            (),
            {"spark_java_options": ["-XX:MaxMetaspceSize=1g"]},
            ["Java 21 has no flag MaxMetaspceSize (spark_java_options[0])"],
        ),
        # Of Java 21 alone: Trino's own Java would not start with it.
        ((), {"node_java_options": ["-XX:+ZGenerational"]}, []),
        (
            ("trino_workers",),
            {"node_java_options": ["-XX:+ZGenerational"]},
            ["Java 25 has no flag ZGenerational"],
        ),
        ((), {"trino_java_options": ["-XX:+ZGenerational"]}, ["Java 25 has no flag ZGenerational"]),
    ],
)
def test_flags_that_a_jvm_does_not_know(
    groups: tuple[str, ...], variables: dict[str, Any], found: list[str]
) -> None:
    shown = lines(units.java(a_host(*groups, **variables), VERSIONS))
    assert len(shown) == len(found)
    assert all(
        line.startswith(f"FAIL java.options n1: {start}") for line, start in zip(shown, found, strict=True)
    )
