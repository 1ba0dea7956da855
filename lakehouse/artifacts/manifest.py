"""The bill of materials `versions.yml` as immutable data, and the check of version pairs."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from lakehouse import yamlfile
from lakehouse.artifacts.compiling import Sources
from lakehouse.artifacts.coordinates import Coordinate
from lakehouse.errors import LakehouseError
from lakehouse.next_command import PROGRAM
from lakehouse.run import BILL, ROOT


def lock_command(path: Path | str) -> str:
    """Return the command that locks a bill of materials, which is below the kit's folder."""
    bill = os.path.relpath(path, ROOT) if Path(path).is_absolute() else str(path)
    return f"{PROGRAM} artifacts lock" + ("" if bill == BILL else f" --bill {shlex.quote(bill)}")


@dataclass(frozen=True)
class Artifact:
    """A file from Maven or PyPI: its coordinate, checksum, size and licence (SPDX)."""

    coordinate: Coordinate
    sha256: str
    size: int
    licence: str


@dataclass(frozen=True)
class Layer:
    """Files of a release that are placed by the same rule: copied `into` a folder, unpacked, or both.

    `wheels` is the minor version of Python for which PyPI's built packages are taken; None: no wheels.
    `sources` are the kit's own, which become a jar with the layer's name; its artifact is the compiler.
    """

    name: str
    roots: tuple[Coordinate, ...]
    closure: bool
    wheels: str | None
    into: str | None
    unpack: Mapping[str, str]
    drop: tuple[str, ...]
    expand: tuple[str, ...]
    artifacts: tuple[Artifact, ...]
    sources: Sources | None = None


@dataclass(frozen=True)
class Component:
    """The parts of one release, with the Java that runs it (None: no Java).

    `profile` is the smallest profile with this component.
    """

    name: str
    version: str
    java: str | None
    profile: str
    layers: tuple[Layer, ...]

    @property
    def artifacts(self) -> tuple[Artifact, ...]:
        """All files that the release is built from, in the order of its layers."""
        return tuple(artifact for layer in self.layers for artifact in layer.artifacts)

    @property
    def contents(self) -> tuple[Artifact, ...]:
        """The files that contribute to the release: all but a compiler."""
        return tuple(item for layer in self.layers if not layer.sources for item in layer.artifacts)

    @property
    def digest(self) -> str:
        """Sha256 over the inputs that determine the content of the release; computed without its files."""
        content = {
            "component": self.name,
            "version": self.version,
            "layers": [
                {
                    "into": layer.into,
                    "unpack": dict(layer.unpack),
                    "drop": layer.drop,
                    "expand": layer.expand,
                    "files": [[str(artifact.coordinate), artifact.sha256] for artifact in layer.artifacts],
                    **({"sources": layer.sources.digest} if layer.sources else {}),
                }
                for layer in self.layers
            ],
        }
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


@dataclass(frozen=True)
class Pair:
    """Two versions that depend on each other, and their tested combinations."""

    of: tuple[str, str]
    allowed: tuple[tuple[str, str], ...]
    reasons: Mapping[str, str] = field(default_factory=dict)

    def finding(self, versions: Mapping[str, str]) -> str | None:
        """Return a line if `versions` holds a combination that is not allowed, else None."""
        first, second = self.of
        if first not in versions or second not in versions:
            return None
        version, partner = versions[first], versions[second]
        if any(_matches(version, a) and _matches(partner, b) for a, b in self.allowed):
            return None
        reason = next(
            (why for pattern, why in self.reasons.items() if _matches(version, pattern)),
            "never tested together",
        )
        if allowed := [a for a, b in self.allowed if _matches(partner, b)]:
            return f"{first} {version} with {second} {partner}: {reason}; allowed: {', '.join(allowed)}"
        if allowed := [b for a, b in self.allowed if _matches(version, a)]:
            return f"{second} {partner} with {first} {version}: {reason}; allowed: {', '.join(allowed)}"
        combinations = ", ".join(f"{first} {a} with {second} {b}" for a, b in self.allowed)
        return f"{first} {version} with {second} {partner}: {reason}; allowed: {combinations}"


