"""Keys that a component would silently ignore, in the dicts that override its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from lakehouse import yamlfile
from lakehouse.model import defaults
from lakehouse.model.inventory import Host
from lakehouse.validation import keylists
from lakehouse.validation.finding import Finding, Level

FREE = Path(__file__).with_name("free_keys.yml")
NAMES = {
    "hadoop": "Hadoop",
    "hive": "Hive",
    "spark": "Spark",
    "delta": "Delta",
    "iceberg": "Iceberg",
    "flink": "Flink",
}
# The dicts, and whose keys stand in their files: those of the program itself, and of what runs in it. Behind
# a slash is the section of the component's keys.
_OF_HADOOP, _OF_SPARK = ("hadoop", "iceberg"), ("spark", "delta", "iceberg")
DICTS = {
    "hdfs_core_site": _OF_HADOOP,
    "hdfs_site": _OF_HADOOP,
    "hdfs_namenode_hdfs_site": _OF_HADOOP,
    "hdfs_datanode_hdfs_site": _OF_HADOOP,
    "hive_metastore_hive_site": ("hive", "hadoop", "iceberg"),
    "spark_defaults": _OF_SPARK,
    "spark_master_defaults": _OF_SPARK,
    "spark_worker_defaults": _OF_SPARK,
    "spark_history_defaults": _OF_SPARK,
    "spark_thrift_defaults": _OF_SPARK,
    "spark_connect_defaults": _OF_SPARK,
    "flink_config": ("flink",),
    "flink_iceberg_catalog": ("iceberg/catalog", "flink/iceberg_catalog"),
    "flink_hive_catalog": ("flink/hive_catalog",),
    "flink_hive_site": ("flink/hive_site", "hadoop"),
}
CATALOG = "spark.sql.catalog."
ICEBERG = "org.apache.iceberg."
# How much a misspelt key is like the one that was meant. Long keys share much: what differs counts too.
ALIKE, ALIKE_IN_PART = 0.8, 0.6


@dataclass(frozen=True)
class Known:
    """What one component knows: whole keys, and patterns for those with a part that people choose."""

    component: str
    keys: Set[str]
    free: Set[str]

    def has(self, key: str) -> bool:
        """Whether the component knows the key."""
        return key in self.keys or any(fnmatchcase(key, pattern) for pattern in self.free)

    def like(self, key: str) -> Iterator[str]:
        """Yield the whole keys, and the patterns with the words of ``key`` where people choose one."""
        yield from self.keys
        words = key.split(".")
        for parts in (pattern.split(".") for pattern in self.free):
            if len(parts) == len(words) and parts[-1] != "*":
                yield ".".join(word if part == "*" else part for word, part in zip(words, parts, strict=True))

    def below(self, prefix: str) -> Known:
        """Return the same keys behind a prefix."""
        keys, free = (frozenset(prefix + key for key in names) for names in (self.keys, self.free))
        return Known(self.component, keys, free)


def keys(host: Host) -> list[Finding]:
    """Find keys that no component of their file supports: most likely misspelt ones, without effect."""
    return [
        _unknown(host, variable, key, key_sets)
        for variable in DICTS
        if (settings := _dict(host, variable))
        for key_sets in [_known(host, variable)]
        for key in map(str, settings)
        if not any(key_set.has(key) for key_set in key_sets)
    ]


@cache
def known_keys(component: str, section: str = "keys") -> Known:
    """Return the keys of a section of a component's list, and those that stand beside it by hand."""
    name = component if section == "keys" else f"{component}_{section}"
    listed = frozenset(keylists.read(component)[section])
    patterns = frozenset(key for key in listed if "*" in key)
    return Known(component, listed - patterns, patterns | frozenset(free_keys().get(name, ())))


@cache
def free_keys() -> Mapping[str, list[str]]:
    """Return the keys with a part that people choose, by component or dict."""
    keys_by_reader: Mapping[str, list[str]] = yamlfile.read(FREE)
    return keys_by_reader


def _dict(host: Host, variable: str) -> Mapping[object, object]:
    value = host.variables.get(variable)
    return value if isinstance(value, Mapping) else {}


def _known(host: Host, variable: str) -> list[Known]:
    components = DICTS[variable]
    key_sets = [known_keys(*name.split("/")) for name in components]
    key_sets.append(Known(key_sets[0].component, frozenset(), frozenset(free_keys().get(variable, ()))))
    return key_sets + _catalogs(host) if "spark" in components else key_sets


def _catalogs(host: Host) -> list[Known]:
    """Return the keys of Spark's catalogs: Iceberg's have its properties, others may have any."""
    classes: dict[str, str] = {}
    role_properties: Mapping[object, object] = defaults.role("spark")["_spark_defaults"]
    for properties in (role_properties, *(_dict(host, variable) for variable in DICTS)):
        for key, value in properties.items():
            name = str(key).removeprefix(CATALOG)
            if name != key and "." not in name:
                classes[name] = str(value)
    of_iceberg, any_key = known_keys("iceberg", "catalog"), Known("spark", frozenset(), frozenset("*"))
    key_sets = [
        (of_iceberg if class_name.startswith(ICEBERG) else any_key).below(f"{CATALOG}{name}.")
        for name, class_name in classes.items()
    ]
    return [*key_sets, Known("spark", frozenset(CATALOG + name for name in classes), frozenset())]


def _unknown(host: Host, variable: str, key: str, key_sets: list[Known]) -> Finding:
    closest = _closest(key, {like for key_set in key_sets for like in key_set.like(key)})
    component = next(
        (key_set.component for key_set in key_sets if closest and key_set.has(closest)), key_sets[0].component
    )
    advice = f"did you mean {closest}?" if closest else "remove it, unless a program that you add reads it"
    fact = f"{NAMES[component]} {keylists.version(component)} has no key {key} ({variable})"
    return Finding(f"{component}.keys", host.name, fact, advice, level=Level.WARNING)


def _closest(key: str, supported: Set[str]) -> str | None:
    """Return the supported key of which this one is a misspelling, None for none."""
    for close in get_close_matches(key, sorted(supported), cutoff=ALIKE):
        if SequenceMatcher(None, *_differing(key.split("."), close.split("."))).ratio() >= ALIKE_IN_PART:
            return close
    return None


def _differing(first: list[str], second: list[str]) -> tuple[str, str]:
    """Return two keys without their common first and last words."""
    for _ in range(2):
        while first and second and first[0] == second[0]:
            first, second = first[1:], second[1:]
        first, second = first[::-1], second[::-1]
    return ".".join(first), ".".join(second)
