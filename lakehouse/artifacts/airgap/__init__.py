"""Installation without a network: a bundle is an archive of all files, written on a machine with one.

The contents are not trusted: `scripts/unpack-bundle` compares each file with the checksums that this checkout
has locked or Debian has signed. Not to be confused with the support bundle, `lakehouse.support_bundle`.
"""

from __future__ import annotations

import os
import subprocess
import tarfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from urllib.parse import unquote

from lakehouse.errors import LakehouseError
from lakehouse.run import ROOT
from plugins.module_utils.lakehouse.checked_document import DocumentError, relative

VARIABLE = "LAKEHOUSE_BUNDLE"
# In the unpacked folder, and in the archive.
ARTIFACTS, WHEELS, CONTROL, NODES = "artifacts", "wheels", "debian/control", "debian/nodes"


def folder() -> Path | None:
    """Return the folder of the unpacked bundle, after every file was compared; None without a bundle.

    Raises LakehouseError with the first file whose checksum does not match.
    """
    bundle = os.environ.get(VARIABLE)
    return _unpacked(bundle) if bundle else None


@cache
def _unpacked(bundle: str) -> Path:
    process = subprocess.run(
        [ROOT / "scripts" / "unpack-bundle", bundle], capture_output=True, text=True, check=False
    )
    if process.returncode:
        message, _, command = process.stderr.strip().rpartition("\n")[2].partition("; next: ")
        raise LakehouseError(message.removeprefix("bundle: "), command)
    return Path(process.stdout.strip())


def sources(unpacked: Path) -> list[str]:
    """Return the apt sources of the nodes' packages, for copying them into another file system."""
    lines = (unpacked / "apt" / "nodes" / "sources.list").read_text(encoding="utf-8").splitlines()
    return [line.replace(" file:/", " copy:/") for line in lines]


def located(printed: str, repositories: Iterable[str]) -> dict[str, Path]:
    """Return the path of each package below its repository, by apt's name for it.

    `printed` is the output of `apt-get --print-uris`: the quoted URI, the name, size and hash of each. It may
    come from another machine: LakehouseError for a name or a path outside of the repository.
    """
    roots = tuple(f"{root.rstrip('/')}/" for root in repositories)
    paths = {}
    for line in printed.splitlines():
        if line.startswith("'"):
            address, name = [*line.replace("'", "").split(), "", ""][:2]
            root = next((root for root in roots if address.startswith(root)), address)
            try:
                paths[_name(name)] = Path(_path(unquote(address.removeprefix(root))))
            except DocumentError as error:
                raise LakehouseError(str(error), "apt-get --print-uris install, on that machine") from None
    return paths


def _path(path: str) -> str:
    if not path:
        raise DocumentError("a package of apt is in no repository of the bundle")
    return relative(path, "a package of apt")


def _name(name: str) -> str:
    if not name or "/" in relative(name, "a package of apt"):
        raise DocumentError("a package of apt has no name")
    return name


def pack_packages(unpacked: Path, printed: str, place: str, target: Path) -> int:
    """Write the packages that a node needs into an archive, by their path below `place`; return their number.

    `printed` is the node's output of --print-uris. Raises LakehouseError if the bundle lacks a package.
    """
    paths = sorted(located(printed, [f"file:{place}"]).values())
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as archive:
        for path in paths:
            file = unpacked / "content" / NODES / path
            if not file.is_file():
                raise LakehouseError(
                    f"{path.name} is not in the bundle", "make bundle, with this version of the kit"
                )
            archive.add(file, str(path), filter=_of_root)
    return len(paths)


def _of_root(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = "root"
    info.mode = 0o644
    return info
