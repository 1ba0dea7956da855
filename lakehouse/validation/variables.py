"""Variables against the roles' argument specs: unknown, missing, undefined and ill-typed ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from lakehouse.model.inventory import Host
from lakehouse.validation.finding import Finding
from plugins.module_utils.lakehouse.nearest import nearest

Option = Mapping[str, Any]


@dataclass(frozen=True)
class Undefined:
    """Stands for a value whose template misses a variable, ``lacking``."""

    lacking: str


# Of these, a process needs some; of other numbers none may be right (trash, reserved bytes, queued queries).
_SIZE = re.compile(
    r"(?<!min_memory)(?<!min_disk)"
    r"_(mb|cores|slots|parallelism|partitions|connections|handlers|threads|block_size|pool_size)$"
)
# Their checks know an upper bound as well.
_CHECKED_ELSEWHERE = frozenset({"hdfs_replication", "lakehouse_memory_overcommit"})

# Stands for a value of which nothing is right.
_WRONG: Any = object()

# Ansible's own variables, and secrets that other variables refer to.
FREE_PREFIXES = ("ansible_", "vault_")


def options(specs: Iterable[Mapping[str, Any]]) -> dict[str, Option]:
    """Collect all options of all entry points of the given ``argument_specs`` mappings, by name."""
    return {
        name: option
        for spec in specs
        for entry_point in spec.get("argument_specs", {}).values()
        for name, option in (entry_point.get("options") or {}).items()
    }


def suggestion(name: str, names: Iterable[str], otherwise: str) -> str:
    """Return ``did you mean x?`` for a name that is similar to one of the names, else the given advice."""
    close = nearest(name, names)
    return f"did you mean {close}?" if close else otherwise


def unknown(host: Host, options: Mapping[str, Option]) -> list[Finding]:
    """Find variables that no role reads: they would be silently ignored."""
    return [
        _unknown(host.name, name, name, options)
        for name in sorted(host.variables.keys() - options.keys())
        if not name.startswith(FREE_PREFIXES)
    ]


def missing(host: Host, options: Mapping[str, Option]) -> list[Finding]:
    """Find required variables that the inventory does not set."""
    return [
        _missing(host.name, name, option)
        for name, option in options.items()
        if option.get("required") and name not in host.variables
    ]


def undefined(host: Host, options: Mapping[str, Option]) -> list[Finding]:
    """Find variables whose template needs a variable that neither the inventory nor a role's defaults set."""
    return [
        Finding(
            "vars.undefined",
            host.name,
            f"{name} needs {value.lacking}, which is not set",
            f"set {value.lacking} in group_vars/all/vault.yml (ansible-vault create)"
            if value.lacking.startswith("vault_")
            else suggestion(value.lacking, [*options, *host.variables], "set it in the inventory"),
        )
        for name, value in host.variables.items()
        if isinstance(value, Undefined)
        and value.lacking not in options
        and not value.lacking.startswith("ansible_")
    ]


def sizes(host: Host, options: Mapping[str, Option]) -> list[Finding]:
    """Find numbers below what any role can work with: negative ones, and sizes of zero."""
    findings = []
    for name, value in host.variables.items():
        if name in _CHECKED_ELSEWHERE or options.get(name, {}).get("type") not in {"int", "float"}:
            continue
        least = 1 if _SIZE.search(name) else 0
        if isinstance(value, int | float) and value < least:
            fact = f"{name} is {value}"
            advice = "correct it in the inventory, or leave it out: it has a default"
            findings.append(Finding("vars.size", host.name, fact, advice, f"at least {least}"))
    return findings


def check_types(host: Host, options: Mapping[str, Option]) -> tuple[Host, list[Finding]]:
    """Validate each variable, down to the members of dicts and lists, by Ansible's own validation.

    Returns the host with the valid values, converted to their types (``"3"`` to 3), and a finding for each
    invalid one. Dicts lack their invalid members; lists have None in their place.
    """
    typed = {}
    findings = []
    for name, value in host.variables.items():
        if name not in options or isinstance(value, Undefined):
            continue
        faults: list[Finding] = []
        checked_value = _checked(host.name, name, options[name], value, faults)
        findings += faults
        if not faults:
            validator = ArgumentSpecValidator({name: dict(options[name])})
            checked_value = validator.validate({name: value}).validated_parameters[name]
        if checked_value is not _WRONG:
            typed[name] = checked_value
    return replace(host, variables=typed), findings


def _checked(host: str, path: str, option: Option, value: object, faults: list[Finding]) -> Any:
    """Return the right parts of a value as their types say, or ``_WRONG``; append to ``faults``."""
    kind = option.get("type", "str")
    inner: Mapping[str, Option] = option.get("options") or {}
    if inner and kind == "dict" and isinstance(value, Mapping):
        return _members(host, path, inner, value, faults)
    if inner and kind == "list" and isinstance(value, list):
        element = {**option, "type": "dict"}
        items = [
            _checked(host, f"{path}[{index}]", element, item, faults) for index, item in enumerate(value)
        ]
        return [None if item is _WRONG else item for item in items]
    flat = {key: detail for key, detail in option.items() if key != "options"}
    result = ArgumentSpecValidator({path: flat}).validate({path: value})
    if result.error_messages:
        fact = f"{path} is {_shown(value, option)}"
        faults.append(Finding("vars.type", host, fact, "correct it in the inventory", _described(option)))
        return _WRONG
    return result.validated_parameters[path]


def _members(
    host: str, path: str, inner: Mapping[str, Option], value: Mapping[str, Any], faults: list[Finding]
) -> Any:
    """Return the right members of a dict; ``_WRONG`` where one that it needs is not there."""
    faults += [_unknown(host, f"{path}.{key}", str(key), inner) for key in value if key not in inner]
    members: dict[str, Any] = {}
    lacks = False
    for key, option in inner.items():
        if key in value:
            member = _checked(host, f"{path}.{key}", option, value[key], faults)
            lacks |= member is _WRONG and bool(option.get("required"))
            members |= {} if member is _WRONG else {key: member}
        elif option.get("required"):
            faults.append(_missing(host, f"{path}.{key}", option))
            lacks = True
    # Another check may rely on a member that is required, but for those of a table of the cluster.
    return _WRONG if lacks and "[" in path else members


def _unknown(host: str, path: str, name: str, names: Iterable[str]) -> Finding:
    advice = suggestion(name, names, "remove it; the roles' README.md list the names")
    return Finding("vars.unknown", host, f"no role knows the variable {path}", advice)


def _missing(host: str, path: str, option: Option) -> Finding:
    return Finding("vars.missing", host, f"{path} is not set", "set it in group_vars/all", _described(option))


def _described(option: Option) -> str:
    if "choices" in option:
        return "one of " + ", ".join(map(str, option["choices"]))
    kind = str(option.get("type", "str"))
    return f"{kind} of {option['elements']}" if "elements" in option else kind


def _shown(value: object, option: Option) -> str:
    """Return what a line may print: never a secret, and of a mapping only that it is one."""
    if option.get("no_log"):
        return "not what a secret can be"
    return "a dict" if isinstance(value, Mapping) else repr(value)
