"""Read from the hosts the release of each component, and the versions in it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from lakehouse.artifacts import parts
from lakehouse.maybe import Answer
from lakehouse.rolling.facts import Living
from lakehouse.upgrade.planner import Release
from plugins.module_utils.lakehouse.checked_document import checked

_MARK = "@@"
# A release is passed to a playbook, where Ansible evaluates templates, and written into a unit.
_RELEASE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+~_-]{0,99}")


def read(living: Living, bill: Mapping[str, Any]) -> dict[str, Answer[dict[str, Release]]]:
    """Return the release of each component, by host."""
    parts_by_component = parts.parts(bill)
    answers = living.everywhere(
        script(str(living.cluster.variable("lakehouse_install_dir")), parts_by_component)
    )
    return {
        name: answer.then(lambda reply: dict(releases(reply.text, parts_by_component)))
        for name, answer in answers.items()
    }


def script(root: str, parts_by_component: Mapping[str, tuple[parts.Part, ...]]) -> str:
    """Return the script that prints the release of each component, and files with versions in their names."""
    lines = []
    for component, component_parts in parts_by_component.items():
        current = shlex.quote(f"{root}/{component.replace('_', '-')}/current")
        folders = " ".join(sorted({shlex.quote(part.folder) for part in component_parts}))
        list_files = f'(cd {current} && for folder in {folders}; do ls "$folder" | sed "s|^|$folder/|"; done)'
        lines.append(
            f'if [ -L {current} ]; then echo "{_MARK} {component} $(basename "$(readlink {current})")"; '
            f"{list_files if folders else ':'}; fi"
        )
    return "\n".join([*lines, "true"])


def releases(
    text: str, parts_by_component: Mapping[str, tuple[parts.Part, ...]]
) -> Iterator[tuple[str, Release]]:
    """Yield each component and its release from the output of the script.

    Raises ValueError for an invalid name of a release, KeyError for a component that is not in the bill.
    """
    for block in text.split(f"{_MARK} ")[1:]:
        head, *files = block.splitlines()
        component, name = head.split()
        release = checked(name, _RELEASE, f"the release of {component}")
        yield (
            component,
            Release(release, parts.installed(parts_by_component[component], component, release, files)),
        )
