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
from collections.abc import Iterable, Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule
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
    sealed_document = {**document, "digest": host_state.sealed(document)}
    account = {"owner": str(os.geteuid()), "group": str(os.getegid())}
    with safe_path.opened(path, make=True) as place:
        # For root alone: digests of files with secrets are among the items.
        safe_path.replace(
            place, json.dumps(sealed_document, sort_keys=True, indent=1) + "\n", {**account, "mode": "0600"}
        )


def begin(path: str, run: str) -> None:
    """Note that a run of all roles begins."""
    _write(path, {**_document(path), "run": run, "inputs": "", "seen": []})


def put(module: AnsibleModule, items: Iterable[Item], *, instead_of: str = "") -> None:
    """Record what a module has put on the host, but in check mode; end the module where that fails."""
    path = module.params["manifest"]
    if not path or module.check_mode:
        return
    try:
        record(path, items, instead_of=instead_of)
    except (OSError, safe_path.UnsafePathError) as error:
        module.fail_json(msg=f"{path}: {error}; next: ls -ld {path}")


def record(path: str, items: Iterable[Item], *, instead_of: str = "") -> None:
    """Add items, in place of releases and links of other names that begin with `instead_of`."""
    document = _document(path)
    recorded, keys = document["items"], document.get("seen")
    items_by_key = {host_state.key(item): item for item in items}
    for key in [
        key for key, item in recorded.items() if _is_former(item, instead_of) and key not in items_by_key
    ]:
        del recorded[key]
        document["inputs"] = ""
    for key, item in items_by_key.items():
        # Of a unit one task may have the files, and another one the probes.
        is_merged = item["kind"] == "unit" and (keys is None or key in keys)
        earlier = recorded.get(key, {}) if is_merged else {}
        lists = {
            name: value for name, value in earlier.items() if isinstance(value, list) and not item.get(name)
        }
        merged = {**item, **lists}
        if recorded.get(key) != merged:
            if keys is not None and key in keys and item["kind"] != "unit":
                # Another run writes at the same time: none of the two knows what the other has made.
                document.pop("seen", None)
                keys = None
            recorded[key] = merged
            document["inputs"] = ""
        if keys is not None and key not in keys:
            keys.append(key)
    _write(path, document)


def _is_former(item: Item, root: str) -> bool:
    return bool(root) and item["kind"] in ("link", "release") and str(item["path"]).startswith(root)


def complete(path: str, run: str, inputs: str) -> bool:
    """Name the inputs of a run whose roles have all ended; tell whether it is the run that began."""
    document = _document(path)
    keys = document.pop("seen", None)
    if not keys or document["run"] != run:
        return False
    items = {key: item for key, item in document["items"].items() if key in keys}
    _write(path, {**document, "inputs": inputs, "items": items})
    return True
