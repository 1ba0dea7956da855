"""The golden files: what the hosts of three inventories are rendered to.

A file that several hosts of an inventory share is stored once. The first host of an inventory is stored in
full; each of the others is *like* one before it: it has the same files, but for those stored below its own
name and those that ``hosts.yml`` lists as absent.
"""

from __future__ import annotations

import difflib
import shutil
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

GOLDEN = Path(__file__).with_name("golden")
HOSTS = "hosts.yml"
HEAD = """\
---
# Written by `make golden`. A host has the files of the one that it is like, but for those that are absent
# and those that lie in its own folder here. A host that is not listed has all of its files here.
"""

# Texts by path; below an inventory's folder a path begins with the host.
Files = Mapping[str, str]


class Difference(NamedTuple):
    """What makes a host, ``<inventory>/<host>``, different from the one that it is like."""

    like: str
    own: Files
    absent: tuple[str, ...]


def difference(host: Files, like: str, model: Files) -> Difference:
    """Return what makes a host different from another."""
    own = {path: text for path, text in host.items() if model.get(path) != text}
    return Difference(like, own, tuple(sorted(model.keys() - host.keys())))


def pack(trees: Mapping[str, Files]) -> tuple[dict[str, Files], dict[str, Difference]]:
    """Return the first host of each inventory, and the others as differences from the closest one before.

    The closest is the one that leaves fewest files to store, then fewest to call absent.
    """
    full, differences = dict[str, Files](), dict[str, Difference]()
    for inventory, files in trees.items():
        hosts = by_host({inventory: files})
        names = list(hosts)
        full |= {name: hosts[name] for name in names[:1]}
        for number, name in enumerate(names[1:], start=1):
            candidates = (difference(hosts[name], like, hosts[like]) for like in names[:number])
            differences[name] = min(candidates, key=lambda each: (len(each.own), len(each.absent)))
    return full, differences


def unpack(full: Mapping[str, Files], differences: Mapping[str, Difference]) -> dict[str, dict[str, str]]:
    """Return every inventory's files; KeyError where a host is like one that does not come before it."""
    hosts = dict(full)
    for name, (like, own, absent) in differences.items():
        shared = {path: text for path, text in hosts[like].items() if path not in absent}
        hosts[name] = {**shared, **own}
    trees: dict[str, dict[str, str]] = {}
    for name, files in hosts.items():
        inventory, host = name.split("/")
        trees.setdefault(inventory, {}).update({f"{host}/{path}": text for path, text in files.items()})
    return trees


def by_host(trees: Mapping[str, Files]) -> dict[str, dict[str, str]]:
    """Return the files of every host, ``<inventory>/<host>``."""
    hosts: dict[str, dict[str, str]] = {}
    for inventory, files in trees.items():
        for path, text in files.items():
            host, _, rest = path.partition("/")
            hosts.setdefault(f"{inventory}/{host}", {})[rest] = text
    return hosts


def changes(name: str, rendered: Files) -> list[str]:
    """Return how an inventory's files differ from its golden files, as a unified diff of each file."""
    golden = expected()[name]
    lines: list[str] = []
    for path in sorted(golden.keys() | rendered.keys()):
        if golden.get(path) != rendered.get(path):
            old, new = (
                [] if text is None else text.splitlines() for text in (golden.get(path), rendered.get(path))
            )
            diff = difflib.unified_diff(old, new, f"golden/{name}/{path}", f"rendered/{path}", lineterm="")
            lines += list(diff) or [f"golden/{name}/{path}: another line break at the end, or an empty file"]
    return lines


def read_tree(root: Path) -> dict[str, str]:
    """Return every file below a folder, its text by its path; of a link the text is where it leads."""
    paths = sorted(path for path in root.rglob("*") if path.is_symlink() or path.is_file())
    return {
        str(path.relative_to(root)): f"-> {path.readlink()}\n"
        if path.is_symlink()
        else path.read_text("utf-8")
        for path in paths
    }


def read(root: Path = GOLDEN) -> tuple[dict[str, Files], dict[str, Difference]]:
    """Return what is stored: hosts in full, and differences."""
    declared = yaml.safe_load((root / HOSTS).read_text("utf-8"))
    stored = by_host({folder.name: read_tree(folder) for folder in sorted(root.iterdir()) if folder.is_dir()})
    differences = {
        name: Difference(each["like"], stored.pop(name, {}), tuple(each.get("absent", ())))
        for name, each in declared.items()
    }
    return dict(stored), differences


@cache
def expected() -> dict[str, dict[str, str]]:
    """Return what every inventory with golden files has to become."""
    return unpack(*read())


def write(rendered: Path, inventories: Iterable[str], root: Path = GOLDEN) -> None:
    """Store renderings, a folder for each of these inventories, instead of what is stored."""
    full, differences = pack({name: read_tree(rendered / name) for name in inventories})
    shutil.rmtree(root, ignore_errors=True)
    for name, files in (*full.items(), *((name, each.own) for name, each in differences.items())):
        for path in files:
            target = root / name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(rendered / name / path, target, follow_symlinks=False)
    declared = {name: dict(_declared(each)) for name, each in differences.items()}
    (root / HOSTS).write_text(HEAD + yaml.dump(declared, Dumper=_Indented, sort_keys=False), encoding="utf-8")


def _declared(each: Difference) -> Iterator[tuple[str, Any]]:
    yield "like", each.like
    if each.absent:
        yield "absent", list(each.absent)


class _Indented(yaml.SafeDumper):
    """Lists are indented, as everywhere in the repository."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT
        super().increase_indent(flow, indentless=False)
