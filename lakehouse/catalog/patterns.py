"""Regular expressions for the patterns of clients, without catastrophic backtracking."""

from __future__ import annotations

from collections.abc import Sequence


def with_gaps(parts: Sequence[str]) -> str:
    """Return the expression of these parts with any text between them; each part matches a fixed length.

    The first match of each part is final, by an atomic group (`(?>...)`): with backtracking, twenty parts
    would take years.
    """
    first, *further = parts
    if not further:
        return first
    *middle, last = further
    return f"{first}{''.join(f'(?>.*?{part})' for part in middle)}.*{last}"
