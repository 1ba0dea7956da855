"""All that the pinned Python clients offer for tables, as sorted lines: every class, method and parameter.

.venv/bin/python -m tests.unit.surface     # writes the lines that the test of the matrix compares with
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

KNOWN = Path(__file__).with_name("data") / "surface.txt"
# Whole packages, and of Polars what has one of these words in its name.
PACKAGES = ("deltalake", "pyiceberg.table", "pyiceberg.catalog.hive", "pyiceberg.view")
CLASSES = (
    "duckdb.DuckDBPyConnection", "duckdb.DuckDBPyRelation",
    "pyiceberg.catalog.Catalog", "pyiceberg.catalog.MetastoreCatalog",
)  # fmt: skip
POLARS = ("polars", "polars.DataFrame", "polars.LazyFrame")
WORDS = ("delta", "iceberg", "catalog", "hive")


def surface() -> list[str]:
    """Return the lines: `package.Class.method(parameter)`, and `package.Class.name` for what has none."""
    found = {line for name in PACKAGES for module in _modules(name) for line in _module(module)}
    for name in CLASSES:
        found |= set(_class(name, _named(name)))
    for name in POLARS:
        owner = _named(name)
        chosen = {each for each in dir(owner) if any(word in each.lower() for word in WORDS)}
        found |= {line for each in chosen for line in _member(f"{name}.{each}", getattr(owner, each))}
    return sorted(found)


def _modules(name: str) -> Iterator[ModuleType]:
    module = importlib.import_module(name)
    yield module
    for info in pkgutil.iter_modules(getattr(module, "__path__", ())):
        if not info.name.startswith("_"):
            yield from _modules(f"{name}.{info.name}")


def _module(module: ModuleType) -> Iterator[str]:
    for name, member in vars(module).items():
        if not name.startswith("_") and getattr(member, "__module__", None) == module.__name__:
            yield from _member(f"{module.__name__}.{name}", member)


def _member(name: str, member: object) -> Iterator[str]:
    if inspect.isclass(member):
        yield from _class(name, member)
    elif callable(member):
        yield f"{name}()"
        yield from (f"{name}({parameter})" for parameter in _parameters(member))
    else:
        yield name


def _class(name: str, owner: object) -> Iterator[str]:
    yield name
    for each, member in vars(owner).items():
        if not each.startswith("_"):
            # What a class wraps: the function of a classmethod or a property's value has the parameters.
            yield from _member(f"{name}.{each}", getattr(member, "__func__", member))


def _parameters(function: object) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters  # type: ignore[arg-type]
    except (TypeError, ValueError):
        # A function of C++ says it in the first line of its docstring alone.
        return [(inspect.getdoc(function) or "").partition("\n")[0]]
    return [each for each in parameters if each != "self"]


def _named(name: str) -> object:
    module, _, member = name.rpartition(".")
    return getattr(importlib.import_module(module), member) if module else importlib.import_module(name)


if __name__ == "__main__":
    KNOWN.write_text("\n".join([*surface(), ""]), encoding="utf-8")
