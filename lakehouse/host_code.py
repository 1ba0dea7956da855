"""The modules of the kit that a program on a host needs: those of its package, and what they import."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from lakehouse.run import ROOT


@cache
def modules(package: str) -> tuple[str, ...]:
    """Return the paths of a package's modules and of all that they import here, sorted, below the root."""
    paths: set[str] = set()
    waiting = [f"{package}.{path.stem}" for path in (ROOT / package.replace(".", "/")).glob("*.py")]
    while waiting:
        for path in _files(waiting.pop()):
            if path not in paths:
                paths.add(path)
                waiting += _imports(path)
    return tuple(sorted(paths))


def folders(package: str) -> tuple[str, ...]:
    """Return the folders of these modules and the ones above them, sorted, below the root."""
    parents = {parent for path in modules(package) for parent in Path(path).parents}
    return tuple(sorted(str(parent) for parent in parents if parent != Path()))


def _files(module: str) -> Iterator[str]:
    """Yield the files that an import of a module reads: those of its packages, and its own."""
    words = module.removesuffix(".__init__").split(".")
    for length in range(1, len(words) + 1):
        path = "/".join(words[:length])
        yield from (file for file in (f"{path}.py", f"{path}/__init__.py") if (ROOT / file).is_file())


def _imports(path: str) -> Iterator[str]:
    """Yield the modules that a file names in its imports; a name that is no module has no file."""
    package = Path(path).with_suffix("").parts
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package[: len(package) - node.level] if node.level else ()
            module = ".".join([*parents, *filter(None, [node.module])])
            yield from (f"{module}.{alias.name}" for alias in node.names)
