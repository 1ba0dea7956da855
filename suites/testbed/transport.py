"""The way to the machines of a cluster: by SSH, or by the Docker that runs them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lakehouse.local.nodes import docker_api
from suites.testbed.containers import ContainerNodes
from suites.testbed.endpoints import Endpoints
from suites.testbed.nodes import Nodes
from suites.testbed.systemd import Ssh, SystemdNodes


@contextmanager
def reach(endpoints: Endpoints) -> Iterator[Nodes]:
    """Yield the machines; LakehouseError if there is no inventory, or no Docker answers."""
    if endpoints.project:
        with docker_api.connect() as client:
            yield ContainerNodes(client, endpoints.project)
    else:
        yield SystemdNodes(Ssh(endpoints.inventory))
