"""The sections of docs/monitoring.md, one for each alert of the role `monitoring`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lakehouse import run, yamlfile

PAGE = run.ROOT / "docs" / "monitoring.md"
RULES = run.ROOT / "roles" / "monitoring" / "files" / "rules.yml"
_BLOCK = re.compile(r"(<!-- alerts:start [^\n]*-->\n).*?(<!-- alerts:end -->)", re.DOTALL)


def rules(path: Path = RULES) -> list[dict[str, Any]]:
    """Return the alerts of the file of rules."""
    return [rule for group in yamlfile.read(path)["groups"] for rule in group["rules"]]


def page(text: str) -> str:
    """Return the page with the sections of all alerts."""
    body = "\n".join(line for rule in rules() for line in _section(rule))
    return _BLOCK.sub(lambda match: f"{match[1]}{body}\n{match[2]}", text)


def _section(rule: dict[str, Any]) -> Iterator[str]:
    notes, lasting = rule["annotations"], f" for {rule['for']}" if "for" in rule else ""
    yield f"### {rule['alert']}"
    yield f"\nSeverity {rule['labels']['severity']}: `{' '.join(rule['expr'].split())}`{lasting}.\n"
    # A label stands for its value.
    command = re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda match: match[1].upper(), notes["command"])
    yield f"{notes['description']} Next: `{command}`.\n"
