"""Write a list of names into the repository, where the validation of inventories reads it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping

from lakehouse.validation import keylists

HEADER = "# Written by `python -m {}` from {}; do not edit.\n"
RELEASE = "the classes of the release"
# Whole names, for grep; many in a line, for there are thousands, and no person reads them in order.
WIDTH = 160


def formatted(sections: Mapping[str, Iterable[str]], program: str, source: str = RELEASE) -> str:
    """Return the file of a component: its sections, which program wrote them, and from what."""
    lines = [HEADER.format(program, source).rstrip()]
    for section, words in sections.items():
        lines += [
            f"[{section}]",
            *textwrap.wrap(" ".join(words), WIDTH, break_long_words=False, break_on_hyphens=False),
        ]
    return "\n".join(lines) + "\n"


def write(component: str, program: str, sections: Mapping[str, Iterable[str]], source: str = RELEASE) -> None:
    """Write the list of a component."""
    keylists.path(component).write_text(formatted(sections, program, source), encoding="utf-8")
