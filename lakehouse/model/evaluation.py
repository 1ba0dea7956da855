"""Evaluate variables of Ansible so that each is evaluated once.

Ansible evaluates a variable anew wherever a template names it, and so everything that it names in turn: the
files of Spark on one host took 410 evaluations, of which 100 were different ones. Here the variables that a
value names are evaluated first, from the innermost to the outermost, and their results stand in their places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ansible.errors import AnsibleError
from ansible.template import Templar

_NAME = re.compile(r"[A-Za-z_]\w*")
# Every variable of a host or of all hosts: a template that names them means one entry.
_WHOLE = frozenset({"hostvars", "vars"})


def evaluated(value: Any, templar: Templar, variables: Mapping[str, Any]) -> Any:
    """Return the value with its templates evaluated; AnsibleError says why one cannot be."""
    results = dict(variables)
    _settle(value, templar, results, set(_WHOLE))
    return templar.copy_with_new_env(available_variables=results).template(value)


def _settle(value: Any, templar: Templar, results: dict[str, Any], visited: set[str]) -> None:
    """Replace the variables that the templates in ``value`` name by their results."""
    for name in _names(value):
        if name in visited or name not in results:
            continue
        visited.add(name)
        if next(_names(results[name]), None) is None:
            continue
        _settle(results[name], templar, results, visited)
        try:
            results[name] = templar.copy_with_new_env(available_variables=results).template(results[name])
        except AnsibleError:
            # The name may be a key and no variable, or in a branch that is not evaluated: the variable keeps
            # its template, and a template that does evaluate it gets the error.
            continue


def _names(value: Any) -> Iterator[str]:
    """Every word of the templates in a value."""
    if isinstance(value, str):
        if "{{" in value or "{%" in value:
            yield from _NAME.findall(value)
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield from _names(key)
            yield from _names(entry)
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from _names(entry)
