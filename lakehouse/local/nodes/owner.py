"""The owner of nodes: the checkout whose state has the same word as their labels.

The name of a cluster is not enough. Two checkouts have the same inventory, and the second would lock the
first out of its nodes, or remove them.
"""

from __future__ import annotations

import io
import secrets
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from docker.errors import NotFound
from docker.models.containers import Container

from lakehouse.errors import LakehouseError
from lakehouse.local.nodes.spec import LocalCluster
from lakehouse.run import ROOT

LABEL = "lakehouse.owner"
PLACE_LABEL = "lakehouse.checkout"
_AUTHORIZED = "/root/.ssh/authorized_keys"


@dataclass(frozen=True)
class Mark:
    """What a node says of its owner: the word (None before there were any), the checkout, who is let in."""

    word: str | None
    checkout: str
    authorized: frozenset[str] = frozenset()


def known(state: Path) -> str | None:
    """Return the word of this checkout for the cluster, None if it has none yet."""
    path = _path(state)
    return path.read_text(encoding="utf-8").strip() if path.exists() else None


def ensure(state: Path) -> str:
    """Return the word of this checkout for the cluster, a new one at the first call."""
    if word := known(state):
        return word
    word = secrets.token_hex(8)
    _write(state, word)
    return word


def labels(state: Path) -> dict[str, str]:
    """Return what a node of this checkout is labelled with."""
    return {LABEL: ensure(state), PLACE_LABEL: str(ROOT)}


def mark(container: Container) -> Mark:
    """Read the mark of a node, running or not."""
    word = container.labels.get(LABEL)
    return Mark(
        word, container.labels.get(PLACE_LABEL, "unknown"), frozenset() if word else _authorized(container)
    )


def refuse_strangers(spec: LocalCluster, marks: Iterable[Mark], inventory: str) -> None:
    """Raise LakehouseError if one of the nodes belongs to another checkout.

    Nodes that were created without a word belong to the checkout whose key they accept.
    """
    word = known(spec.state)
    public = spec.state / "id_ed25519.pub"
    key = public.read_text(encoding="utf-8").strip() if public.exists() else None
    for node_mark in marks:
        # A user who has lost the whole state can still work in the checkout that created the nodes.
        is_ours = node_mark.word == word if word else node_mark.checkout == str(ROOT)
        if not (is_ours if node_mark.word else key in node_mark.authorized):
            raise LakehouseError(
                f"the nodes of {spec.cluster} belong to another checkout ({node_mark.checkout});"
                " nothing was touched",
                "work there, or give this one another lakehouse_cluster and local_nodes_subnet, or take them"
                f" from it: .venv/bin/lakehouse take-over -i {inventory} {spec.cluster}",
            )


def adopt(spec: LocalCluster, marks: Iterable[Mark]) -> None:
    """Record the word of the nodes as this checkout's. Raises LakehouseError if they have several."""
    words = {node_mark.word for node_mark in marks if node_mark.word}
    if len(words) > 1:
        raise LakehouseError(f"the nodes of {spec.cluster} have several owners", "docker ps -a")
    for word in words:
        _write(spec.state, word)
    ensure(spec.state)


def _write(state: Path, word: str) -> None:
    _path(state).touch(mode=0o600)
    _path(state).write_text(f"{word}\n", encoding="utf-8")


def _path(state: Path) -> Path:
    return state / "owner"


def _authorized(container: Container) -> frozenset[str]:
    try:
        chunks, _ = container.get_archive(_AUTHORIZED)
    except NotFound:
        return frozenset()
    with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
        file = archive.extractfile(archive.getmembers()[0])
        return frozenset(file.read().decode().splitlines()) if file else frozenset()
