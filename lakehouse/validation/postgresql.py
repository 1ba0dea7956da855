"""PostgreSQL: login rules, settings that undo the role's, and connections for the metastore."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import NamedTuple

from lakehouse.model.inventory import Host, Inventory
from lakehouse.sizing.postgresql import POOLS, SPARED
from lakehouse.validation import keylists, sizes
from lakehouse.validation.finding import Finding, Level
from lakehouse.validation.network import TRUSTED
from lakehouse.validation.variables import suggestion
from plugins.module_utils.lakehouse.counting import counted

POOL, MOST = "hive_metastore_pool_size", "postgresql_max_connections"
CLIENTS = ("postgresql_clients", "postgresql_federation_clients")
LISTENS = "postgresql_listen_addresses"
# The server's own networks, in the words of pg_hba.conf.
OWN_NETWORKS = ("samehost", "samenet")
# RFC 1918, 6598, 3927, 4193 and 4291, and loopback: none is wider than what one organisation has.
PRIVATE = tuple(
    ip_network(network)
    for network in (
        "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16", "127.0.0.0/8",
        "fc00::/8", "fd00::/8", "fe80::/10", "::1/128",
    )
)  # fmt: skip
NETWORK = re.compile(r"[0-9a-fA-F.:]+/\d{1,3}")
# A wider one is no network of a cluster, whatever guards it.
WIDEST = 8
ANY_ADDRESS = ("*", "0.0.0.0", "::")  # noqa: S104 (looked for, not bound)
# Settings by which other files, addresses or ports than those of the role would count, and where to say it.
OWNED = {
    "hba_file": "set postgresql_clients",
    "ident_file": "leave it out: the role writes pg_ident.conf",
    "config_file": "leave it out: the role writes conf.d/lakehouse.conf",
    "include": "set its settings themselves",
    "include_if_exists": "set its settings themselves",
    "include_dir": "set its settings themselves",
    "data_directory": "set lakehouse_data_dir",
    "listen_addresses": f"set {LISTENS}",
    "port": "set lakehouse_ports.postgresql",
}
# Units of settings, in the smallest of each kind.
MEMORY = {"B": 1, "kB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
TIME = {"us": 1, "ms": 10**3, "s": 10**6, "min": 60 * 10**6, "h": 3600 * 10**6, "d": 86400 * 10**6}
_NUMBER = re.compile(r"\s*([+-]?(?:0x[0-9a-f]+|\d+\.?\d*(?:e[+-]?\d+)?|\.\d+))\s*([a-z]*)\s*", re.IGNORECASE)
_UNIT = re.compile(r"(\d*)(\w+)")
# PostgreSQL takes the beginning of each of these words, in any case.
_OFF, _ON = ("off", "false", "no", "0"), ("on", "true", "yes", "1")
# Names of earlier versions that PostgreSQL still accepts.
OLD_NAMES = frozenset({"sort_mem", "vacuum_mem"})


class Setting(NamedTuple):
    """One setting of PostgreSQL as `pg_settings` has it; numbers are in its unit, which may be none."""

    kind: str
    unit: str
    least: str
    most: str


@cache
def known() -> Mapping[str, Setting]:
    """Return PostgreSQL's settings by name in lower case, as it compares them."""
    rows = (word.split(":") for word in keylists.read("postgresql")["keys"])
    return {name.lower(): Setting(*parts) for name, *parts in rows}


def keys(host: Host) -> list[Finding]:
    """Find settings that PostgreSQL does not have, or whose value it rejects: it would not start.

    A name with a dot belongs to an extension, whose settings are unknown before it is loaded.
    """
    variable = host.variables.get("postgresql_settings") or {}
    configured = {str(name): value for name, value in variable.items() if value is not None}
    version = keylists.version("postgresql")
    findings = []
    for name, value in configured.items():
        setting = known().get(name.lower())
        if name.lower() in OWNED or "." in name or name.lower() in OLD_NAMES:
            continue
        if setting is None:
            advice = suggestion(name.lower(), known(), "remove it: PostgreSQL would not start")
            fact = f"PostgreSQL {version} has no setting {name} (postgresql_settings)"
            findings.append(Finding("postgresql.keys", host.name, fact, advice))
        elif expected := _refused(value, setting):
            fact = f"postgresql_settings.{name} is {value!r}"
            advice = "correct it, or leave it out: PostgreSQL would not start"
            findings.append(Finding("postgresql.keys", host.name, fact, advice, expected))
    return findings


def connections(inventory: Inventory) -> list[Finding]:
    """Check that the metastore's pools leave connections for other clients, such as the playbook.

    Pools and connections are those that the inventory sets for the hosts of the metastore and of PostgreSQL,
    or else those of the model of sizes.
    """
    effective_sizes = sizes.effective(inventory.hosts)
    if not effective_sizes:
        return []
    size = sum(effective_sizes[host.name][POOL] for host in inventory.group("metastore"))
    findings = []
    for host in inventory.group("postgresql"):
        configured = host.variables.get("postgresql_settings") or {}
        most = int(_number(configured.get("max_connections"), "-") or effective_sizes[host.name][MOST])
        if POOLS * size + SPARED > most:
            demand = f"the metastore holds {POOLS} x {counted(size, 'connection')} ({POOL})"
            fact = f"{demand}, and PostgreSQL allows {most} in all"
            advice = f"raise {MOST}, or lower {POOL}"
            expected = f"at least {POOLS * size + SPARED}"
            findings.append(Finding("postgresql.connections", host.name, fact, advice, expected))
    return findings


