"""Settings of the whole cluster: identifiers, accounts, paths, databases and the versions."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from lakehouse.artifacts.manifest import Pair, pair_findings
from lakehouse.model.inventory import Host
from lakehouse.validation.finding import Finding
from lakehouse.validation.variables import suggestion
from plugins.module_utils.lakehouse.counting import counted


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
METASTORE_ROLE = Syntax(
    r"[a-z_][a-z0-9_]{0,56}",
    "at most 57 lower-case letters, digits and underscores",
    "PostgreSQL takes it unquoted, and with _owner at its end",
)
SERVED = Syntax(
    r"(thrift://[A-Za-z0-9.-]+:\d{2,5})?", "thrift://HOST:PORT", "it is what lakehouse catalog serve says"
)

NAMES = {
    "lakehouse_cluster": LABEL,
    "lakehouse_nameservice": LABEL,
    "lakehouse_cluster_id": CLUSTER_ID,
    "lakehouse_group": ACCOUNT,
    "lakehouse_database.name": DATABASE,
    "lakehouse_database.user": METASTORE_ROLE,
    "lakehouse_federation.name": DATABASE,
    "lakehouse_federation.user": DATABASE,
    "lakehouse_past_catalog": SERVED,
}
DATABASES = ("lakehouse_database", "lakehouse_federation")
# What pg_hba.conf and the server keep for themselves:
# https://www.postgresql.org/docs/current/auth-pg-hba-conf.html
KEPT_DATABASES = (
    "postgres",
    "template0",
    "template1",
    "all",
    "sameuser",
    "samerole",
    "samegroup",
    "replication",
)
KEPT_ROLES = ("postgres", "all", "public", "none")
# Debian's own accounts and groups, those of the roles' packages, and groups that are as good as root.
KEPT_ACCOUNTS = frozenset({
    "root", "daemon", "bin", "sys", "sync", "games", "man", "lp", "mail", "news", "uucp", "proxy",
    "www-data", "backup", "list", "irc", "nobody", "nogroup", "_apt", "systemd-network",
    "systemd-resolve", "systemd-timesync", "systemd-journal", "systemd-coredump", "messagebus", "polkitd",
    "sshd", "postgres", "ssl-cert", "adm", "disk", "docker", "kmem", "shadow", "staff", "sudo", "tty",
    "utmp", "video", "wheel", "crontab", "users",
})  # fmt: skip
# The kit's own accounts, such as the one that makes backups; systemd's, and those of Debian's packages.
KEPT_PREFIXES = ("lakehouse-", "systemd-", "_")
PATHS = ("lakehouse_install_dir", "lakehouse_config_dir")
DATA_PATHS = (
    "lakehouse_data_dir",
    "lakehouse_namenode_dirs",
    "lakehouse_datanode_dirs",
    "lakehouse_backup_dir",
    "lakehouse_catalog_dir",
    "monitoring_dir",
)
# They become words of unit files and class paths, and members of lists with commas.
PATH = re.compile(r"[A-Za-z0-9._+@/-]+")
# Emptied at boot or by age, and most of them open to every account:
# https://www.freedesktop.org/software/systemd/man/latest/tmpfiles.d.html
VOLATILE = ("/tmp", "/var/tmp", "/run", "/var/run", "/var/lock", "/dev", "/proc", "/sys")  # noqa: S108 (refused, not used)


def setting(host: Host, path: str) -> Any:
    """Return the value at a dotted path, None where there is none."""
    value: Any = host.variables
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def names(host: Host) -> list[Finding]:
    """Check that every identifier has the syntax of its component."""
    identifiers = {path: (setting(host, path), syntax) for path, syntax in NAMES.items()}
    identifiers |= {f"lakehouse_users.{user}": (name, ACCOUNT) for user, name in users(host).items()}
    identifiers |= {
        f"lakehouse_readers[{index}]": (name, ACCOUNT) for index, name in enumerate(readers(host))
    }
    findings = []
    for path, (value, syntax) in identifiers.items():
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


def users(host: Host) -> Mapping[str, Any]:
    """Return whom daemons run as, by the keys of the table."""
    table = host.variables.get("lakehouse_users")
    return table if isinstance(table, Mapping) else {}


def accounts(host: Host, login: object = None) -> list[Finding]:
    """Check that each engine has a separate user, which is no reader and no system account.

    Nor may it be ``login``, the account that manages the machines.
    """
    engines = users(host)
    account_names = {f"lakehouse_users.{engine}": name for engine, name in engines.items()}
    account_names |= {f"lakehouse_readers[{index}]": name for index, name in enumerate(readers(host))}
    account_names |= {"lakehouse_group": host.variables.get("lakehouse_group")}
    advice = "choose another: this account is the system's own, or the kit's"
    findings = [
        Finding("names.users", host.name, f"{path} is {name!r}", advice, "an account of its own")
        for path, name in account_names.items()
        if name in KEPT_ACCOUNTS or str(name).startswith(KEPT_PREFIXES)
    ] + [
        Finding(
            "names.users",
            host.name,
            f"{path} is {name!r}, and so is ansible_user",
            "choose another: the account that manages the machines becomes root there",
            "an account of its own",
        )
        for path, name in account_names.items()
        if login and name == login and name not in KEPT_ACCOUNTS and path != "lakehouse_group"
    ]
    by_name: dict[str, list[str]] = {}
    for engine, name in engines.items():
        by_name.setdefault(str(name), []).append(f"lakehouse_users.{engine}")
    for name, paths in by_name.items():
        if len(paths) > 1 and name not in KEPT_ACCOUNTS:
            fact = f"{' and '.join(paths)} are one account, {name!r}"
            findings.append(
                Finding("names.users", host.name, fact, "give each engine its own", "different accounts")
            )
    members = {name: f"lakehouse_users.{engine}" for engine, name in engines.items()}
    members |= {host.variables.get("lakehouse_group"): "lakehouse_group"}
    return findings + [
        Finding(
            "names.users",
            host.name,
            f"lakehouse_readers names {reader}, which is {members[reader]}",
            "leave it out",
            "people outside the group",
        )
        for reader in readers(host)
        if reader in members
    ]


def paths(host: Host) -> list[Finding]:
    """Check that paths are absolute, survive a reboot, and no directory holds two kinds of data."""
    findings = []
    holders: dict[str, str] = {}
    for variable in (*PATHS, *DATA_PATHS):
        value = host.variables.get(variable)
        for path in map(str, value if isinstance(value, list) else [] if value is None else [value]):
            fact = f"{variable} is {path!r}"
            if not path.startswith("/") or posixpath.normpath(path) != path.rstrip("/") or path == "/":
                advice = "write it from the root, without '..'"
                findings.append(Finding("paths.syntax", host.name, fact, advice, "an absolute path"))
            elif not PATH.fullmatch(path):
                advice = "choose another: units and lists of directories cannot hold it"
                findings.append(
                    Finding("paths.syntax", host.name, fact, advice, "letters, digits and . _ + @ -")
                )
            elif any(f"{path}/".startswith(f"{top}/") for top in VOLATILE):
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


def databases(host: Host) -> list[Finding]:
    """Check that metastore and federation have separate roles and databases, and not PostgreSQL's own."""
    findings = []
    owners: dict[tuple[str, str], str] = {}
    for database in DATABASES:
        for key, reserved in (("name", KEPT_DATABASES), ("user", KEPT_ROLES)):
            value = setting(host, f"{database}.{key}")
            fact = f"{database}.{key} is {value!r}"
            if value in reserved or (key == "user" and str(value).startswith("pg_")):
                advice = "choose another name: this one is PostgreSQL's own"
                findings.append(Finding("names.database", host.name, fact, advice, "a name of its own"))
            elif value is not None and (key, value) in owners:
                advice = f"choose another: {owners[key, value]}.{key} is the same"
                findings.append(Finding("names.database", host.name, fact, advice, "a name of its own"))
            owners.setdefault((key, value), database)
    return findings + _federation(host)


