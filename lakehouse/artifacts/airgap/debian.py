"""The Debian packages of a bundle: those that apt would install on an empty machine."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lakehouse.artifacts import airgap, apt, tools
from lakehouse.artifacts.tools import Failure, Log, Tool
from lakehouse.errors import LakehouseError
from plugins.module_utils.lakehouse.counting import counted

# The packages of every Debian, for machines that lack some or have older versions.
BASE = ("?essential", "?priority(required)", "apt")
# apt stores indexes compressed as the mirror sends them: Debian's signature has that checksum.
_AS_SENT = ("KeepCompressed=true", "KeepCompressedAs=xz")
_INDEX = "$(REPO_URI)|$(RELEASE)|$(METAKEY)|$(FILENAME)"
_HELPER = "/usr/lib/apt/apt-helper"
_UPDATE = "sudo apt-get update"


@dataclass(frozen=True)
class Index:
    """A list of packages: the repository's URI, the release's name, the path below it, and apt's copy."""

    repository: str
    release: str
    path: str
    file: Path


def collect(suite: str, packages: Iterable[str], target: Path, log: Log) -> None:
    """Write a repository of these packages and their dependencies to `target`, from this computer's mirrors.

    `dists/` holds indexes and signatures as they are on the mirror, `pool/` only these packages.
    Raises LakehouseError if apt has no mirror of this release of Debian, or a package cannot be downloaded.
    """
    lines = apt.sources(suite)
    if not lines:
        raise LakehouseError(
            f"this computer's apt knows no mirror of Debian {suite}; a bundle is written on Debian", _UPDATE
        )
    with tempfile.TemporaryDirectory() as folder:
        apt_get = _Apt(Path(folder), lines, log)
        apt_get.run("update", "--error-on=any")
        indexes = apt_get.indexes()
        for index in indexes:
            _keep_index(index, target)
        install = ("install", "--yes", "--no-install-recommends", *BASE, *packages)
        paths = airgap.located(
            apt_get.output(*install, "--print-uris"), [index.repository for index in indexes]
        )
        apt_get.run(*install, "--download-only")
        for name, path in paths.items():
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.move(apt_get.archives / name, target / path)
        log(f"{counted(len(paths), 'package')} of Debian {suite}")


class _Apt:
    """apt with its own sources, lists, archives, and an empty list of installed packages."""

    def __init__(self, folder: Path, lines: Iterable[str], log: Log) -> None:
        self._folder, self._log = folder, log
        self.archives = folder / "archives"
        for path in (self.archives / "partial", folder / "lists" / "partial"):
            path.mkdir(parents=True)
        (folder / "status").touch()
        # Only the lists of packages, no translations.
        text = "".join(f"{line.replace('deb ', 'deb [target=Packages lang=none] ', 1)}\n" for line in lines)
        (folder / "sources.list").write_text(text, encoding="utf-8")
        settings = {
            "Dir::Etc::SourceList": folder / "sources.list",
            "Dir::Etc::SourceParts": "/dev/null",
            "Dir::Etc::Preferences": "/dev/null",
            "Dir::Etc::PreferencesParts": "/dev/null",
            "Dir::State": folder,
            "Dir::State::Lists": folder / "lists",
            "Dir::State::Status": folder / "status",
            "Dir::Cache": folder,
            "Dir::Cache::Archives": self.archives,
            "APT::Sandbox::User": "root",
        }
        options = [f"{name}={value}" for name, value in settings.items()]
        options += [f"Acquire::IndexTargets::deb::Packages::{word}" for word in _AS_SENT]
        self._options = [word for option in options for word in ("-o", option)]

    def run(self, *words: str) -> None:
        """Run apt-get; LakehouseError with the first error of its output."""
        log = self._folder / f"{words[0]}.log"
        tool = Tool(
            "apt", ("apt-get", "--quiet", *self._options, *words), {"LC_ALL": "C.UTF-8"}, log, explain, ""
        )
        for failure in tools.run([tool], self._log):
            raise failure.error()

    def output(self, *words: str) -> str:
        """Return the standard output of apt-get."""
        process = subprocess.run(
            ["apt-get", *self._options, *words], capture_output=True, text=True, check=False
        )
        if process.returncode:
            raise explain(process.stderr).error()
        return process.stdout

    def indexes(self) -> list[Index]:
        """Return the lists of packages that were read."""
        rows = self.output("indextargets", "--format", _INDEX, "Created-By: Packages").splitlines()
        return [
            Index(uri, release, path, Path(file))
            for uri, release, path, file in (row.split("|") for row in rows)
        ]


def _keep_index(index: Index, target: Path) -> None:
    """Move a list of packages and copy the signed file that lists it, which apt stores beside it.

    apt gets the list as text in its place: lookups in a compressed one begin at its start each time.
    """
    release = target / "dists" / index.release
    path = release / f"{index.path}{index.file.name.rpartition('Packages')[2]}"
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(index.file, path)
    text = index.file.with_name(f"{index.file.name.rpartition('Packages')[0]}Packages")
    with text.open("wb") as stream:
        subprocess.run([_HELPER, "cat-file", path], stdout=stream, check=True)
    prefix = index.file.name.partition(f"_dists_{index.release}_")[0]
    shutil.copyfile(index.file.with_name(f"{prefix}_dists_{index.release}_InRelease"), release / "InRelease")


def explain(output: str) -> Failure:
    """Return the first error in the output of apt."""
    lines = [line.removeprefix("E: ") for line in output.splitlines() if line.startswith("E: ")]
    messages = lines or [line for line in output.splitlines() if line.strip()] or ["no output"]
    return Failure(f"apt: {messages[0].strip()}", _UPDATE, transient="Failed to fetch" in output)
