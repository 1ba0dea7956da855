"""What a run in check mode would have changed by now, so that a later task can say what follows from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

FACT = "lakehouse_pending"


def remembered(result: dict[str, Any], paths: Sequence[str], variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return a task's result with these paths added to the host's fact, which playbooks/site.yml hands on."""
    known = variables.get("ansible_facts", {}).get(FACT, [])
    return result | {"ansible_facts": {FACT: [*known, *paths]}}