@dataclass(frozen=True)
class Debian:
    """The distribution of the nodes: its suite, and the packages that belong to the versions."""

    suite: str
    packages: Mapping[str, str]


@dataclass(frozen=True)
class Manifest:
    """The whole bill of materials."""

    path: Path
    versions: Mapping[str, str]
    debian: Debian
    components: Mapping[str, Component]
    pairs: tuple[Pair, ...]
    licences: Mapping[str, str]

    def component(self, name: str) -> Component:
        """Return a component by its name; LakehouseError lists the components for any other name."""
        try:
            return self.components[name]
        except KeyError:
            names = ", ".join(sorted(self.components))
            raise LakehouseError(f"{self.path.name}: no component {name!r}; known: {names}") from None

    def artifacts(self) -> Iterator[Artifact]:
        """Every file of every component."""
        for component in self.components.values():
            yield from component.artifacts


def load(path: Path, *, locked: bool = True, root: Path | None = None) -> Manifest:
    """Read `versions.yml`, or another file of its kind; `root` is the folder of its sources.

    With `locked=False` the layers have no artifacts: the lock command reads the file before it resolves them.
    Raises LakehouseError with the place of a mistake.
    """
    try:
        data = yamlfile.read(path)
    except FileNotFoundError:
        raise LakehouseError(f"{path}: no such file", "run it from the root of the repository") from None
    except yaml.YAMLError as error:
        raise LakehouseError(f"{path.name}: not YAML: {' '.join(str(error).split())}") from None
    reader = _Reader(path, data, locked, root or path.parent)
    return reader.manifest()


def pair_findings(pairs: tuple[Pair, ...], versions: Mapping[str, str]) -> list[str]:
    """Return a line for each combination of `versions` that was not tested."""
    return [finding for pair in pairs if (finding := pair.finding(versions))]


