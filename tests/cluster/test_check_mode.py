"""Asked what it would do, a cluster that is as it should be says: nothing."""

from __future__ import annotations

import pytest

from tests.cluster.playbooks import Ansible

pytestmark = pytest.mark.cluster


def test_a_converged_cluster_has_nothing_to_change(ansible: Ansible) -> None:
    outcome = ansible.playbook("site", "--check")
    assert (outcome.code, outcome.changed) == (0, 0), outcome
