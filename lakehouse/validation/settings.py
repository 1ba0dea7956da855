"""Settings of the whole cluster: identifiers, paths, the database's secret and the versions."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from lakehouse.inventory import Host
from lakehouse.manifest import Pair, pair_findings
from lakehouse.validation.finding import Finding


class Syntax(NamedTuple):
    """What a name may look like, and why."""

    pattern: str
    expected: str
    reason: str


LABEL = Syntax(
    r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?",
    "letters, digits and dashes",
    "it stands where a URI has its host",
)
CLUSTER_ID = Syntax(
    r"[A-Za-z0-9._-]+", "letters, digits, dots and dashes", "HDFS writes it into VERSION files"
)
# systemd's strict rule: https://systemd.io/USER_NAMES/
ACCOUNT = Syntax(
    r"[a-z_][a-z0-9_-]{0,30}", "at most 31 lower-case letters, digits and dashes", "it becomes a Unix account"
)
# What PostgreSQL takes unquoted; the metastore refuses a dash in names too.
DATABASE = Syntax(
    r"[a-z_][a-z0-9_]{0,62}", "lower-case letters, digits and underscores", "PostgreSQL takes it unquoted"
)

NAMES = {
    "lakehouse_cluster": LABEL,
    "lakehouse_nameservice": LABEL,
    "lakehouse_cluster_id": CLUSTER_ID,
    "lakehouse_group": ACCOUNT,
    "lakehouse_users.hdfs": ACCOUNT,
    "lakehouse_users.hive": ACCOUNT,
    "lakehouse_users.spark": ACCOUNT,
    "lakehouse_users.trino": ACCOUNT,
    "lakehouse_users.flink": ACCOUNT,
    "lakehouse_database.name": DATABASE,
    "lakehouse_database.user": DATABASE,
    "lakehouse_federation.name": DATABASE,
    "lakehouse_federation.user": DATABASE,
}
PATHS = ("lakehouse_install_dir", "lakehouse_config_dir")
DATA_PATHS = ("lakehouse_data_dir", "lakehouse_namenode_dirs", "lakehouse_datanode_dirs")
# Emptied at boot or by age: https://www.freedesktop.org/software/systemd/man/latest/tmpfiles.d.html
VOLATILE = ("/tmp", "/var/tmp", "/run", "/dev", "/proc", "/sys")  # noqa: S108 (refused, not used)


def setting(host: Host, path: str) -> Any:
    """Return the value at a dotted path, None where there is none."""
    value: Any = host.variables
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def names(host: Host) -> list[Finding]:
    """Check that every identifier has the syntax of the place where it ends up."""
    named = {path: (setting(host, path), syntax) for path, syntax in NAMES.items()}
    named |= {f"lakehouse_readers[{index}]": (name, ACCOUNT) for index, name in enumerate(readers(host))}
    findings = []
    for path, (value, syntax) in named.items():
        if value is not None and not re.fullmatch(syntax.pattern, str(value)):
            fact = f"{path} is {str(value)!r}"
            findings.append(
                Finding(
                    "names.syntax", host.name, fact, f"choose another name: {syntax.reason}", syntax.expected
                )
            )
    return findings


def readers(host: Host) -> list[str]:
    """Return the people who may read, an empty list where there are none."""
    return list(host.variables.get("lakehouse_readers") or [])


def accounts(host: Host) -> list[Finding]:
    """Check that each engine has a user of its own, and that none of them, nor the group, is to read only."""
    users = host.variables.get("lakehouse_users")
    engines = users if isinstance(users, Mapping) else {}
    findings = []
    if len(set(engines.values())) < len(engines):
        fact = f"lakehouse_users gives two engines one user ({', '.join(map(str, engines.values()))})"
        findings.append(
            Finding("names.users", host.name, fact, "give each engine its own", "different users")
        )
    taken = {name: f"lakehouse_users.{engine}" for engine, name in engines.items()}
    taken |= {host.variables.get("lakehouse_group"): "lakehouse_group"}
    return findings + [
        Finding(
            "names.users",
            host.name,
            f"lakehouse_readers names {reader}, which is {taken[reader]}",
            "leave it out",
            "people outside the group",
        )
        for reader in readers(host)
        if reader in taken
    ]


def paths(host: Host) -> list[Finding]:
    """Check that paths are absolute, data survives a reboot, and no directory holds two kinds of data."""
    findings = []
    holders: dict[str, str] = {}
    for variable in (*PATHS, *DATA_PATHS):
        value = host.variables.get(variable)
        for path in map(str, value if isinstance(value, list) else [] if value is None else [value]):
            fact = f"{variable} is {path!r}"
            if not path.startswith("/") or posixpath.normpath(path) != path.rstrip("/") or path == "/":
                advice = "write it from the root, without '..'"
                findings.append(Finding("paths.syntax", host.name, fact, advice, "an absolute path"))
            elif variable in DATA_PATHS and any(f"{path}/".startswith(f"{top}/") for top in VOLATILE):
                advice = "choose a file system that keeps its files"
                findings.append(
                    Finding("paths.volatile", host.name, fact, advice, f"not below {', '.join(VOLATILE)}")
                )
            elif variable in DATA_PATHS and path in holders:
                advice = f"it already stands in {holders[path]}"
                findings.append(Finding("paths.shared", host.name, fact, advice, "a directory of its own"))
            holders.setdefault(path, variable)
    return findings


def root(host: Host) -> list[Finding]:
    """Check that the lakehouse has a directory of its own in HDFS."""
    value = host.variables.get("lakehouse_root")
    if value is None or re.fullmatch(r"(/[A-Za-z0-9._-]+)+", str(value)):
        return []
    fact = f"lakehouse_root is {str(value)!r}"
    advice = "write it like /lakehouse: it becomes part of every table's URI"
    return [Finding("paths.syntax", host.name, fact, advice, "an absolute directory of HDFS")]


def password(host: Host) -> list[Finding]:
    """Check that the databases have passwords."""
    advice = "set it in group_vars/all/vault.yml: ansible-vault create"
    return [
        Finding("secrets.missing", host.name, f"{name}.password is empty", advice)
        for name in ("lakehouse_database", "lakehouse_federation")
        if name in host.variables and not setting(host, f"{name}.password")
    ]


def versions(host: Host, pairs: tuple[Pair, ...], manifest_versions: Mapping[str, str]) -> list[Finding]:
    """Check that the bill of materials, with what ``lakehouse_versions`` overrides, was run together."""
    override = host.variables.get("lakehouse_versions") or {}
    wanted = {**manifest_versions, **{name: str(version) for name, version in override.items()}}
    advice = "correct versions.yml, or lakehouse_versions in the inventory"
    return [Finding("versions.pair", host.name, line, advice) for line in pair_findings(pairs, wanted)]
