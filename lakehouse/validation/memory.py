"""Sizes that an inventory has set, against the memory that a machine was found to have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lakehouse.validation.finding import Finding

NODE = "node_memory_mb"
# The kernel keeps a part of what a machine is sold with.
KEPT = 0.1


def sizes(host: str, given: Mapping[str, int], memory_mb: int) -> list[Finding]:
    """Find every size (MiB, by variable) that a process cannot get on this machine."""
    most = dict.fromkeys(given, memory_mb) | {NODE: int(memory_mb / (1 - KEPT))}
    return [
        Finding(
            "node.sizes",
            host,
            f"{name} is {size} on a machine with {memory_mb} MiB",
            "lower it, or leave it out: then it follows from the memory",
            f"at most {most[name]}",
        )
        for name, size in given.items()
        if size > most[name]
    ]


def variables(services: Iterable[Mapping[str, list[str]]]) -> list[str]:
    """Name the variables that size these services (rows of the placement), and the node's own."""
    return [NODE, *sorted({name for service in services for name in service.get("memory", [])})]
