"""Settings that Trino would refuse at its start, found before the running one is stopped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache
from typing import Any

from lakehouse.model import defaults
from lakehouse.model.inventory import Host, Inventory
from lakehouse.validation import keylists, sizes
from lakehouse.validation.finding import Finding
from lakehouse.validation.topology import meant
from lakehouse.validation.variables import suggestion

NODES_SECRET = "trino_shared_secret"  # noqa: S105 -- the name of a variable
PER_NODE = "trino_query_max_memory_per_node_mb"
# How the sections of the list of keys begin that are a connector's.
CONNECTOR = "connector "
# What a connector cannot do without: one of each row.
_METASTORE = ("hive.metastore.uri", "hive.metastore", "iceberg.catalog.type")
_DATABASE = (("connection-url",),)
NEEDED = {
    "iceberg": (_METASTORE,),
    "hive": (_METASTORE,),
    "delta_lake": (_METASTORE,),
    "mariadb": _DATABASE,
    "mysql": _DATABASE,
    "postgresql": _DATABASE,
    "sqlserver": _DATABASE,
}
# Keys whose values are secret. In a file that all accounts of a node read, and whose changes a run shows,
# stands the name of an environment variable instead. AWS's access key is public, as a user's name is.
_SECRET = re.compile(
    r"(password|secret|secret-key|json-key|customer-key|state-key|(?<!aws-)access-key|(?<!use-access-)token|credential)$"
)
_FROM_ENVIRONMENT = re.compile(r"\$\{ENV:\w+\}")
# Keys of node.properties that the launcher reads, or that Trino takes from any file.
NODE_KEYS = {"node.data-dir", "node.server-log-file", "node.launcher-log-file"}


@dataclass(frozen=True)
class Keys:
    """The keys of one version of Trino; `connectors` by what a catalog calls them."""

    version: str
    server: Set[str]
    catalogs: Set[str]
    connectors: Mapping[str, Set[str]]


@cache
def known_keys() -> Keys:
    """Return the keys of Trino's list."""
    sections = {name: frozenset(words) for name, words in keylists.read("trino").items()}
    connectors = {
        name.removeprefix(CONNECTOR): words for name, words in sections.items() if name.startswith(CONNECTOR)
    }
    return Keys(keylists.version("trino"), sections["server"], sections["catalogs"], connectors)


def own_catalogs() -> Mapping[str, str]:
    """Return the connectors of the role's catalogs, by the catalog's name."""
    connectors: Mapping[str, str] = defaults.role("trino")["_trino_connectors"]
    return connectors


def groups(inventory: Inventory) -> list[Finding]:
    """Check that workers have a coordinator, and that the coordinator has workers."""
    coordinators = [host.name for host in inventory.group("trino_coordinator")]
    workers = [host.name for host in inventory.group("trino_workers")]
    if workers and not coordinators:
        fact = "group trino_workers has hosts, but trino_coordinator has none"
        advice = (
            meant(inventory, "trino_coordinator")
            or "put a host into [trino_coordinator], or empty [trino_workers]"
        )
        return [Finding("trino.groups", ",".join(workers), fact, advice, "exactly one coordinator")]
    if coordinators and not workers:
        fact = "group trino_coordinator has a host, but trino_workers has none"
        advice = meant(inventory, "trino_workers") or "put a host into [trino_workers]; it may be the same"
        return [Finding("trino.groups", coordinators[0], fact, advice, "at least one worker")]
    return []


def shared_secret(host: Host) -> list[Finding]:
    """Check that a host of Trino has the secret of its nodes: it has no default that others could compute."""
    if not host.groups & {"trino_coordinator", "trino_workers"} or NODES_SECRET in host.variables:
        return []
    advice = "copy it from group_vars/all/cluster.yml of inventory/three-node (vault) or local (generated)"
    return [Finding("secrets.missing", host.name, f"{NODES_SECRET} is not set", advice)]


def query(host: Host) -> list[Finding]:
    """Check that a query's memory and Trino's headroom fit into the heap: otherwise it does not start."""
    memory_variables = {"trino_heap_mb", "node_memory_mb"} & host.variables.keys()
    host_sizes = sizes.effective([host], "trino").get(host.name)
    if PER_NODE not in host.variables or not memory_variables or not host_sizes:
        return []
    per_node_mb, heap_mb, headroom_mb = (
        host_sizes[name] for name in (PER_NODE, "trino_heap_mb", "trino_heap_headroom_mb")
    )
    if per_node_mb + headroom_mb <= heap_mb:
        return []
    fact = f"{PER_NODE} is {per_node_mb}, and the heap is {heap_mb} MiB, of which {headroom_mb} are kept"
    advice = "lower it, or leave it out: Trino would not start"
    return [Finding("trino.heap", host.name, fact, advice, f"at most {heap_mb - headroom_mb}")]


