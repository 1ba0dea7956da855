"""Folders of a repository, as dictionaries."""

from __future__ import annotations

from collections.abc import Mapping

from dulwich.objects import ObjectID, Tree

_FILE, _FOLDER = 0o100644, 0o040000


def entries(found: Tree) -> dict[str, str]:
    """Return the ids in a folder by name."""
    return {one.path.decode(): one.sha.decode() for one in found.iteritems()}


def tree(entries: Mapping[str, tuple[bool, str]]) -> Tree:
    """Return a folder of names, each a folder itself or not, and an id."""
    made = Tree()
    for name, (folder, number) in entries.items():
        made.add(name.encode(), _FOLDER if folder else _FILE, ObjectID(number.encode()))
    return made
