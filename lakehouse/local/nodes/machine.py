"""A node as a container: creation, changes, observation."""

from __future__ import annotations

import io
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import docker
from docker.models.containers import Container

from lakehouse.errors import LakehouseError
from lakehouse.local.nodes import owner
from lakehouse.local.nodes.docker_api import LABEL, NODE_LABEL
from lakehouse.local.nodes.plan import Verb
from lakehouse.local.nodes.spec import LocalCluster, Node

_CGROUPS = Path("/sys/fs/cgroup")
# One line each: the state of systemd, the public host key, then who is let in.
_OBSERVE = """
systemctl is-system-running 2>/dev/null || true
cat /etc/ssh/ssh_host_ed25519_key.pub 2>/dev/null || echo
cat /root/.ssh/authorized_keys 2>/dev/null
"""


@dataclass(frozen=True)
class Observation:
    """What a node says of itself."""

    system: str
    host_key: str
    authorized: frozenset[str]

    @property
    def booted(self) -> bool:
        """Whether the basic system is up; a service that is slow, or fails, is not the node's fault."""
        return self.system in {"starting", "running", "degraded"}


def get(client: docker.DockerClient, spec: LocalCluster, node: Node) -> Container:
    """Return the container of a node that exists."""
    return client.containers.get(_container_name(spec, node))


def create(client: docker.DockerClient, spec: LocalCluster, node: Node, image: str, key: str) -> None:
    """Create and start a node that accepts the public key."""
    endpoint = client.api.create_endpoint_config(ipv4_address=str(node.address), aliases=[node.name])
    created = client.containers.create(
        image,
        command=_init(),
        # systemd's signal for an orderly shutdown; the usual one would make it start again.
        stop_signal="SIGRTMIN+3",
        name=_container_name(spec, node),
        hostname=node.name,
        labels={LABEL: spec.cluster, NODE_LABEL: node.name, **owner.labels(spec.state)},
        network=spec.cluster,
        networking_config={spec.cluster: endpoint},
        extra_hosts={peer.name: str(peer.address) for peer in spec.nodes if peer != node},
        mem_limit=f"{node.memory_mb}m",
        # systemd mounts and makes control groups. A wholly privileged container would ask for more, and fails
        # where the Docker daemon itself lacks a capability.
        cap_add=["SYS_ADMIN", "NET_ADMIN"],
        security_opt=["seccomp=unconfined", "apparmor=unconfined"],
        cgroupns="host",
        volumes=[f"{_CGROUPS}:{_CGROUPS}:rw"],
        tmpfs={"/run": "", "/run/lock": ""},
        # Docker's 64 MB would be less than any machine has.
        shm_size=f"{node.memory_mb // 2}m",
    )
    authorize(created, key)
    created.start()


def change(client: docker.DockerClient, spec: LocalCluster, node: Node, verb: Verb) -> None:
    """Apply a step of the plan to an existing node."""
    container = get(client, spec, node)
    match verb:
        case Verb.REMOVE:
            remove(container)
        case Verb.START:
            container.start()
        case Verb.UNPAUSE:
            container.unpause()
        case Verb.RESIZE:
            # Docker's own proportion, given because the limit with swap may not be below the one without.
            container.update(mem_limit=f"{node.memory_mb}m", memswap_limit=f"{2 * node.memory_mb}m")
        case Verb.CREATE:
            raise AssertionError(f"{node.name} exists")


def remove(container: Container) -> None:
    """Remove a container, running or not, with its volumes."""
    container.remove(force=True, v=True)


def observe(container: Container) -> Observation:
    """Return the progress of a booting node.

    This uses Docker's socket, which is trusted already: no host key is accepted unverified.
    """
    container.reload()
    if container.status != "running":
        raise LakehouseError(f"{container.name} stopped while it booted", f"docker logs {container.name}")
    output = cast(bytes, container.exec_run(["/bin/sh", "-c", _OBSERVE]).output)
    lines = output.decode(errors="replace").split("\n")
    return Observation(system=lines[0], host_key="".join(lines[1:2]), authorized=frozenset(lines[2:]))


def authorize(container: Container, key: str) -> None:
    """Authorise the owner of the public key, and no other user."""
    container.put_archive("/", _authorized_keys(key))


def _container_name(spec: LocalCluster, node: Node) -> str:
    # The cluster's name is part of it, for two clusters may have a node of one name.
    return f"{spec.cluster}-{node.name}"


def _init() -> list[str]:
    unified = (_CGROUPS / "cgroup.controllers").exists()
    # systemd 256 and later refuse the older layout of control groups unless they are told.
    return ["/sbin/init"] if unified else ["/sbin/init", "SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1"]


def _authorized_keys(key: str) -> bytes:
    content = f"{key}\n".encode()
    folder = tarfile.TarInfo("root/.ssh")
    folder.type, folder.mode = tarfile.DIRTYPE, 0o700
    file = tarfile.TarInfo("root/.ssh/authorized_keys")
    file.size, file.mode = len(content), 0o600
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.addfile(folder)
        tar.addfile(file, io.BytesIO(content))
    return archive.getvalue()
