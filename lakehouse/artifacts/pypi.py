"""Pip as the downloader of source archives and wheels.

Index, proxies and credentials are what the user has configured for pip; nothing here names a registry.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from lakehouse.artifacts.coordinates import Coordinate
from lakehouse.artifacts.tools import Failure, Tool

# The machine for which wheels are taken, and the systems: releases of glibc up to the one of Debian 13.
MACHINE = "x86_64"
_SYSTEMS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_24", "manylinux_2_17", "manylinux2014")
_SOURCES = ("--no-deps", "--no-binary=:all:", "--no-build-isolation")
_CHECK_NETWORK = "check the network and pip's index and proxy (pip config list), then run it again"
_MISMATCH = re.compile(
    r"DO NOT MATCH THE HASHES.*?\n\s*(?P<what>\S+)[^\n]*:\n"
    r"\s*Expected \w+ (?P<expected>\w+)\s+Got\s+(?P<got>\w+)",
    flags=re.DOTALL,
)


def download(hashes: Mapping[Coordinate, str], workdir: Path, destination: Path) -> Tool:
    """Plan a run that places these source archives, and no other content, under `destination`.

    Pip runs the setup.py of an archive for its metadata, so it must check the hash itself, before we can. It
    builds in our environment (setuptools, wheel): an isolated one would be installed anew for each archive.
    """
    lines = [f"{coordinate} --hash=sha256:{sha256}" for coordinate, sha256 in sorted(hashes.items())]
    return _tool(lines, workdir, destination, "--require-hashes", *_SOURCES)


def download_unchecked(coordinates: Iterable[Coordinate], workdir: Path, destination: Path) -> Tool:
    """Plan the same before the hashes are known: for the lock command alone."""
    return _tool([str(coordinate) for coordinate in sorted(coordinates)], workdir, destination, *_SOURCES)


def download_wheels(hashes: Mapping[Coordinate, str], python: str, workdir: Path, destination: Path) -> Tool:
    """Plan a run that places these wheels for another Python, and no other content, under `destination`."""
    lines = [f"{wheel.requirement} --hash=sha256:{sha256}" for wheel, sha256 in sorted(hashes.items())]
    return _tool(lines, workdir, destination, "--require-hashes", "--no-deps", *_wheels_for(python))


def resolve_wheels(roots: Iterable[Coordinate], python: str, workdir: Path, destination: Path) -> Tool:
    """Plan a run that finds these projects with all they need: for the lock command alone."""
    return _tool([root.requirement for root in sorted(roots)], workdir, destination, *_wheels_for(python))


def wheels(destination: Path) -> Iterator[Coordinate]:
    """Coordinates of the wheels that a run has placed there."""
    for file in sorted((destination / "pypi").glob("*.whl")):
        name, version, tag = file.stem.split("-", 2)
        yield Coordinate("", name, "whl", tag, version)


def download_locked(lock: Path, workdir: Path, destination: Path) -> Tool:
    """Plan a run that places what a lock file pins, for this Python, in `destination`."""
    options = ["--require-hashes", "--no-deps", "--no-build-isolation"]
    return _downloader("pip-locked", lock, workdir, destination, *options)


def _wheels_for(python: str) -> list[str]:
    platforms = [f"--platform={system}_{MACHINE}" for system in _SYSTEMS]
    return ["--only-binary=:all:", "--implementation=cp", f"--python-version={python}", *platforms]


def explain(output: str) -> Failure:
    """Return the decisive line in the output of a failed run.

    No failure is retried: pip itself has already retried.
    """
    if "No space left on device" in output:
        return Failure("disk full: pip could not write a file", "df -h and free some space")
    if mismatch := _MISMATCH.search(output):
        return Failure(
            f"{mismatch['what']}: wrong checksum: expected sha256 {mismatch['expected'][:12]}, "
            f"got {mismatch['got'][:12]}; the file was thrown away",
            ".venv/bin/lakehouse artifacts fetch; if it happens again, "
            "the index serves another file than versions.yml",
        )
    if retries := re.findall(r"after connection broken by '(.+)': (/\S*)", output):
        reason, place = retries[-1]
        return Failure(f"pip could not reach its index for {place}: {reason}", _CHECK_NETWORK)
    if download_error := re.search(r"^\W*(Download failed .+)$", output, flags=re.MULTILINE):
        return Failure(f"pip: {download_error[1]}", _CHECK_NETWORK)
    lines = re.findall(r"^ERROR: (.+)$", output, flags=re.MULTILINE) or output.split("\n")
    messages = [line.strip() for line in lines if line.strip()] or ["no output"]
    return Failure(f"pip failed: {messages[-1]}", "check versions.yml and the index (pip config list)")


def _tool(lines: list[str], workdir: Path, destination: Path, *options: str) -> Tool:
    workdir.mkdir(parents=True, exist_ok=True)
    # Two runs, one of them for wheels, may share the folder.
    name = "pip" if "--no-binary=:all:" in options else "pip-wheels"
    requirements = workdir / f"{name}.txt"
    requirements.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return _downloader(name, requirements, workdir, destination / "pypi", *options)


def _downloader(name: str, requirements: Path, workdir: Path, destination: Path, *options: str) -> Tool:
    temporary = workdir / name
    temporary.mkdir(exist_ok=True)
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--disable-pip-version-check",
        "--progress-bar=off",
        "--no-cache-dir",  # one cache is enough, and a bad file must not come back from another
        *options,
        f"--requirement={requirements}",
        f"--dest={destination}",
    ]
    return Tool(
        name="pip",
        command=tuple(command),
        environment={"TMPDIR": str(temporary), "LC_ALL": "C.UTF-8"},
        log=workdir / f"{name}.log",
        explain=explain,
        hint=f"{sys.executable} -m ensurepip",
    )
