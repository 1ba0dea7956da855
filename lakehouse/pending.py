"""Paths that a run in check mode would have changed, for later tasks that depend on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

FACT = "lakehouse_pending"


def remembered(result: dict[str, Any], paths: Sequence[str], variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return a task's result with these paths added to the host's fact, which playbooks/site.yml hands on."""
    pending_paths = variables.get("ansible_facts", {}).get(FACT, [])
    return result | {"ansible_facts": {FACT: [*pending_paths, *paths]}}
