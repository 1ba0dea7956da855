"""Write a list of keys into the repository, where the validation of inventories reads it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from lakehouse.run import ROOT

FOLDER = ROOT / "lakehouse" / "validation"
HEADER = "# Written by `python -m {}` from {}; do not edit.\n---\n"
RELEASE = "the classes of the release"


def path(name: str) -> Path:
    """Where the keys of a component stand."""
    return FOLDER / f"{name}_keys.yml"


def write(name: str, program: str, data: Mapping[str, Any], source: str = RELEASE) -> None:
    """Write the keys of a component, which program did so, and from what."""
    text = HEADER.format(program, source) + yaml.dump(data, Dumper=_Dumper, sort_keys=False)
    path(name).write_text(text, encoding="utf-8")


class _Dumper(yaml.SafeDumper):
    """Lists indented as the repository's YAML has them."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, False)