def catalogs(host: Host) -> list[Finding]:
    """Check that every catalog has a unique name, a loaded connector, and the connector's properties."""
    findings = []
    role_catalogs = own_catalogs()
    names = set(role_catalogs)
    for index, catalog in _extra(host):
        name, properties = str(catalog["name"]), catalog["properties"]
        where = f"trino_catalogs[{index}]"
        if name in names:
            fact = f"{where}: catalog {name} is there already"
            advice = (
                f"change it by trino_catalog_properties.{name}"
                if name in role_catalogs
                else "give one of them another name"
            )
            findings.append(Finding("trino.catalogs", host.name, fact, advice, "every name once"))
        names.add(name)
        findings += [
            Finding("trino.catalogs", host.name, f"{where} ({name}) {fault}", advice)
            for fault, advice in _catalog_faults(host, catalog.get("like"), properties)
        ]
    return findings


def _extra(host: Host) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield place and entry of the inventory's catalogs, but for those that another check has named."""
    for index, catalog in enumerate(host.variables.get("trino_catalogs") or []):
        if catalog is not None:
            yield index, catalog


def _connector(catalog: Mapping[str, Any]) -> str:
    return own_catalogs().get(str(catalog.get("like")), str(catalog["properties"].get("connector.name")))


def _catalog_faults(host: Host, like: str | None, properties: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if like is not None:
        if like not in own_catalogs():
            yield (
                f"is like {like}, which is no catalog of the role",
                f"choose one of {', '.join(own_catalogs())}",
            )
        return
    connector = properties.get("connector.name")
    if not connector:
        yield "lacks connector.name", "add it to the catalog's properties"
        return
    plugin = str(connector).replace("_", "-")
    if plugin not in {
        *defaults.role("trino")["_trino_plugins"],
        *(host.variables.get("trino_plugins") or []),
    }:
        yield (
            f"wants the connector {connector}, which no loaded plugin brings",
            f"add {plugin} to trino_plugins",
        )
    for choices in NEEDED.get(str(connector), ()):
        if not any(properties.get(key) for key in choices):
            yield f"lacks {choices[0]}", f"the connector {connector} needs it"


def keys(host: Host) -> list[Finding]:
    """Check that Trino supports every key of the inventory: otherwise it does not start."""
    supported = known_keys()
    variables = host.variables
    findings = [
        *_unknown(host, "trino_config", variables.get("trino_config"), supported.server),
        *_unknown(host, "trino_node", variables.get("trino_node"), supported.server | NODE_KEYS),
    ]
    connectors = _connectors(host)
    for name in variables.get("trino_catalog_properties") or {}:
        if name not in connectors:
            advice = f"the catalogs are {', '.join(connectors)}"
            fact = f"trino_catalog_properties.{name}: there is no catalog {name}"
            findings.append(Finding("trino.catalogs", host.name, fact, advice))
    for path, connector, properties in written_catalogs(host):
        findings += _of_catalog(host, path, properties, connector, supported)
    return findings


def written_catalogs(host: Host) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield where the inventory sets properties of a catalog that there is, its connector, and those."""
    for index, catalog in _extra(host):
        yield f"trino_catalogs[{index}].properties", _connector(catalog), catalog["properties"] or {}
    connectors = _connectors(host)
    for name, properties in (host.variables.get("trino_catalog_properties") or {}).items():
        if name in connectors:
            yield f"trino_catalog_properties.{name}", connectors[name], properties or {}


def _connectors(host: Host) -> dict[str, str]:
    """Return the connectors of all catalogs by their names."""
    return {
        **own_catalogs(),
        **{str(catalog["name"]): _connector(catalog) for _, catalog in _extra(host)},
    }


def secrets(host: Host) -> list[Finding]:
    """Check that no secret stands in a catalog or in config.properties, which are no secret files."""
    variables = host.variables
    written = {"trino_config": variables.get("trino_config")}
    for index, catalog in _extra(host):
        written[f"trino_catalogs[{index}].properties"] = catalog["properties"]
    for name, properties in (variables.get("trino_catalog_properties") or {}).items():
        written[f"trino_catalog_properties.{name}"] = properties
    return [
        Finding(
            "trino.secrets",
            host.name,
            f"{path} has {key} in plain text, in a file that all may read",
            f"put it into trino_secrets under a NAME, and write {key}: ${{ENV:NAME}}",
        )
        for path, properties in written.items()
        for key, value in (properties or {}).items()
        if value and _SECRET.search(str(key)) and not _FROM_ENVIRONMENT.fullmatch(str(value))
    ]


def _of_catalog(
    host: Host, path: str, properties: Mapping[str, Any] | None, connector: str, supported: Keys
) -> list[Finding]:
    if connector not in supported.connectors:
        return []
    return _unknown(
        host, path, properties, supported.catalogs | supported.connectors[connector] | {"connector.name"}
    )


def _unknown(host: Host, path: str, settings: Mapping[str, Any] | None, supported: Set[str]) -> list[Finding]:
    """Find unsupported keys; null removes a key from the file, so it is allowed."""
    findings = []
    for key, value in (settings or {}).items():
        if value is None or _is_known(str(key), supported):
            continue
        advice = suggestion(str(key), supported, "remove it; Trino would not start")
        fact = f"Trino {known_keys().version} has no key {key} ({path})"
        findings.append(Finding("trino.keys", host.name, fact, advice))
    return findings


def _is_known(key: str, supported: Set[str]) -> bool:
    """Whether the key is supported, or an option of an HTTP client after the client's name."""
    _, separator, option = key.partition(".http-client.")
    return key in supported or (bool(separator) and f"http-client.{option}" in supported)
