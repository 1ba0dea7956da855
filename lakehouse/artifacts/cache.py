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
    """Files under one root: `artifacts/` (verified before they got in), `releases/`, and a staging folder.

    What was read is sealed, outside of the cache, so that a warm one is checked without reading gigabytes; a
    file that does not look like its seal is read again, and so is every file of a cache from elsewhere.
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
        """Those that are not in the cache with the right content; a damaged file is removed on the way."""
        known, read = self.seals.known(), dict[str, Seal]()
        missing = [artifact for artifact in artifacts if not self._holds(artifact, known, read)]
        self.seals.add(read)
        return missing

    def adopt(self, artifacts: list[Artifact], staging: Path) -> dict[Artifact, str]:
        """Move staged files with the right content into the cache; return what is wrong with the others.

        Files that were not delivered at all are in neither group.
        """
        wrong = {}
        read = {}
        for artifact in artifacts:
            staged = staging / artifact.coordinate.path
            if not staged.exists():
                continue
            if fault := _fault(artifact, staged):
                wrong[artifact] = fault
                staged.unlink()
                continue
            target = self.file(artifact)
            target.parent.mkdir(parents=True, exist_ok=True)
            staged.replace(target)
            read[self.seals.key(target)] = Seal(look(target), artifact.sha256)
        self.seals.add(read)
        return wrong

    @contextmanager
    def exclusive(self, log: Log) -> Iterator[None]:
        """Hold the cache against other processes; wait for the one that holds it, but not for ever."""
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
        """Yield an empty folder on the cache's disk; what an interrupted run left in it goes first."""
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

    def _holds(self, artifact: Artifact, known: Mapping[str, Seal], read: dict[str, Seal]) -> bool:
        """Whether the file is there with the right content; one that had to be read is added to `read`."""
        file = self.file(artifact)
        if not file.exists():
            return False
        key, seen = self.seals.key(file), look(file)
        if known.get(key) == Seal(seen, artifact.sha256):
            return True
        if _fault(artifact, file):
            file.unlink(missing_ok=True)
            return False
        read[key] = Seal(seen, artifact.sha256)
        return True


@contextmanager
def translated_disk_errors(place: Path) -> Iterator[None]:
    """Turn a full, read-only or forbidden disk into one line; other errors pass."""
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
    """Say in a few words what is wrong with the content of a file."""
    size = file.stat().st_size
    if size < artifact.size:
        return f"truncated: {size} of {counted(artifact.size, 'byte')}"
    sha256 = sha256_of(file)
    if sha256 != artifact.sha256:
        return f"wrong checksum: expected sha256 {artifact.sha256[:12]}, got {sha256[:12]}"
    return None