class _Reader:
    """Turns the parsed YAML into the dataclasses; one instance reads one file."""

    def __init__(self, path: Path, data: Any, locked: bool, root: Path) -> None:
        self.path = path
        self.data = data
        self.locked = locked
        self.root = root
        self.names: dict[str, str] = {}

    def manifest(self) -> Manifest:
        top = self._section(
            self.data, "versions.yml", {"versions", "debian", "components", "pairs", "licences"}, {"lock"}
        )
        versions = self._strings(top["versions"], "versions")
        minors = {f"{name}_minor": ".".join(version.split(".")[:2]) for name, version in versions.items()}
        self.names = minors | versions
        debian = self._section(top["debian"], "debian", {"suite", "packages"})
        packages = self._strings(debian["packages"], "debian.packages")
        return Manifest(
            path=self.path,
            versions=versions,
            debian=Debian(
                suite=debian["suite"],
                packages={
                    key: self._filled(text, f"debian.packages.{key}") for key, text in packages.items()
                },
            ),
            components={name: self._component(name, entry) for name, entry in top["components"].items()},
            pairs=tuple(self._pair(entry, f"pairs[{index}]") for index, entry in enumerate(top["pairs"])),
            licences=self._strings(top["licences"], "licences"),
        )

    def _component(self, name: str, entry: object) -> Component:
        where = f"components.{name}"
        section = self._section(entry, where, {"layers"}, {"java", "profile"})
        if name not in self.names:
            raise self._error(
                f"versions.{name}", "is missing: a component's version has the component's name"
            )
        java = section.get("java")
        return Component(
            name=name,
            version=self.names[name],
            java=None if java is None else self._filled(java, f"{where}.java"),
            profile=section.get("profile", "core"),
            layers=tuple(self._layer(name, key, layer) for key, layer in section["layers"].items()),
        )

    def _layer(self, component: str, name: str, entry: object) -> Layer:
        where = f"components.{component}.layers.{name}"
        section = self._section(
            entry, where, {"from"}, {"closure", "wheels", "compile", "into", "unpack", "drop", "expand"}
        )
        if not section.keys() & {"into", "unpack"}:
            raise self._error(where, "needs `into` or `unpack`")
        if "compile" in section and not (len(section["from"]) == 1 and "into" in section):
            raise self._error(where, "needs one compiler in `from`, and `into` for its jar")
        roots = tuple(self._coordinate(text, f"{where}.from") for text in section["from"])
        return Layer(
            name=name,
            roots=roots,
            closure=section.get("closure", False),
            wheels=self._filled(section["wheels"], f"{where}.wheels") if "wheels" in section else None,
            into=section.get("into"),
            unpack=self._strings(section.get("unpack", {}), f"{where}.unpack"),
            drop=tuple(section.get("drop", ())),
            expand=tuple(section.get("expand", ())),
            artifacts=self._artifacts(component, name, roots, "wheels" in section) if self.locked else (),
            sources=Sources.read(self.root / section["compile"]) if "compile" in section else None,
        )

    def _artifacts(
        self, component: str, layer: str, roots: tuple[Coordinate, ...], wheels: bool
    ) -> tuple[Artifact, ...]:
        where = f"lock.{component}.{layer}"
        entries = ((self.data.get("lock") or {}).get(component) or {}).get(layer) or []
        artifacts = []
        for index, entry in enumerate(entries):
            section = self._section(entry, f"{where}[{index}]", {"coordinate", "sha256", "bytes", "licence"})
            coordinate = self._coordinate(section["coordinate"], f"{where}[{index}]")
            artifacts.append(Artifact(coordinate, section["sha256"], section["bytes"], section["licence"]))
        locked_roots = {
            _project(artifact.coordinate) if wheels else artifact.coordinate for artifact in artifacts
        }
        if missing := [
            str(root) for root in roots if (_project(root) if wheels else root) not in locked_roots
        ]:
            raise LakehouseError(
                f"{self.path.name}: {where} does not hold {', '.join(missing)}",
                lock_command(self.path),
            )
        return tuple(artifacts)

    def _pair(self, entry: object, where: str) -> Pair:
        section = self._section(entry, where, {"of", "allowed"}, {"known"})
        if unknown := [name for name in section["of"] if name not in self.names]:
            raise self._error(f"{where}.of", f"{unknown[0]!r} is not among `versions`")
        first, second = section["of"]
        return Pair(
            of=(first, second),
            allowed=tuple((str(a), str(b)) for a, b in section["allowed"]),
            reasons=self._strings(section.get("known", {}), f"{where}.known"),
        )

    def _coordinate(self, text: str, where: str) -> Coordinate:
        try:
            return Coordinate.parse(self._filled(text, where))
        except ValueError as error:
            raise self._error(where, str(error)) from None

    def _filled(self, text: str, where: str) -> str:
        try:
            return text.format(**self.names)
        except (KeyError, IndexError, ValueError):
            raise self._error(where, f"{text!r} names a version that is not among `versions`") from None

    def _section(
        self, value: object, where: str, required: set[str], optional: set[str] | None = None
    ) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self._error(where, "must be a mapping")
        if missing := required - value.keys():
            raise self._error(where, f"lacks {', '.join(sorted(missing))}")
        if unknown := value.keys() - required - (optional or set()):
            raise self._error(where, f"has unknown {', '.join(sorted(map(str, unknown)))}")
        return value

    def _strings(self, value: object, where: str) -> dict[str, str]:
        if not isinstance(value, dict):
            raise self._error(where, "must be a mapping")
        for key, item in value.items():
            if not (isinstance(key, str) and isinstance(item, str)):
                raise self._error(where, f"{key}: {item!r} must be quoted: versions are text, not numbers")
        return value

    def _error(self, where: str, problem: str) -> LakehouseError:
        return LakehouseError(f"{self.path.name}: {where} {problem}")


def _project(coordinate: Coordinate) -> tuple[str, str]:
    """A project of PyPI and its version: without extras, and spelled as in the name of a wheel."""
    return coordinate.artifact.partition("[")[0].lower().replace("-", "_"), coordinate.version


def _matches(version: str, pattern: str) -> bool:
    """Whether `version` is `pattern`, or begins like it where the pattern ends in x ('4.1.x')."""
    return version.startswith(pattern[:-1]) if pattern.endswith(".x") else version == pattern
