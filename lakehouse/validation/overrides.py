"""Keys that a component would ignore without a word, in the dicts that have the last word on its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from lakehouse import defaults, yamlfile
from lakehouse.inventory import Host
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
        """Return the same, where all keys stand behind a prefix."""
        keys, free = (frozenset(prefix + key for key in some) for some in (self.keys, self.free))
        return Known(self.component, keys, free)


def keys(host: Host) -> list[Finding]:
    """Find keys that no reader of their file knows: most likely they are misspelt, and do nothing."""
    return [
        _unknown(host, variable, key, known)
        for variable in DICTS
        if (given := _dict(host, variable))
        for known in [_known(host, variable)]
        for key in map(str, given)
        if not any(one.has(key) for one in known)
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
    own = [known_keys(*name.split("/")) for name in components]
    others = Known(own[0].component, frozenset(), frozenset(free_keys().get(variable, ())))
    known = [*own, others]
    return known + _catalogs(host) if "spark" in components else known


def _catalogs(host: Host) -> list[Known]:
    """What Spark's catalogs know: Iceberg's have its properties, any other may have whatever it likes."""
    classes: dict[str, str] = {}
    own: Mapping[object, object] = defaults.role("spark")["_spark_defaults"]
    for properties in (own, *(_dict(host, variable) for variable in DICTS)):
        for key, value in properties.items():
            name = str(key).removeprefix(CATALOG)
            if name != key and "." not in name:
                classes[name] = str(value)
    of_iceberg, anything = known_keys("iceberg", "catalog"), Known("spark", frozenset(), frozenset("*"))
    known = [
        (of_iceberg if of.startswith(ICEBERG) else anything).below(f"{CATALOG}{name}.")
        for name, of in classes.items()
    ]
    return [*known, Known("spark", frozenset(CATALOG + name for name in classes), frozenset())]


def _unknown(host: Host, variable: str, key: str, known: list[Known]) -> Finding:
    meant = _meant(key, {like for one in known for like in one.like(key)})
    component = next((one.component for one in known if meant and one.has(meant)), known[0].component)
    advice = f"did you mean {meant}?" if meant else "remove it, unless a program that you add reads it"
    fact = f"{NAMES[component]} {keylists.version(component)} has no key {key} ({variable})"
    return Finding(f"{component}.keys", host.name, fact, advice, level=Level.WARNING)


def _meant(key: str, known: Set[str]) -> str | None:
    """Return the known key that this one is a misspelling of, None where it is none."""
    for close in get_close_matches(key, sorted(known), cutoff=ALIKE):
        if SequenceMatcher(None, *_differing(key.split("."), close.split("."))).ratio() >= ALIKE_IN_PART:
            return close
    return None


def _differing(one: list[str], other: list[str]) -> tuple[str, str]:
    """Return what is left of two keys without the words with which both begin, and both end."""
    for _ in range(2):
        while one and other and one[0] == other[0]:
            one, other = one[1:], other[1:]
        one, other = one[::-1], other[::-1]
    return ".".join(one), ".".join(other)
