"""Text for a terminal, which no value, name or comment of a table may steer."""

from __future__ import annotations

from unicodedata import category

# What a text of several lines keeps.
LINES = "\n\t"


def printable(text: str, keep: str = "") -> str:
    r"""Return the text with an escape, such as `\x1b`, for each character that is not shown as it is.

    These are control characters (C1, marks of direction and separators of lines too) and what no script has:
    halves of pairs, private and unassigned characters. Those in `keep` stay.
    """
    return "".join(letter if letter in keep or _is_shown(letter) else _escape(letter) for letter in text)


def _is_shown(letter: str) -> bool:
    # Python takes every space but one for unprintable: those of typography are shown.
    return letter.isprintable() or category(letter) == "Zs"


def _escape(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
