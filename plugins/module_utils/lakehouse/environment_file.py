"""Files of variables that systemd reads for a daemon (EnvironmentFile= of systemd.exec(5))."""

from __future__ import annotations

import re
from pathlib import Path

# A value is quoted, or it is the rest of the line.
LINE = re.compile(
    r"""^\s*(?P<name>[A-Za-z_]\w*)=(?:"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>[^']*)'|(?P<plain>.*?))\s*$"""
)
# What a backslash hides between double quotes; before anything else it is an ordinary character.
HIDDEN = re.compile(r'\\(["\\`$])')


def environment_of(path: str) -> dict[str, str]:
    """Return the variables of a file; raise OSError where it cannot be read."""
    lines = Path(path).read_text(encoding="utf-8").split("\n")
    return dict(_pair(match) for line in lines if (match := LINE.match(line)))


def _pair(match: re.Match[str]) -> tuple[str, str]:
    if match["double"] is not None:
        return match["name"], HIDDEN.sub(r"\1", match["double"])
    return match["name"], match["plain"] if match["single"] is None else match["single"]
