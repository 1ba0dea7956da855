"""Which versions a component is made of, and which of them a release on a node has. Pure."""

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
    found: dict[str, set[str]] = {name: {name} for name in bill["components"]}
    for component, _, text in _sources(bill):
        found[component] |= set(_VERSION.findall(text))
    return found


def parts(bill: Mapping[str, Any]) -> dict[str, tuple[Part, ...]]:
    """Return what tells versions by the name of a file: the layers that are copied into a folder."""
    found: dict[str, list[Part]] = {name: [] for name in bill["components"]}
    for component, layer, text in _sources(bill):
        version, words = _VERSION.search(text), text.split(":")
        if version is None or "into" not in layer or "compile" in layer or len(words) < len("gav"):
            continue
        artifact = ".+".join(map(re.escape, _PLACEHOLDER.split(words[1])))
        file = re.compile(rf"{artifact}-(\d[\w.]*?)(-[a-z]+)?\.jar")
        found[component].append(Part(version[1], layer["into"], file))
    return {component: tuple(those) for component, those in found.items()}


def installed(known: Iterable[Part], component: str, release: str, files: Iterable[str]) -> dict[str, str]:
    """Return the versions in a release, from its name and the files (`folder/name`) that lie in it."""
    found = {component: release.rpartition("-")[0]}
    there = [path.rpartition("/") for path in files]
    for part in known:
        for folder, _, name in there:
            if folder == part.folder and (match := part.file.fullmatch(name)):
                found.setdefault(part.name, match[1])
    return found


def _sources(bill: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    for name, component in bill["components"].items():
        for layer in component["layers"].values():
            for text in layer["from"]:
                yield name, layer, text
