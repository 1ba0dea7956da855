"""Ask a host how it differs from its manifest."""

from __future__ import annotations

import shlex
from pathlib import Path

from plugins.module_utils.lakehouse import host_state


def script(config_dir: str) -> str:
    """Return the command that prints a line for each difference, and an end; root alone may run it."""
    program = Path(host_state.__file__).read_text(encoding="utf-8")
    return shlex.join(["python3", "-c", program, f"{config_dir}/{host_state.NAME}"])


def differences(text: str) -> tuple[str, ...]:
    """Return the lines of what a host printed; ValueError where the end is missing."""
    *lines, end = text.strip().splitlines()
    if end != host_state.END:
        raise ValueError("the list has no end")
    return tuple(lines)
