"""The list of a release's files on a host: a size and a name on each line, sorted by bytes.

The module that unpacks a release writes it; `site.yml` and `lakehouse doctor` compare the release with it.
"""

from __future__ import annotations

NAME = ".lakehouse-files"


def differing(folder: str) -> str:
    """Return the command that prints the lines of files that a release lacks, or has with another size.

    The folder is a word of the shell, quoted where that is needed. What the list does not name is ignored:
    Python writes its caches beside its modules. It fails where the release has no list.
    """
    return (
        f"cd -- {folder} && test -f {NAME} && find . -type f -printf '%s %P\\n'"
        f" | LC_ALL=C sort | LC_ALL=C comm -23 {NAME} -"
    )
