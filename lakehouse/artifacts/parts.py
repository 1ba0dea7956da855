"""The versions in a component, and in its release on a node. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_VERSION = re.compile(r"\{(\w+)\}$")
_PLACEHOLDER = re.compile(r"\{\w+\}")


@dataclass(frozen=True)
class Part:
    """A version of `versions.yml` by its name, the folder of a release that holds its file, and that file."""

    name: str
    folder: str
    file: re.Pattern[str]


def names(bill: Mapping[str, Any]) -> dict[str, set[str]]:
    """Return the names of versions by the component whose release changes with them."""
    versions: dict[str, set[str]] = {name: {name} for name in bill["components"]}
    for component, _, text in _sources(bill):
        versions[component] |= set(_VERSION.findall(text))
    return versions


def parts(bill: Mapping[str, Any]) -> dict[str, tuple[Part, ...]]:
    """Return the parts whose file names contain a version: those of layers copied into a folder."""
    parts_by_component: dict[str, list[Part]] = {name: [] for name in bill["components"]}
    for component, layer, text in _sources(bill):
        version, words = _VERSION.search(text), text.split(":")
        if version is None or "into" not in layer or "compile" in layer or len(words) < len("gav"):
            continue
        artifact = ".+".join(map(re.escape, _PLACEHOLDER.split(words[1])))
        file = re.compile(rf"{artifact}-(\d[\w.]*?)(-[a-z]+)?\.jar")
        parts_by_component[component].append(Part(version[1], layer["into"], file))
    return {component: tuple(items) for component, items in parts_by_component.items()}


def installed(parts: Iterable[Part], component: str, release: str, files: Iterable[str]) -> dict[str, str]:
    """Return the versions in a release, from its name and its files (`folder/name`)."""
    versions = {component: release.rpartition("-")[0]}
    paths = [path.rpartition("/") for path in files]
    for part in parts:
        for folder, _, name in paths:
            if folder == part.folder and (match := part.file.fullmatch(name)):
                versions.setdefault(part.name, match[1])
    return versions


def _sources(bill: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    for name, component in bill["components"].items():
        for layer in component["layers"].values():
            for text in layer["from"]:
                yield name, layer, text