def clients(host: Host) -> list[Finding]:
    """Check that clients log in from private networks alone, each a network in a line of pg_hba.conf."""
    return [
        Finding("postgresql.clients", host.name, f"{variable}[{index}] is {client!r}", advice, expected)
        for variable in CLIENTS
        for index, client in enumerate(map(str, host.variables.get(variable) or []))
        for advice, expected in _client_faults(client, guarded=bool(host.variables.get(TRUSTED)))
    ]


def settings(host: Host) -> list[Finding]:
    """Check that no setting undoes the role's login rules."""
    variable = host.variables.get("postgresql_settings") or {}
    configured = {
        str(name).lower(): str(value).strip() for name, value in variable.items() if value is not None
    }
    faults = [(name, advice, "a setting that the role leaves open") for name, advice in OWNED.items()]
    if host.variables.get("postgresql_tls", True) and _is_off(configured.get("ssl", "on")):
        faults.append(("ssl", "leave it out, or set postgresql_tls: false", "on while clients must use TLS"))
    if configured.get("password_encryption", "scram-sha-256").lower() != "scram-sha-256":
        faults.append(("password_encryption", "leave it out: pg_hba.conf wants SCRAM", "scram-sha-256"))
    findings = [
        Finding("postgresql.settings", host.name, f"postgresql_settings has {name}", advice, expected)
        for name, advice, expected in faults
        if name in configured
    ]
    listens = [str(address) for address in host.variables.get(LISTENS) or []]
    if host.variables.get("lakehouse_target") != "compose" and any(
        address in ANY_ADDRESS for address in listens
    ):
        fact, advice = f"{LISTENS} has every address of the host", "name the addresses that its clients reach"
        warning = Finding("postgresql.listen", host.name, fact, advice, level=Level.WARNING)
        findings.append(warning)
    return findings


def _client_faults(client: str, *, guarded: bool) -> Iterator[tuple[str, str]]:
    if client in OWN_NETWORKS:
        return
    try:
        # PostgreSQL wants the prefix; and a zone of IPv6 might hold a line of its own.
        network = ip_network(client if NETWORK.fullmatch(client) else "")
    except ValueError:
        yield "write it like 10.0.0.0/24, with zeros behind the prefix", "a network"
        return
    is_private = _is_private(network)
    if not is_private and network.prefixlen < WIDEST:
        yield "name the networks of the clients: others are refused without a password", "a private network"
    elif not is_private and not guarded:
        advice = f"name a private one, or say that a firewall keeps strangers out: {TRUSTED}: true"
        yield advice, "a private network"


def _is_private(network: IPv4Network | IPv6Network) -> bool:
    # Networks of different versions cannot be compared.
    return any(network.version == private.version and network.subnet_of(private) for private in PRIVATE)  # type: ignore[arg-type]


def _is_off(value: str) -> bool:
    return _is_word(value, _OFF)


def _refused(value: object, setting: Setting) -> str:
    """Return what a setting expects where it does not take a value, nothing where it does."""
    if setting.kind == "bool":
        is_switch = isinstance(value, bool) or _is_off(str(value)) or _is_word(str(value), _ON)
        return "" if is_switch else "on or off"
    if setting.kind not in ("integer", "real"):
        return ""
    number = _number(value, setting.unit)
    if number is not None and float(setting.least) <= number <= float(setting.most):
        return ""
    unit = (
        ""
        if setting.unit == "-"
        else f" x {setting.unit}"
        if setting.unit[0].isdigit()
        else f" {setting.unit}"
    )
    return f"{setting.least} to {setting.most}{unit}"


def _number(value: object, unit: str) -> float | None:
    """Return a number in the unit of its setting, None if PostgreSQL would not parse it."""
    match = None if isinstance(value, bool) else _NUMBER.fullmatch(str(value))
    if match is None:
        return None
    text, suffix = match.groups()
    number = float(int(text, 16)) if "x" in text.lower() else float(text)
    if not suffix:
        return number
    unit_match = _UNIT.fullmatch(unit)
    table = next((table for table in (MEMORY, TIME) if unit_match and unit_match[2] in table), {})
    if unit_match is None or suffix not in table:
        return None
    # PostgreSQL rounds to its unit.
    return float(round(number * table[suffix] / (int(unit_match[1] or 1) * table[unit_match[2]])))


def _is_word(value: str, words: tuple[str, ...]) -> bool:
    return bool(value) and value.lower() != "o" and any(word.startswith(value.lower()) for word in words)
