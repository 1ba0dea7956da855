"""The verb ``ready``: the questions of the roles' readiness gates, each asked once."""

from __future__ import annotations

from ansible.module_utils.lakehouse.probes import ask
from ansible.module_utils.lakehouse.refused import RefusedError

from service import spec


def main(name: str) -> None:
    """Raise RefusedError with the first wrong answer."""
    for probe in spec.entry("ready", name):
        answer = ask(probe)
        if answer is not None:
            raise RefusedError(answer)
