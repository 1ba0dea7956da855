"""Patterns of clients as regular expressions that take no longer for a hostile one."""

from __future__ import annotations

from collections.abc import Sequence


def with_gaps(parts: Sequence[str]) -> str:
    """Return the expression of these parts with any letters between them, each of which matches one length.

    The first place of each part is taken and never given up (`(?>...)`): tried at every other one as well,
    twenty parts would take years.
    """
    first, *others = parts
    if not others:
        return first
    *middle, last = others
    return f"{first}{''.join(f'(?>.*?{part})' for part in middle)}.*{last}"
