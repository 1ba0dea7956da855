"""Which release of each component a host uses, and what lies in it: read from the hosts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from lakehouse.artifacts import parts
from ops.change.facts import Living
from ops.maybe import Answer
from ops.upgrade.planner import Release
from plugins.module_utils.lakehouse.checked_document import checked

_MARK = "@@"
# A release becomes a variable of a playbook, which Ansible evaluates as a template, and a line of a unit.
_RELEASE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+~_-]{0,99}")


def read(living: Living, bill: Mapping[str, Any]) -> dict[str, Answer[dict[str, Release]]]:
    """Return by host what each component's release is."""
    known = parts.parts(bill)
    answers = living.everywhere(script(str(living.cluster.variable("lakehouse_install_dir")), known))
    return {
        name: answer.then(lambda reply: dict(releases(reply.text, known))) for name, answer in answers.items()
    }


def script(root: str, known: Mapping[str, tuple[parts.Part, ...]]) -> str:
    """Return what prints the release of each component, and the files that tell versions."""
    lines = []
    for component, those in known.items():
        current = shlex.quote(f"{root}/{component.replace('_', '-')}/current")
        folders = " ".join(sorted({shlex.quote(part.folder) for part in those}))
        listed = f'(cd {current} && for folder in {folders}; do ls "$folder" | sed "s|^|$folder/|"; done)'
        lines.append(
            f'if [ -L {current} ]; then echo "{_MARK} {component} $(basename "$(readlink {current})")"; '
            f"{listed if folders else ':'}; fi"
        )
    return "\n".join([*lines, "true"])


def releases(text: str, known: Mapping[str, tuple[parts.Part, ...]]) -> Iterator[tuple[str, Release]]:
    """Give the component and the release of each part of what the script prints.

    Raises ValueError for a name that no release has, KeyError for a component that the bill does not have.
    """
    for block in text.split(f"{_MARK} ")[1:]:
        head, *files = block.splitlines()
        component, name = head.split()
        release = checked(name, _RELEASE, f"the release of {component}")
        yield component, Release(release, parts.installed(known[component], component, release, files))
