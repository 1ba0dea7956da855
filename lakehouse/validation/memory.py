"""Sizes of the inventory, compared with the memory of a machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lakehouse.validation.finding import Finding

NODE = "node_memory_mb"
# The kernel keeps a part of what a machine is sold with.
KEPT = 0.1


def sizes(host: str, set_sizes: Mapping[str, int], memory_mb: int) -> list[Finding]:
    """Find every size (MiB, by variable) that a process cannot get on this machine."""
    most = dict.fromkeys(set_sizes, memory_mb) | {NODE: int(memory_mb / (1 - KEPT))}
    return [
        Finding(
            "node.sizes",
            host,
            f"{name} is {size} on a machine with {memory_mb} MiB",
            "lower it, or leave it out: then it follows from the memory",
            f"at most {most[name]}",
        )
        for name, size in set_sizes.items()
        if size > most[name]
    ]


def variables(services: Iterable[Mapping[str, list[str]]]) -> list[str]:
    """Name the variables that size these services (rows of the placement), and the node's own."""
    return [NODE, *sorted({name for service in services for name in service.get("memory", [])})]
