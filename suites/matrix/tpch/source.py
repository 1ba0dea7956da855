"""The source files: generated once by `tpchgen-cli`, and identified by their checksums."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lakehouse.errors import LakehouseError

SCALE = "0.1"
# What the pinned release writes, byte for byte, with any number of threads; a file for sha256sum --check.
CHECKSUMS = Path(__file__).with_name(f"sf{SCALE}.sha256")


@dataclass(frozen=True)
class Source:
    """A folder with a Parquet file for each table; `checksums` (sha256) by the name of the table."""

    folder: Path
    checksums: Mapping[str, str]

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables, in alphabetical order."""
        return tuple(sorted(self.checksums))

    def file(self, table: str) -> Path:
        """Return the file that holds the rows of a table."""
        return self.folder / f"{table}.parquet"


def parse(listing: str) -> dict[str, str]:
    """Read the lines of sha256sum: the checksum of each table's file."""
    entries = (line.split() for line in listing.splitlines())
    return {name.removesuffix(".parquet"): checksum for checksum, name in entries}


def wrong(source: Source) -> list[str]:
    """Return the names of the files that are missing or do not match their checksums."""
    return [
        source.file(table).name
        for table, checksum in source.checksums.items()
        if not source.file(table).is_file()
        or hashlib.sha256(source.file(table).read_bytes()).hexdigest() != checksum
    ]


def ensure(cache: Path) -> Source:
    """Return the files of the folder `cache`, generated again unless all are complete.

    Raises LakehouseError when the generator fails, or when its files do not match the checksums.
    """
    source = Source(cache / f"sf{SCALE}", parse(CHECKSUMS.read_text(encoding="utf-8")))
    if not wrong(source):
        return source
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as staging:
        generated = Source(Path(staging), source.checksums)
        _generate(generated.folder)
        if names := wrong(generated):
            raise LakehouseError(
                f"tpchgen-cli wrote other bytes than {CHECKSUMS.name} says: {', '.join(names)}",
                "scripts/bootstrap, which installs the release that is pinned",
            )
        shutil.rmtree(source.folder, ignore_errors=True)
        shutil.copytree(generated.folder, source.folder)
    return source


def _generate(folder: Path) -> None:
    argv = [
        str(Path(sys.executable).with_name("tpchgen-cli")),
        "parquet",
        "--quiet",
        f"--scale-factor={SCALE}",
        f"--output-dir={folder}",
    ]
    try:
        process = subprocess.run(argv, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise LakehouseError("tpchgen-cli is not installed", "scripts/bootstrap") from None
    if process.returncode:
        raise LakehouseError(f"tpchgen-cli failed: {process.stderr.strip()[-300:]}", "df -h build")
