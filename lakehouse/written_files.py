"""The record of the files that the kit has written to a host: digest and path on each line, as of sha256sum.

The module that writes the files keeps it, and `lakehouse doctor` compares the files with it.
"""

from __future__ import annotations

import shlex

NAME = "lakehouse-files.sha256"


def record(config_dir: object) -> str | None:
    """Return the path of the record, None where the folder of configuration is not known."""
    return f"{config_dir}/{NAME}" if config_dir else None


def recorded(path: str) -> list[str]:
    """Return commands that fail where a line of `$digests` is not recorded, or a recorded file is gone."""
    there = shlex.quote(path)
    return [
        f"test -f {there}",
        f'test -z "$(printf "%s\\n" "$digests" | LC_ALL=C sort | LC_ALL=C comm -23 - {there})"',
        f'while read -r _ file; do test -e "$file" || exit 1; done < {there}',
    ]


def differing(path: str) -> str:
    """Return the command that prints a line for each recorded file that has another digest, or is gone.

    It fails where there is no record, or where it cannot be read.
    """
    there = shlex.quote(path)
    return f"test -r {there} && {{ sha256sum --check --quiet {there} 2>/dev/null || true; }}"
