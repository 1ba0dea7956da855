"""What a check on a host found; the control machine adds the host's name and makes a line of it."""

from __future__ import annotations


def finding(check: str, fact: str, action: str, expected: str = "") -> dict[str, str]:
    """One fault: its check (``area.check``), what was seen and expected, and what to do about it."""
    return {"check": check, "fact": fact, "action": action, "expected": expected}
