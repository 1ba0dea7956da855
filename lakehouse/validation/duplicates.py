"""Keys that a file of the inventory has twice in one mapping: Ansible takes the last, drops the other."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path

import yaml

from lakehouse.validation.finding import Finding
from lakehouse.validation.replaced import FOLDERS

SUFFIXES = (".yml", ".yaml")


def twice(root: Path, sources: Collection[Path]) -> list[Finding]:
    """Find hosts, groups and variables that a file has twice in a mapping; findings show no value.

    ``sources`` are the files that name hosts; those below ``root``'s group_vars and host_vars are added.
    """
    variable_files = chain.from_iterable(sorted((root / folder).rglob("*")) for folder in FOLDERS)
    files = [
        path for path in (*sorted(sources), *variable_files) if path.suffix in SUFFIXES and path.is_file()
    ]
    findings = []
    for path in dict.fromkeys(files):
        places: dict[str, list[str]] = {}
        for key, first, line in _twice(path):
            places.setdefault(key, []).append(f"{first} and {line}")
        for key, lines in places.items():
            fact = f"{_place(path, root)} has {key} twice in one place (lines {', '.join(lines)})"
            advice = "name it once: Ansible drops what the first says"
            findings.append(Finding("vars.twice", "all", fact, advice, "every name once"))
    return findings


def _place(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else path.name


def _twice(path: Path) -> Iterator[tuple[str, int, int]]:
    """Yield the keys of a file that stand twice, with both lines; none of a file that is no YAML."""
    try:
        # What is encrypted, or has tags of Ansible's own, is not evaluated.
        top = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except (OSError, UnicodeError, yaml.YAMLError):
        return  # Ansible itself has said so, or does not read it
    if top is not None:
        yield from _in(top)


def _in(node: yaml.Node) -> Iterator[tuple[str, int, int]]:
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _in(item)
    if isinstance(node, yaml.MappingNode):
        lines: dict[str, int] = {}
        for key, value in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            if name in lines:
                yield name, lines[name], line
            lines.setdefault(name, line)
            yield from _in(value)
