"""Takes a text of SQL apart into its statements. Pure."""

from __future__ import annotations

import re

# What a semicolon may be part of: text, names in quotes, comments. One that nobody closes goes to the end.
_PIECE = re.compile(
    r"""'(?:[^']|'')*(?:'|\Z)|"(?:[^"]|"")*(?:"|\Z)|`[^`]*(?:`|\Z)|--[^\n]*|/\*.*?(?:\*/|\Z)|;|[^'"`;/-]+|.""",
    re.DOTALL,
)
_COMMENT = ("--", "/*")


def split(text: str) -> list[str]:
    """Return the statements without their semicolons and without comments; empty ones are left out.

    A hint, `/*+ ... */`, is part of a statement.
    """
    found = [""]
    for piece in _PIECE.findall(text):
        if piece == ";":
            found.append("")
        elif piece.startswith(_COMMENT) and not piece.startswith("/*+"):
            found[-1] += " "
        else:
            found[-1] += piece
    return [statement.strip() for statement in found if statement.strip()]
