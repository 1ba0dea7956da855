"""Installing without a network: a bundle is one file with everything, written where there is one.

Nothing in it is trusted for being in it: `scripts/unpack-bundle` compares each file with what this checkout
has locked or Debian has signed. Not to be confused with the support bundle, `ops.bundle`.
"""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

from lakehouse.errors import LakehouseError
from lakehouse.run import ROOT

VARIABLE = "LAKEHOUSE_BUNDLE"
# In the unpacked folder, and in the archive.
ARTIFACTS, WHEELS, CONTROL, NODES = "artifacts", "wheels", "debian/control", "debian/nodes"


def folder() -> Path | None:
    """Return where the bundle in use is unpacked, after every file was compared; None where none is in use.

    Raises LakehouseError, with the file that is not what it should be.
    """
    bundle = os.environ.get(VARIABLE)
    return _unpacked(bundle) if bundle else None


@cache
def _unpacked(bundle: str) -> Path:
    done = subprocess.run(
        [ROOT / "scripts" / "unpack-bundle", bundle], capture_output=True, text=True, check=False
    )
    if done.returncode:
        said, _, command = done.stderr.strip().rpartition("\n")[2].partition("; next: ")
        raise LakehouseError(said.removeprefix("bundle: "), command)
    return Path(done.stdout.strip())


def sources(unpacked: Path) -> list[str]:
    """Return the apt sources of the nodes' packages, for who copies them into another file system."""
    lines = (unpacked / "apt" / "nodes" / "sources.list").read_text(encoding="utf-8").splitlines()
    return [line.replace(" file:/", " copy:/") for line in lines]
