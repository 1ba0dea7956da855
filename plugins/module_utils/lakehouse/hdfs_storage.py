"""What a storage directory of HDFS holds, read from its files alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ansible.module_utils.lakehouse.refused import RefusedError

# The folder of a format that is not complete yet.
MAKING = ".lakehouse-making"
# A mount point's own folder, and what a daemon that never registered or an interrupted format leaves behind.
IGNORED = ("lost+found", "in_use.lock", MAKING)
# An image by its last transaction; neither its checksum nor one that is still being written (fsimage.ckpt_0).
IMAGE = re.compile(r"fsimage_\d+")
# The newest layouts that Hadoop 3.5.0 reads; they count downwards. In hadoop-hdfs.jar they are in the classes
# NameNodeLayoutVersion and DataNodeLayoutVersion.
NAME_LAYOUT, DATA_LAYOUT = -67, -57


@dataclass(frozen=True)
class Storage:
    """One directory: ``state`` is ``empty``, ``formatted`` or ``incomplete``.

    ``layout`` is what it was written in, ``readable`` the newest that can be read of its kind.
    """

    path: str
    state: str
    cluster_id: str | None = None
    layout: int = 0
    readable: int = 0


def read_version(path: Path) -> dict[str, str]:
    """The key=value pairs of a VERSION file."""
    pairs = (line.split("=", 1) for line in path.read_text(encoding="utf-8").splitlines() if "=" in line)
    return {key.strip(): value.strip() for key, value in pairs}


def inspect(directory: str, *, name_dir: bool) -> Storage:
    """Classify a directory; a NameNode's also needs an image, or a format was interrupted."""
    path = Path(directory)
    version = path / "current" / "VERSION"
    if not version.is_file():
        content = [entry for entry in path.iterdir() if entry.name not in IGNORED] if path.is_dir() else []
        return Storage(directory, "incomplete" if content else "empty")
    pairs = read_version(version)
    has_image = any(IMAGE.fullmatch(entry.name) for entry in (path / "current").iterdir())
    return Storage(
        directory,
        "incomplete" if name_dir and not has_image else "formatted",
        pairs.get("clusterID"),
        int(pairs.get("layoutVersion") or 0),
        NAME_LAYOUT if name_dir else DATA_LAYOUT,
    )


def problem(storage: Storage, cluster_id: str) -> str | None:
    """One line that says why the directory must not be used, or None."""
    if storage.state == "incomplete":
        return (
            f"{storage.path} is neither empty nor a complete storage directory (an interrupted format, or"
            f" foreign files); nothing was touched; next: ls -lR {storage.path}, then move it away"
        )
    if storage.cluster_id not in (None, cluster_id):
        return (
            f"{storage.path} belongs to cluster {storage.cluster_id} (expected {cluster_id});"
            f" nothing was touched; next: move it away, or set lakehouse_cluster_id: {storage.cluster_id}"
        )
    if storage.layout < storage.readable:
        return (
            f"{storage.path} was written by a newer Hadoop: its layout is {storage.layout} (expected"
            f" {storage.readable}, which this one writes); nothing was touched; next: go back to the release"
            " that wrote it, or move it away"
        )
    return None


def check(name_dirs: list[str], data_dirs: list[str], cluster_id: str) -> bool:
    """Refuse unusable directories; return whether one holds data of this cluster."""
    directories = [inspect(path, name_dir=True) for path in name_dirs]
    directories += [inspect(path, name_dir=False) for path in data_dirs]
    problems = [line for storage in directories if (line := problem(storage, cluster_id))]
    if problems:
        raise RefusedError("\n".join(problems))
    return any(storage.state == "formatted" for storage in directories)
