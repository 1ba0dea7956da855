"""Write a number with its noun: `1 unit`, `3 units`.

Standard library only, and Python 3.9: this runs on the nodes, too.
"""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun: `singular`, or `plural`, by default the singular with an s.

    A verb belongs to both forms: counted(1, "block lacks a replica", "blocks lack a replica").
    """
    return f"{number} {singular if number == 1 else plural or f'{singular}s'}"


def first_and_rest(items: Sequence[object]) -> str:
    """Return the first item, and how many follow: `sales.orders and 2 more`; of a single item itself."""
    return f"{items[0]} and {len(items) - 1} more" if items[1:] else str(items[0])
