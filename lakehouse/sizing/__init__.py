"""Sizes of all services: from a host's memory and cores, and from what is placed on it.

A pure model, in MiB: ``plan(Cluster)`` returns the size of every service on every host. docs/sizing.md
shows what it says of common machines, with the sources of its formulas.
"""

from __future__ import annotations

from lakehouse.sizing.facts import WEIGHTS, Cluster, Host
from lakehouse.sizing.plan import Gap, Plan, plan

__all__ = ["WEIGHTS", "Cluster", "Gap", "Host", "Plan", "plan"]
