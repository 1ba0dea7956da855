"""Metrics of the kit's programs, in files that the exporter of the host serves."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path


def text(gauges: Mapping[str, tuple[str, float]]) -> str:
    """Return gauges (a description and a value by name) in the text format of Prometheus.

    The format: https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format.
    """
    return "".join(
        f"# HELP {name} {description}\n# TYPE {name} gauge\n{name} {value}\n"
        for name, (description, value) in gauges.items()
    )


def export(path: str, gauges: Mapping[str, tuple[str, float]]) -> None:
    """Write gauges to a file, as ``text``.

    No path is no file. A program does not fail because its metrics cannot be written: their age is seen.
    """
    if not path:
        return
    new = Path(f"{path}.new")
    with suppress(OSError):
        new.write_text(text(gauges), encoding="utf-8")
        new.chmod(0o644)
        new.replace(path)
