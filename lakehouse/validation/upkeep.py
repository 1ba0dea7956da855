"""Policies of upkeep: values that no run can use."""

from __future__ import annotations

from lakehouse.model.inventory import Host
from lakehouse.upkeep.policies import LEAST_ORPHAN_DAYS, faults
from lakehouse.validation.finding import Finding


def policies(host: Host) -> list[Finding]:
    """Check each policy of `upkeep_policies`."""
    expected = f"orphan_days of at least {LEAST_ORPHAN_DAYS}, and either sort or zorder"
    return [
        Finding("upkeep.policy", host.name, f"upkeep_policies: {fault}", "correct it", expected)
        for policy in host.variables.get("upkeep_policies") or ()
        if policy is not None
        for fault in faults(policy)
    ]
