"""Convert git trees to and from dictionaries."""

from __future__ import annotations

from collections.abc import Mapping

from dulwich.objects import ObjectID, Tree

_FILE, _FOLDER = 0o100644, 0o040000


def entries(tree: Tree) -> dict[str, str]:
    """Return the ids of a folder's entries by name."""
    return {entry.path.decode(): entry.sha.decode() for entry in tree.iteritems()}


def tree(entries: Mapping[str, tuple[bool, str]]) -> Tree:
    """Return a git tree; each entry is by its name, whether it is a folder, and its id."""
    tree = Tree()
    for name, (folder, number) in entries.items():
        tree.add(name.encode(), _FOLDER if folder else _FILE, ObjectID(number.encode()))
    return tree
