"""Keys of a unit's section [Service], and flags of its JVM."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from functools import cache
from typing import Any

from lakehouse.model.inventory import Host
from lakehouse.validation import keylists, overrides
from lakehouse.validation.finding import Finding, Level
from plugins.module_utils.lakehouse.nearest import nearest

SERVICE = re.compile(r"\w+_unit_service")
OPTIONS = re.compile(r"\w+_java_options")
FLAG = re.compile(r"-XX:(?:[+-](?P<switch>\w+)|(?P<named>\w+)=.*)", re.DOTALL)
# With it a JVM ignores what it does not know.
FORGIVEN = "-XX:+IgnoreUnrecognizedVMOptions"
# Options of every JVM of a node, and those of Trino alone, which has a Java of its own.
OF_ALL, OF_TRINO = "node_java_options", "trino_java_options"


def keys(host: Host) -> list[Finding]:
    """Find keys of a unit that systemd does not support: it logs a warning, and ignores them."""
    supported, version = _systemd()
    return [
        Finding(
            "units.keys",
            host.name,
            f"systemd {version} has no key {key} in [Service] ({variable})",
            f"did you mean {close}?"
            if (close := nearest(key, supported))
            else "remove it: systemd ignores it",
            level=Level.WARNING,
        )
        for variable, settings in host.variables.items()
        if SERVICE.fullmatch(variable) and isinstance(settings, Mapping)
        for key in map(str, settings)
        if key not in supported and not key.startswith("X-")
    ]


def java(host: Host, versions: Mapping[str, str]) -> list[Finding]:
    """Find flags that a JVM of this host does not support: it would not start.

    ``versions`` are those of versions.yml: `java` is every service's but Trino's, `trino_java` its own.
    """
    return [
        Finding(
            "java.options",
            host.name,
            f"Java {version} has no flag {flag} ({variable}[{index}])",
            f"did you mean {close}?" if (close := nearest(flag, flags)) else "remove it: no JVM would start",
        )
        for variable, options in host.variables.items()
        if OPTIONS.fullmatch(variable) and isinstance(options, list) and FORGIVEN not in options
        for index, flag in _flags(options)
        for version, flags in _lacking(flag, _javas(host, variable, versions))
    ]


def _javas(host: Host, variable: str, versions: Mapping[str, str]) -> list[str]:
    trino = versions["trino_java"]
    if variable == OF_TRINO:
        return [trino]
    runs_trino = variable == OF_ALL and host.groups & {"trino_coordinator", "trino_workers"}
    return [versions["java"], *([trino] if runs_trino else [])]


def _flags(options: list[Any]) -> Iterator[tuple[int, str]]:
    for index, option in enumerate(options):
        if match := FLAG.fullmatch(str(option).strip()):
            yield index, match["switch"] or match["named"]


def _lacking(flag: str, javas: list[str]) -> Iterator[tuple[str, Set[str]]]:
    """Yield the first version of Java that lacks a flag, with those that it has."""
    for version in javas:
        flags = _java(version)
        if flags and flag not in flags:
            yield version, flags
            return


@cache
def _systemd() -> tuple[Set[str], str]:
    return frozenset(keylists.read("systemd")["keys"]), keylists.version("systemd")


@cache
def _java(version: str) -> Set[str]:
    """Return the flags of a version of Java; none where its list was not written."""
    listed = keylists.read("java")
    if version not in listed:
        return frozenset()
    return frozenset({*listed["every"], *listed[version], *overrides.free_keys()["java"]})
