"""Fetch the files of `versions.yml` with Maven and pip into the cache, after verifying each."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from lakehouse.artifacts import airgap, maven, pypi, tools
from lakehouse.artifacts.cache import Cache, translated_disk_errors
from lakehouse.artifacts.manifest import Artifact, Manifest
from lakehouse.errors import LakehouseError
from plugins.module_utils.lakehouse.counting import counted

FETCH_COMMAND = ".venv/bin/lakehouse artifacts fetch"


def cache_dir() -> Cache:
    """Return the user's cache: $LAKEHOUSE_CACHE, or ~/.cache/lakehouse."""
    return Cache(Path(os.environ.get("LAKEHOUSE_CACHE") or Path.home() / ".cache" / "lakehouse"))


def fetch(manifest: Manifest, components: Iterable[str], cache: Cache, log: tools.Log) -> None:
    """Fetch the files of these components that the cache lacks.

    With a warm cache it compares sizes and times with the index and starts no process. Otherwise Maven and
    pip run concurrently into a staging folder, or the configured bundle is read, and a file is moved into the
    cache only if its sha256 is the one in `versions.yml`. Raises LakehouseError for failures that users can
    fix; verified files stay, so that the next run fetches only the others.
    """
    started = time.monotonic()
    layers = [layer for name in components for layer in manifest.component(name).layers]
    by_path = {item.coordinate.path: item for layer in layers for item in layer.artifacts}
    pythons = {item: layer.wheels for layer in layers if layer.wheels for item in layer.artifacts}
    required = list(by_path.values())
    with translated_disk_errors(cache.root):
        if cache.missing(required):
            with cache.exclusive(log):
                if bundle := airgap.folder():
                    _take(cache.missing(required), bundle, cache)
                else:
                    _fetch_missing(cache.missing(required), pythons, cache, log)
    size = sum(artifact.size for artifact in required)
    log(f"{counted(len(required), 'file')} ({size >> 20} MB) verified in {time.monotonic() - started:.1f} s")


def _take(missing: list[Artifact], bundle: Path, cache: Cache) -> None:
    """Link files of an unpacked bundle, which is on the cache's disk, into the cache."""
    with cache.staging() as staging:
        for artifact in missing:
            source = bundle / "content" / airgap.ARTIFACTS / artifact.coordinate.path
            staged = staging / artifact.coordinate.path
            if source.is_file():
                staged.parent.mkdir(parents=True, exist_ok=True)
                staged.hardlink_to(source)
        for artifact, fault in cache.adopt(missing, staging).items():
            raise LakehouseError(f"{artifact.coordinate} in {bundle}: {fault}", f"rm -r {bundle}; then again")
    if absent := cache.missing(missing):
        raise LakehouseError(
            f"{counted(len(absent), 'file is', 'files are')} not in the bundle, first {absent[0].coordinate}",
            "make bundle, with this version of the kit and this profile",
        )


def _fetch_missing(
    missing: list[Artifact], pythons: Mapping[Artifact, str], cache: Cache, log: tools.Log
) -> None:
    if not missing:  # another process has fetched all files while this one waited
        return
    from_pypi = [artifact for artifact in missing if artifact.coordinate.is_pypi]
    from_maven = [artifact for artifact in missing if not artifact.coordinate.is_pypi]
    # Maven keeps a copy in its own repository; pip unpacks an archive once to ask it for its name.
    cache.require_space(_size(from_maven) * 2 + _size(from_pypi) * 3, "the download")
    with cache.staging() as staging:
        downloads = []
        if from_maven:
            log(f"fetching {counted(len(from_maven), 'file')} ({_size(from_maven) >> 20} MB) with Maven")
            downloads.append(maven.copy([item.coordinate for item in from_maven], staging, staging))
        if from_pypi:
            log(f"fetching {counted(len(from_pypi), 'file')} ({_size(from_pypi) >> 20} MB) with pip")
            downloads += _from_pypi(from_pypi, pythons, staging)
        failures = tools.run(downloads, log)
        faults = cache.adopt(missing, staging)
        _keep_logs(staging, cache)
        if faults:
            raise _rejection(faults, staging, log)
    if failures:
        raise failures[0].error()
    if absent := cache.missing(missing):
        raise LakehouseError(f"{absent[0].coordinate} was not delivered", f"less {cache.root / 'logs'}")


def _from_pypi(
    missing: list[Artifact], pythons: Mapping[Artifact, str], staging: Path
) -> Iterator[tools.Tool]:
    """Plan one run for source archives, and one for the wheels of each Python."""
    for python in sorted({pythons.get(item) or "" for item in missing}):
        hashes = {item.coordinate: item.sha256 for item in missing if (pythons.get(item) or "") == python}
        if python:
            yield pypi.download_wheels(hashes, python, staging, staging)
        else:
            yield pypi.download(hashes, staging, staging)


def _rejection(faults: dict[Artifact, str], staging: Path, log: tools.Log) -> LakehouseError:
    """Remove the rejected files from Maven's repository, which downloads them again; return the error."""
    if from_maven := [item.coordinate for item in faults if not item.coordinate.is_pypi]:
        for failure in tools.run([maven.forget(from_maven, staging)], log):
            log(failure.message)
    artifact, fault = next(iter(faults.items()))
    count = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return LakehouseError(
        f"{artifact.coordinate}: {fault}{count}; the file was thrown away",
        f"{FETCH_COMMAND}; if it happens again, the mirror serves another file than versions.yml names",
    )


def _keep_logs(staging: Path, cache: Cache) -> None:
    folder = cache.root / "logs"
    folder.mkdir(exist_ok=True)
    for file in staging.glob("*.log"):
        shutil.copyfile(file, folder / file.name)


def _size(artifacts: Iterable[Artifact]) -> int:
    return sum(artifact.size for artifact in artifacts)
