"""The key that opens the nodes, and the keys by which the nodes are known."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from lakehouse.errors import LakehouseError
from lakehouse.local.nodes.spec import LocalCluster


def ensure(state: Path, cluster: str) -> str:
    """Return the public key of the cluster, generating the pair at the first call.

    `state` and what is in it are for their owner alone.
    """
    private = state / "id_ed25519"
    public = private.with_suffix(".pub")
    for folder in (state, state / "secrets"):
        folder.mkdir(parents=True, exist_ok=True)
        # Ansible makes it too, when it generates a secret before there are nodes.
        folder.chmod(0o700)
    if not (private.exists() and public.exists()):
        private.unlink(missing_ok=True)
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", cluster, "-f", str(private)]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except FileNotFoundError as error:
            raise LakehouseError("ssh-keygen is not installed", "scripts/bootstrap") from error
        except subprocess.CalledProcessError as error:
            raise LakehouseError(
                f"no SSH key in {state}: {error.stderr.strip() or error.stdout.strip()}"
            ) from error
    return public.read_text().strip()


def remember(spec: LocalCluster, host_keys: Mapping[str, str]) -> None:
    """Write known_hosts from the nodes' own public keys (by node name)."""
    lines = [f"{node.address},{node.name} {host_keys[node.name]}\n" for node in spec.nodes]
    known_hosts = spec.state / "known_hosts"
    content = "".join(lines)
    if known_hosts.exists() and known_hosts.read_text() == content:
        return
    scratch = known_hosts.with_suffix(".new")
    scratch.touch(mode=0o600)
    scratch.write_text(content)
    os.replace(scratch, known_hosts)  # noqa: PTH105
