"""The golden files: two inventories in full, of every host of the others what makes it different.

Such a host is *like* one that comes before it: it has the same files, but for its own, which are stored as
those of the full inventories are, and without those that ``hosts.yml`` calls absent. So a change that many
hosts share is a change of few files.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

GOLDEN = Path(__file__).with_name("golden")
HOSTS = "hosts.yml"
FULL = ("tests", "three-node")
HEAD = """\
---
# Written by `make golden`. A host has the files of the one that it is like, but for those that are absent
# and those that lie in its own folder here.
"""

# Texts by path; below an inventory's folder a path begins with the host.
Files = Mapping[str, str]


class Difference(NamedTuple):
    """What makes a host, ``<inventory>/<host>``, different from the one that it is like."""

    like: str
    own: Files
    absent: tuple[str, ...]


def difference(host: Files, like: str, other: Files) -> Difference:
    """Return what makes a host different from another."""
    own = {path: text for path, text in host.items() if other.get(path) != text}
    return Difference(like, own, tuple(sorted(other.keys() - host.keys())))


def pack(trees: Mapping[str, Files]) -> tuple[dict[str, Files], dict[str, Difference]]:
    """Return the hosts of the full inventories, and the others as differences from the closest one before.

    The closest is the one that leaves fewest files to store, then fewest to call absent.
    """
    hosts = by_host(trees)
    full: dict[str, Files] = {name: hosts[name] for name in hosts if name.split("/")[0] in FULL}
    known, differences = dict(full), dict[str, Difference]()
    for name in hosts:
        if name not in full:
            found = (difference(hosts[name], like, known[like]) for like in known)
            differences[name] = min(found, key=lambda each: (len(each.own), len(each.absent)))
            known[name] = hosts[name]
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


def read_tree(root: Path) -> dict[str, str]:
    """Return every file below a folder, its text by its path; of a link the text is where it leads."""
    found = sorted(path for path in root.rglob("*") if path.is_symlink() or path.is_file())
    return {
        str(path.relative_to(root)): f"-> {path.readlink()}\n"
        if path.is_symlink()
        else path.read_text("utf-8")
        for path in found
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
    """Return what every inventory has to become."""
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
