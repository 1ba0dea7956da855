"""Changes to the kit as a contributor makes them, each a folder: `edits.yml`, and new files below `files`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parent
# How many files a contributor writes by hand, at most.
MOST_FILES: Mapping[str, int] = {"metrics": 6, "quorum": 13, "tls": 8}
