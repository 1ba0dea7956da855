"""Resolve the roots in `versions.yml` and write the locked part: every file with sha256, size and licence."""

from __future__ import annotations

import fnmatch
import hashlib
from collections.abc import Iterator
from pathlib import Path

from lakehouse.artifacts import licences, manifest, maven, pypi, tools
from lakehouse.artifacts.cache import Cache
from lakehouse.artifacts.coordinates import Coordinate
from lakehouse.artifacts.manifest import Artifact, Component, Manifest
from lakehouse.errors import LakehouseError
from plugins.module_utils.lakehouse.counting import counted

MARKER = "# LOCK: written by `lakehouse artifacts lock`; do not edit below this line"


def lock(path: Path, cache: Cache, log: tools.Log, root: Path | None = None) -> None:
    """Rewrite everything below the LOCK line of `path`; the same roots give the same bytes.

    `root` is the folder of its sources, by default its own folder.
    The registries are trusted at this moment: review the difference before you commit it.
    """
    bill = manifest.load(path, locked=False, root=root)
    with cache.exclusive(log), cache.staging() as staging:
        source_archives = _fetch_source_archives(bill, staging, log)
        locked = {
            component.name: _lock_component(bill, component, staging, source_archives, log)
            for component in bill.components.values()
        }
    human, _, _ = path.read_text(encoding="utf-8").partition(MARKER)
    text = f"{human.rstrip()}\n\n{MARKER}\n# yamllint disable rule:line-length\n{_render(locked)}"
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
    manifest.load(path, root=root)
    count = sum(len(files) for layers in locked.values() for files in layers.values())
    log(f"{path.name}: {counted(count, 'file locked', 'files locked')}")


def _fetch_source_archives(bill: Manifest, staging: Path, log: tools.Log) -> Path:
    roots = [
        root
        for component in bill.components.values()
        for layer in component.layers
        for root in layer.roots
        if root.is_pypi and not layer.wheels
    ]
    if roots:
        log(f"fetching {counted(len(roots), 'source archive')} with pip")
        _run(pypi.download_unchecked(roots, staging, staging), log)
    return staging


def _lock_component(
    bill: Manifest, component: Component, staging: Path, source_archives: Path, log: tools.Log
) -> dict[str, list[Artifact]]:
    maven_layers = [layer for layer in component.layers if not layer.wheels]
    closure = [root for layer in maven_layers if layer.closure for root in layer.roots]
    exact = [root for layer in maven_layers if not layer.closure for root in layer.roots if not root.is_pypi]
    repository = staging / component.name
    if closure or exact:
        log(f"resolving {component.name} {component.version} with Maven")
        _run(maven.resolve(closure, exact, staging / "poms", repository), log)
    files = dict(_resolved(repository))
    files |= {
        root: source_archives / root.path for layer in maven_layers for root in layer.roots if root.is_pypi
    }

    layer_of = {root: layer.name for layer in component.layers for root in layer.roots}
    for layer in component.layers:
        if layer.wheels:
            log(f"resolving {component.name} {component.version} with pip")
            folder = staging / f"{component.name}-{layer.name}"
            _run(pypi.resolve_wheels(layer.roots, layer.wheels, folder, folder), log)
            wheels = {wheel: folder / wheel.path for wheel in pypi.wheels(folder)}
            files |= wheels
            layer_of |= dict.fromkeys(wheels, layer.name)
    default_layer = next((layer.name for layer in maven_layers if layer.closure), None)
    layers: dict[str, list[Artifact]] = {layer.name: [] for layer in component.layers}
    for coordinate, file in sorted(files.items()):
        owner = layer_of.get(coordinate, default_layer)
        if owner is None:
            raise LakehouseError(f"{bill.path.name}: {component.name}: no layer asks for {coordinate}")
        layers[owner].append(_artifact(bill, coordinate, file, repository))
    return layers


def _artifact(bill: Manifest, coordinate: Coordinate, file: Path, repository: Path) -> Artifact:
    if not file.exists():
        raise LakehouseError(
            f"{coordinate}: expected a file named {file.name}", "check the coordinate in versions.yml"
        )
    with file.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    return Artifact(coordinate, sha256, file.stat().st_size, _licence(bill, coordinate, file, repository))


def _licence(bill: Manifest, coordinate: Coordinate, file: Path, repository: Path) -> str:
    for pattern, licence in bill.licences.items():
        if fnmatch.fnmatchcase(str(coordinate), pattern):
            return licence
    try:
        return licences.of_wheel(file) if coordinate.is_wheel else licences.of(coordinate, repository)
    except licences.UnknownLicenceError as error:
        raise LakehouseError(
            f"{coordinate}: no SPDX licence known for {str(error)!r}",
            f"add it to `licences` in {bill.path.name}",
        ) from None


def _resolved(repository: Path) -> Iterator[tuple[Coordinate, Path]]:
    """Find the artifacts among the files of a Maven repository (not the POMs and not Maven's own notes)."""
    for file in repository.rglob("*"):
        version, artifact = file.parent.name, file.parent.parent.name
        prefix = f"{artifact}-{version}"
        if not file.is_file() or not file.name.startswith(prefix) or file.suffix == ".pom":
            continue
        group = ".".join(file.relative_to(repository).parts[:-3])
        classifier, _, type_ = file.name.removeprefix(prefix).removeprefix("-").partition(".")
        yield Coordinate(group, artifact, type_, classifier, version), file


def _run(tool: tools.Tool, log: tools.Log) -> None:
    for failure in tools.run([tool], log):
        raise failure.error()


def _render(locked: dict[str, dict[str, list[Artifact]]]) -> str:
    lines = ["lock:"]
    for component, layers in locked.items():
        lines.append(f"  {component}:")
        for layer, artifacts in layers.items():
            lines.append(f"    {layer}:")
            lines.extend(
                f'      - {{coordinate: "{item.coordinate}", sha256: "{item.sha256}", '
                f"bytes: {item.size}, licence: {item.licence}}}"
                for item in artifacts
            )
    return "\n".join(lines) + "\n"