def _federation(host: Host) -> list[Finding]:
    findings = []
    reader, owner = (
        setting(host, "lakehouse_federation.user"),
        f"{setting(host, 'lakehouse_database.user')}_owner",
    )
    if reader == owner:
        fact = f"lakehouse_federation.user is {reader!r}"
        advice = "choose another: this role owns the metastore's database"
        findings.append(Finding("names.database", host.name, fact, advice, "a name of its own"))
    for schema in setting(host, "lakehouse_federation.schemas") or ():
        if str(schema).startswith("pg_") or schema == "information_schema":
            fact = f"lakehouse_federation.schemas has {schema!r}"
            advice = "leave it out: PostgreSQL itself decides who may read what in it"
            findings.append(
                Finding("names.database", host.name, fact, advice, "schemas with tables of yours")
            )
    return findings


def versions(host: Host, pairs: tuple[Pair, ...], manifest_versions: Mapping[str, str]) -> list[Finding]:
    """Check that the versions, with the overrides of ``lakehouse_versions``, were tested together."""
    override = host.variables.get("lakehouse_versions") or {}
    effective_versions = {**manifest_versions, **{name: str(version) for name, version in override.items()}}
    advice = "correct versions.yml, or lakehouse_versions in the inventory"
    unknown = [
        Finding(
            "versions.unknown",
            host.name,
            f"versions.yml has no version of {name} (lakehouse_versions)",
            suggestion(name, manifest_versions, "remove it: nothing reads it"),
        )
        for name in map(str, override)
        if name not in manifest_versions
    ]
    lines = _folded(
        pair_findings(pairs, effective_versions),
        [f"{name} {effective_versions[name]} " for name in map(str, override)],
    )
    return unknown + [Finding("versions.pair", host.name, line, advice) for line in lines]


def _folded(lines: Iterable[str], causes: Iterable[str]) -> list[str]:
    """Return a line for each cause, a version that the inventory sets, with the number of further lines."""
    remaining = list(lines)
    folded = []
    for cause in causes:
        same = [line for line in remaining if f" {cause}" in f" {line} ".replace(":", " ")]
        remaining = [line for line in remaining if line not in same]
        suffix = f", and {counted(len(same) - 1, 'more pair')}" if same[1:] else ""
        folded += [f"{same[0]}{suffix}"] if same else []
    return folded + remaining
