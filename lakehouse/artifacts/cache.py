"""The cache on the control machine: verified files and built releases, safe for several processes."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lakehouse import locks
from lakehouse.artifacts.manifest import Artifact
from lakehouse.artifacts.seals import Seal, Seals, look, sha256_of
from lakehouse.artifacts.tools import Log
from lakehouse.errors import LakehouseError
from plugins.module_utils.lakehouse.counting import counted

LOCK_WAIT_SECONDS = 1800.0


class Cache:
    """Files under one root: `artifacts/` (verified before they are added), `releases/`, a staging folder.

    Verified files are sealed, outside of the cache, so that a warm one is checked without reading gigabytes.
    A file that differs from its seal is read again, and so is every file of a cache from another computer.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.releases = root / "releases"
        self.seals = Seals(root)
        self._artifacts = root / "artifacts"

    def file(self, artifact: Artifact) -> Path:
        """Where the artifact lies, or would lie."""
        return self._artifacts / artifact.coordinate.path

    def missing(self, artifacts: list[Artifact]) -> list[Artifact]:
        """Return the artifacts that the cache lacks; damaged files are removed."""
        seals, new_seals = self.seals.known(), dict[str, Seal]()
        missing = [artifact for artifact in artifacts if not self._holds(artifact, seals, new_seals)]
        self.seals.add(new_seals)
        return missing

    def adopt(self, artifacts: list[Artifact], staging: Path) -> dict[Artifact, str]:
        """Move staged files with the right checksum into the cache; return the faults of the others.

        Files that were not delivered are in neither group.
        """
        faults = {}
        new_seals = {}
        for artifact in artifacts:
            staged = staging / artifact.coordinate.path
            if not staged.exists():
                continue
            if fault := _fault(artifact, staged):
                faults[artifact] = fault
                staged.unlink()
                continue
            target = self.file(artifact)
            target.parent.mkdir(parents=True, exist_ok=True)
            staged.replace(target)
            new_seals[self.seals.key(target)] = Seal(look(target), artifact.sha256)
        self.seals.add(new_seals)
        return faults

    @contextmanager
    def exclusive(self, log: Log) -> Iterator[None]:
        """Hold the lock of the cache; wait for another process that holds it, with a timeout."""
        with translated_disk_errors(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
        used = f"{self.root} is in use by another process"
        with (self.root / ".lock").open("w") as handle:
            if not locks.hold(handle, LOCK_WAIT_SECONDS, lambda: log(f"{used}: waiting")):
                raise LakehouseError(
                    f"{used} for {LOCK_WAIT_SECONDS:.0f} s", f"fuser -v {self.root / '.lock'}"
                )
            yield

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """Yield an empty folder on the cache's disk; files of an interrupted run are removed."""
        folder = self.root / "staging"
        shutil.rmtree(folder, ignore_errors=True)
        with translated_disk_errors(self.root):
            folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def require_space(self, size: int, purpose: str) -> None:
        """LakehouseError if the disk has fewer than `size` bytes left."""
        free = shutil.disk_usage(self.root).free
        if free < size:
            raise LakehouseError(
                f"disk full: {purpose} needs {size >> 20} MB under {self.root}, {free >> 20} MB are free",
                "free some space, or point LAKEHOUSE_CACHE to a larger disk",
            )

    def _holds(self, artifact: Artifact, seals: Mapping[str, Seal], new_seals: dict[str, Seal]) -> bool:
        """Whether the file exists with the right content; a file that was read is added to `new_seals`."""
        file = self.file(artifact)
        if not file.exists():
            return False
        key, status = self.seals.key(file), look(file)
        if seals.get(key) == Seal(status, artifact.sha256):
            return True
        if _fault(artifact, file):
            file.unlink(missing_ok=True)
            return False
        new_seals[key] = Seal(status, artifact.sha256)
        return True


@contextmanager
def translated_disk_errors(place: Path) -> Iterator[None]:
    """Raise LakehouseError for a full, read-only or forbidden disk; other errors propagate."""
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise LakehouseError(
                f"disk full: cannot write to {place}",
                "free some space, or point LAKEHOUSE_CACHE to a larger disk",
            ) from None
        if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR}:
            raise LakehouseError(
                f"cannot write to {place}: {error.strerror}", "point LAKEHOUSE_CACHE to a folder of yours"
            ) from None
        raise


def _fault(artifact: Artifact, file: Path) -> str | None:
    """Return what is wrong with the content of a file, in a few words."""
    size = file.stat().st_size
    if size < artifact.size:
        return f"truncated: {size} of {counted(artifact.size, 'byte')}"
    sha256 = sha256_of(file)
    if sha256 != artifact.sha256:
        return f"wrong checksum: expected sha256 {artifact.sha256[:12]}, got {sha256[:12]}"
    return None
