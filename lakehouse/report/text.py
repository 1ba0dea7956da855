"""Numbers as people read them."""

from __future__ import annotations

_MINUTE = 60.0
_KIB = 1024


def seconds(value: float) -> str:
    """Write a duration: '0.4 s', '12.3 s', '2 min 05 s'."""
    if round(value, 1) < _MINUTE:
        return f"{value:.1f} s"
    minutes, remainder = divmod(round(value), 60)
    return f"{minutes} min {remainder:02d} s"


def size(value: int) -> str:
    """Write a number of bytes: '0 B', '12.3 KiB', '1.0 GiB'."""
    if value < _KIB:
        return f"{value} B"
    amount = float(value)
    for unit in ("KiB", "MiB", "GiB"):
        amount /= _KIB
        if amount < _KIB:
            return f"{amount:.1f} {unit}"
    return f"{amount / _KIB:.1f} TiB"
