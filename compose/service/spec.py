"""What a container is told: one JSON file, rendered from the inventory.

``ready`` has a list of probes by name, ``steps`` the parameters of each step, and ``guard`` by unit the
directories that must be empty or of the cluster (``name_dirs``, ``data_dirs``, ``cluster_id``).
"""

from __future__ import annotations

import json
from typing import Any

from ansible.module_utils.lakehouse.refused import RefusedError

PATH = "/etc/lakehouse/service.json"


def document(path: str) -> dict[str, Any]:
    """Return the JSON object in a file, or raise RefusedError."""
    try:
        with open(path, encoding="utf-8") as stream:  # noqa: PTH123 -- a health check does without pathlib
            return dict(json.load(stream))
    except (OSError, ValueError) as error:
        raise RefusedError(f"{path}: {error}", "render the configuration again, and mount it") from error


def entry(section: str, name: str) -> Any:
    """Return the entry ``name`` of a section, or raise RefusedError with the names that there are."""
    entries = document(PATH).get(section, {})
    if name not in entries:
        raise RefusedError(
            f"{PATH} has no {section}.{name}", f"name one of these: {', '.join(sorted(entries)) or 'none'}"
        )
    return entries[name]
