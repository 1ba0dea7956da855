"""Local nodes: systemd containers that Ansible reaches by SSH like any other machine.

`up` makes what the inventory asks for true, `down` removes it without a trace, `status` looks. An inventory
that does not set `local_nodes_cluster` describes real machines; these are left alone.
"""

from __future__ import annotations

from lakehouse.local.nodes.lifecycle import NodeStatus, down, status, take_over, up

__all__ = ["NodeStatus", "down", "status", "take_over", "up"]
