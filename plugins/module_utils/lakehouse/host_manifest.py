"""The manifest of a host: what modules have put there, and the inputs of the run that put all of it there.

Modules record an item where they put something (`record`). Between `begin` and `complete`, which a run of all
roles calls, the keys of these items are kept as `seen`: the others are no longer part of the kit, and
`complete` drops them. A run that fails leaves them, so that all that is on the host is still compared. A
module that records something else than what is there takes the inputs out: the host is no longer what one run
has made of it.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.lakehouse import host_state, safe_path
from ansible.module_utils.lakehouse.host_state import Item

# The option of every module that records what it puts.
OPTION: dict[str, dict[str, Any]] = {"manifest": {"type": "path"}}


def _document(path: str) -> dict[str, Any]:
    try:
        return host_state.read(path)
    except ValueError:
        return {"format": host_state.FORMAT, "run": "", "inputs": "", "items": {}}


def _write(path: str, document: Mapping[str, Any]) -> None:
    whole = {**document, "digest": host_state.sealed(document)}
    with safe_path.opened(path, make=True) as place:
        # For root alone, as mkstemp makes it: digests of files with secrets are among the items.
        handle, name = tempfile.mkstemp(dir=Path(place.path).parent, prefix=f".{place.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(json.dumps(whole, sort_keys=True, indent=1) + "\n")
        Path(name).replace(place.path)


def begin(path: str, run: str) -> None:
    """Note that a run of all roles begins."""
    _write(path, {**_document(path), "run": run, "inputs": "", "seen": []})


def record(path: str | None, items: Iterable[Item]) -> None:
    """Add what a module has put on the host; nothing where no manifest is kept."""
    if not path:
        return
    document = _document(path)
    recorded, keys = document["items"], document.get("seen")
    for item in items:
        key = host_state.key(item)
        # Of a unit one task may have the files, and another one the probes.
        is_merged = item["kind"] == "unit" and (keys is None or key in keys)
        earlier = recorded.get(key, {}) if is_merged else {}
        merged = {**earlier, **{name: value for name, value in item.items() if value or name not in earlier}}
        if recorded.get(key) != merged:
            recorded[key] = merged
            document["inputs"] = ""
        if keys is not None and key not in keys:
            keys.append(key)
    _write(path, document)


def complete(path: str, run: str, inputs: str) -> bool:
    """Name the inputs of a run whose roles have all ended; tell whether it is the run that began."""
    document = _document(path)
    keys = document.pop("seen", None)
    if keys is None or document["run"] != run:
        return False
    items = {key: item for key, item in document["items"].items() if key in keys}
    _write(path, {**document, "inputs": inputs, "items": items})
    return True
