"""Everything that a run of all roles is given, as digests: the kit, the inventory and facts of the hosts.

The roles render the same from the same inputs. A host that is as its manifest says, which has been written
from the same inputs, is as a run would make it (docs/decisions/0096-state-manifest.md).
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lakehouse.run import ROOT

# What roles, plugins and modules are made of, and what they install.
_KIT = (
    "ansible.cfg", "backup", "clients", "lakehouse", "playbooks", "plugins",
    "roles", "services.yml", "templates", "versions.yml",
)  # fmt: skip
# Of variables of Ansible's own, those that an inventory sets and a role reads.
_CONNECTION = frozenset({"ansible_host", "ansible_port"})
# What one run is told, and does not change what it makes of a host.
_OF_A_RUN = frozenset({"lakehouse_forsaken", "lakehouse_restarts", "lakehouse_run"})
# Ansible's own, with the place of a checkout in them.
_PLACES = frozenset({"inventory_dir", "inventory_file", "playbook_dir"})
# Facts that sizes and accounts follow from.
_FACTS = ("memtotal_mb", "processor_vcpus", "architecture", "lakehouse_members")
# A value whose result depends on more than the variables that it names.
_LOOKUP = re.compile(
    r"\b(lookup|query|q|now|random|shuffle|pipe|strftime|expandvars|expanduser|fileglob|realpath|exists|file|"
    r"directory|link|mount)\b"
)
# Lookups of sources outside the kit and the inventory.
OUTSIDE = re.compile(r"\bansible\.builtin\.(env|password|pipe)\b")
# An inventory is text.
_MOST_BYTES = 16 << 20

Evaluate = Callable[[str, Any], Any]


def files(folder: Path, bill: str = "") -> str:
    """Return the digest of the kit and of an inventory's folder; `bill` is another bill of materials.

    Where one of them cannot be read as a whole, the digest equals no other one.
    """
    whole = hashlib.sha256(version("ansible-core").encode())
    try:
        for root, names in ((ROOT, (*_KIT, *filter(None, [bill]))), (folder, ("",))):
            for path in _files(root, names):
                whole.update(f"{path.relative_to(root)}\0".encode())
                whole.update(hashlib.sha256(path.read_bytes()).digest())
    except (OSError, ValueError):
        return secrets.token_hex()
    return whole.hexdigest()


def variables(hosts: Mapping[str, Mapping[str, Any]], evaluate: Evaluate) -> str:
    """Return the digest of the variables and facts of each host.

    `evaluate` returns the value of a template of a host, or raises ValueError.
    """
    whole = hashlib.sha256()
    for name, own_variables in sorted(hosts.items()):
        values = {key: value for key, value in own_variables.items() if _is_input(key)}
        facts = own_variables.get("ansible_facts", {})
        document = {
            "variables": values,
            "evaluated": dict(_evaluated(name, values, evaluate)),
            "facts": {fact: facts.get(fact) for fact in _FACTS},
        }
        whole.update(json.dumps({name: document}, sort_keys=True, default=str).encode())
    return whole.hexdigest()


def _is_input(name: str) -> bool:
    """Tell whether a variable is one of the inventory's; registered results begin with two underscores."""
    is_set = name in _CONNECTION or not name.startswith(("ansible_", "__"))
    return is_set and name not in _OF_A_RUN | _PLACES


def _evaluated(host: str, variables: Mapping[str, Any], evaluate: Evaluate) -> Iterator[tuple[str, Any]]:
    for name, value in variables.items():
        text = json.dumps(value, default=str)
        if "{{" in text or "{%" in text:
            try:
                yield name, evaluate(host, value)
            except ValueError:
                # It names what only a role has: its text tells as much, unless it asks for something else.
                yield name, secrets.token_hex() if _LOOKUP.search(text) else text


def _files(folder: Path, names: tuple[str, ...]) -> Iterator[Path]:
    """Give the files below a folder in their order, without caches and what git keeps.

    ValueError for a folder that is larger than text is.
    """
    for name in names:
        top = folder / name
        paths = [top] if top.is_file() else sorted(top.rglob("*")) if top.is_dir() else []
        size = 0
        for path in paths:
            hidden = any(part.startswith((".git", "__pycache__")) for part in path.relative_to(folder).parts)
            if not hidden and path.is_file():
                size += path.stat().st_size
                if size > _MOST_BYTES:
                    raise ValueError(f"{top} has more than {_MOST_BYTES >> 20} MiB")
                yield path
