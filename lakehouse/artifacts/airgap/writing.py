"""Write a bundle: fetch the files of an installation into an archive."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from lakehouse import artifacts, run
from lakehouse.artifacts import airgap, apt, pypi, tools
from lakehouse.artifacts.airgap import debian, licences
from lakehouse.artifacts.cache import Cache, translated_disk_errors
from lakehouse.artifacts.manifest import Manifest
from lakehouse.artifacts.seals import sha256_of
from lakehouse.errors import LakehouseError
from lakehouse.report import text as numbers
from plugins.module_utils.lakehouse.counting import counted

LOCK = "requirements/runtime.lock"
# The scripts that install the control machine's packages, and list them.
_INSTALLERS = ("scripts/bootstrap", "scripts/ensure-docker")
SCHEMA = 1


def write(bill: Manifest, names: Collection[str], cache: Cache, target: Path, log: tools.Log) -> str:
    """Write the bundle of these components to `target` atomically; return a line about it.

    Raises LakehouseError where something cannot be fetched, or the disk is full.
    """
    started = time.monotonic()
    target.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=target.parent, prefix=".bundle-") as folder,
        ThreadPoolExecutor() as pool,
    ):
        work = Path(folder)
        for side in (
            pool.submit(artifacts.fetch, bill, names, cache, log),
            pool.submit(_wheels, work / airgap.WHEELS, log),
            pool.submit(debian.collect, _codename(), control_packages(), work / airgap.CONTROL, log),
            pool.submit(debian.collect, bill.debian.suite, node_packages(bill), work / airgap.NODES, log),
        ):
            side.result()
        files = {str(path.relative_to(work)): path for path in sorted(work.rglob("*")) if path.is_file()}
        artifact_licences = {}
        for name in names:
            for artifact in bill.component(name).artifacts:
                path = f"{airgap.ARTIFACTS}/{artifact.coordinate.path}"
                files[path], artifact_licences[path] = cache.file(artifact), artifact.licence
        texts = {"LICENCES": _licences(files, artifact_licences), "bundle.json": _about(bill, names)}
        size = pack(files, texts, target)
    seconds = time.monotonic() - started
    return f"{target}; {counted(len(files) + len(texts), 'file')}, {numbers.size(size)}, {seconds:.0f} s"


def pack(files: Mapping[str, Path], texts: Mapping[str, str], target: Path) -> int:
    """Write an archive of files and texts by their path in it, checksums first; return its bytes.

    It is not compressed: its files are. Raises LakehouseError where the disk is full.
    """
    part = target.with_name(f".{target.name}.part")
    needed = sum(path.stat().st_size for path in files.values())
    if (free := shutil.disk_usage(target.parent).free) < needed:
        raise LakehouseError(
            f"disk full: the bundle needs {needed >> 20} MB in {target.parent}, {free >> 20} MB are free",
            "free some space, or name another place with --output",
        )
    sums = {path: sha256_of(file) for path, file in files.items()}
    sums |= {path: hashlib.sha256(text.encode()).hexdigest() for path, text in texts.items()}
    lines = "".join(f"{sums[path]}  {path}\n" for path in sorted(sums))
    try:
        with (
            translated_disk_errors(target.parent),
            tarfile.open(part, "w", format=tarfile.GNU_FORMAT) as archive,
        ):
            for path, text in {"SHA256SUMS": lines, **texts}.items():
                info = tarfile.TarInfo(path)
                info.size = len(text.encode())
                archive.addfile(info, io.BytesIO(text.encode()))
            for path, file in sorted(files.items()):
                info = tarfile.TarInfo(path)
                info.size = file.stat().st_size
                with file.open("rb") as stream:
                    archive.addfile(info, stream)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return target.stat().st_size


def control_packages() -> list[str]:
    """Return the Debian packages that the scripts install on a control machine which lacks all of them."""
    outputs = (
        subprocess.run([run.ROOT / script, "--packages"], check=True, capture_output=True, text=True).stdout
        for script in _INSTALLERS
    )
    return [package for output in outputs for package in output.split()]


def node_packages(bill: Manifest) -> list[str]:
    """Return the packages of a local node's image and those that roles install."""
    return [*apt.BARE_MACHINE, *bill.debian.packages.values()]


def _wheels(target: Path, log: tools.Log) -> None:
    """Fetch the packages of the control machine's Python environment, for this version of Python."""
    target.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        for failure in tools.run([pypi.download_locked(run.ROOT / LOCK, Path(folder), target)], log):
            raise failure.error()
    log(f"{counted(len(list(target.iterdir())), 'Python package')}")


def _codename() -> str:
    return platform.freedesktop_os_release().get("VERSION_CODENAME", "")


def _licences(files: Mapping[str, Path], artifact_licences: Mapping[str, str]) -> str:
    """Return a line for each file: its path and its licence."""
    lines = []
    for path, file in sorted(files.items()):
        if path in artifact_licences:
            lines.append(f"{path}  {artifact_licences[path]}")
        elif path.startswith(f"{airgap.WHEELS}/"):
            lines.append(f"{path}  {licences.of_python(file)}")
        elif file.suffix == ".deb":
            lines.append(f"{path}  {licences.DEBIAN}")
    return "".join(f"{line}\n" for line in lines)


def _about(bill: Manifest, names: Collection[str]) -> str:
    """Return the description of a bundle for users. No program relies on it: it is not verified."""
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=run.ROOT, capture_output=True, text=True, check=False
    )
    about = {
        "schema": SCHEMA,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit.stdout.strip() or None,
        "components": {name: bill.component(name).version for name in names},
        "control": {
            "suite": _codename(),
            "machine": platform.machine(),
            "python": ".".join(map(str, sys.version_info[:2])),
        },
        "nodes": {"suite": bill.debian.suite},
    }
    return json.dumps(about, indent=1) + "\n"
