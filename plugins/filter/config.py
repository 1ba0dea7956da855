"""Filters that turn data into the values of configuration files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError

# What systemd does not take as it is in a word of a unit file.
SPECIAL = re.compile(r"""[\s%"'\\]""")


def config_value(value: Any) -> str:
    """Print a value as Java configuration files expect it: ``true``/``false``, lists joined with commas."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(config_value(item) for item in value)
    return str(value)


def property_value(value: Any, name: str) -> str:
    """Print a property's value as Java's files want it: backslashes escaped, line breaks refused."""
    text = config_value(value)
    if "\n" in text or "\r" in text:
        # The name alone: the value may be a password.
        raise AnsibleFilterError(f"{name}: the value of a property cannot hold a line break")
    return text.replace("\\", "\\\\")


def _quoted(text: str) -> str:
    """Print one word of a unit file: quoted, without a specifier (systemd.syntax(7), systemd.unit(5))."""
    if "\n" in text or "\r" in text:
        name = text.partition("=")[0]
        raise AnsibleFilterError(f"{name}: a word of a unit file cannot hold a line break")
    return '"' + text.replace("%", "%%").replace("\\", "\\\\").replace('"', '\\"') + '"'


def exec_words(options: list[Any]) -> list[str]:
    """Print options as words of ``ExecStart=``, where a dollar sign begins a variable."""
    words = [str(option).replace("$", "$$") for option in options]
    return [_quoted(word) if SPECIAL.search(word) else word for word in words]


def overridden(defaults: dict[str, Any], *overrides: dict[str, Any] | None) -> dict[str, Any]:
    """Combine dicts, the last word wins; a key that ends as null is removed."""
    merged = dict(defaults)
    for override in overrides:
        merged.update(override or {})
    return {key: value for key, value in merged.items() if value is not None}


def unit_order(paths: str = "", reads: Sequence[str] = ()) -> dict[str, Any]:
    """Return a daemon's [Unit] settings: after the network has its addresses, and never without its disks.

    What it ``reads`` when it starts stands there for people and for `lakehouse doctor`; systemd skips it.
    """
    order: dict[str, Any] = {"Wants": "network-online.target", "After": "network-online.target"}
    return order | ({"RequiresMountsFor": paths} if paths else {}) | ({"X-Reads": reads} if reads else {})


def unit_file(
    service: dict[str, Any], name: str, description: str, reads: Mapping[str, Sequence[str]] | None = None
) -> dict[str, Any]:
    """Wrap a unit's [Service] settings into an entry of a list of files; ``reads`` is from `by_reader`."""
    # Where it may write is where its data lives: a disk that is missing must not become an empty folder.
    writable = service.get("ReadWritePaths") or ""
    words = writable.split() if isinstance(writable, str) else writable
    disks = " ".join(word for word in words if word.startswith("/"))
    return {
        "dest": f"/etc/systemd/system/{name}.service",
        "template": "systemd.unit.j2",
        "vars": {
            "sections": {
                "Unit": {"Description": description} | unit_order(disks, (reads or {}).get(name, ())),
                "Service": service,
                "Install": {"WantedBy": "multi-user.target"},
            }
        },
    }


def unit_files(
    daemons: dict[str, dict[str, Any]],
    common: dict[str, Any],
    reads: Mapping[str, Sequence[str]] | None = None,
) -> list[dict[str, Any]]:
    """Entries for the units of daemons (``description``, ``exec``, ``environment``) alike in the rest."""
    return [
        unit_file(
            {
                **common,
                "Environment": environment(daemon["environment"]),
                "ExecStart": " ".join(daemon["exec"]),
            },
            name,
            daemon["description"],
            reads,
        )
        for name, daemon in daemons.items()
    ]


def timer_files(
    service: dict[str, Any],
    name: str,
    description: str,
    timer: Mapping[str, Any],
    retry: str = "",
) -> list[dict[str, Any]]:
    """Entries for a unit that does its work and ends, and for the timer that starts it (systemd.time(7)).

    ``timer`` are settings of the timer. A run that failed starts again after ``retry``.
    """
    restart = {"Restart": "on-failure", "RestartSec": retry} if retry else {"Restart": "no"}
    work = unit_file(service | {"Type": "oneshot"} | restart, name, description)
    if retry:
        # A limit would count what people start, too, and refuse them.
        work["vars"]["sections"]["Unit"]["StartLimitIntervalSec"] = 0
    del work["vars"]["sections"]["Install"]
    sections = {
        "Unit": {"Description": f"{description}, by the clock"},
        # A machine that was off at that time runs it at its next boot.
        "Timer": {"Persistent": True, "RandomizedDelaySec": "10min", **timer},
        "Install": {"WantedBy": "timers.target"},
    }
    return [work, work | {"dest": f"/etc/systemd/system/{name}.timer", "vars": {"sections": sections}}]


def by_reader(files: list[dict[str, Any]], paths_by_reader: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the files of each reader: ``paths_by_reader``, and those of a role that name it.

    ``files`` are entries for ``lakehouse_config_files``; one names its readers, mostly units, in ``read_by``.
    """
    return {
        reader: [*paths, *(entry["dest"] for entry in files if reader in entry.get("read_by", ()))]
        for reader, paths in paths_by_reader.items()
    }


def environment(variables: dict[str, Any]) -> list[str]:
    """Print variables as systemd's ``Environment=`` wants them: quoted, sorted by name."""
    return [_quoted(f"{name}={config_value(value)}") for name, value in sorted(variables.items())]


class FilterModule:
    """What templates and defaults may use."""

    def filters(self) -> dict[str, Any]:
        """Name to function."""
        return {
            "by_reader": by_reader,
            "config_value": config_value,
            "environment": environment,
            "exec_words": exec_words,
            "property_value": property_value,
            "overridden": overridden,
            "timer_files": timer_files,
            "unit_file": unit_file,
            "unit_files": unit_files,
            "unit_order": unit_order,
        }
