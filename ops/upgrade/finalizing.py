"""`lakehouse upgrade hadoop --finalize`: what HDFS has is kept, and there is no way back then."""

from __future__ import annotations

from collections.abc import Mapping

from lakehouse.errors import LakehouseError
from lakehouse.next_command import command
from ops.change.facts import Living
from ops.change.result import Refusal
from ops.change.run import Request, Running, Work
from ops.maybe import Answer
from ops.upgrade import hdfs
from plugins.module_utils.lakehouse.counting import counted


def prepare(living: Living, request: Request) -> Work:
    """Return the plan: one step, or none where nothing is prepared and nothing of it is left.

    Raises LakehouseError where the NameNode or its host does not tell.
    """
    path = request.path
    found, noted = hdfs.prepared(living), hdfs.noted(living)
    if noted.value is None or not found.known:
        why = found.why or noted.why
        raise LakehouseError(f"the NameNode does not answer: {why}", command("doctor", path))
    host = living.cluster.active("namenode")
    before = noted.value.get(hdfs.BEFORE, "")
    return Work(
        target="hadoop",
        arguments=request.arguments,
        plan=[{"host": host.name, "before": before}] if found.value or noted.value or request.stopped else [],
        lines=[f"upgrade hadoop --finalize: HDFS keeps what it has; no way back to {before or 'before'}"],
        question="Finalize the upgrade of HDFS?",
        do=_finalize,
        following=command("doctor", path),
        refusal=_refusal(living, path) if found.value else None,
        words="hadoop --finalize",
    )


def _finalize(running: Running) -> tuple[str, ...]:
    hdfs.finish(running)
    return ("HDFS is finalized",)


def _refusal(living: Living, path: str) -> Refusal | None:
    """Return why it is too early; None where every host has the same release, and no block is missing."""
    place = f"{living.cluster.variable('lakehouse_install_dir')}/hadoop/current"
    answers = living.everywhere(f"readlink {place} || true")
    told = {name: answer.then(lambda reply: reply.text.strip()) for name, answer in answers.items()}
    missing = living.bean("NameNodeInfo").then(lambda bean: int(bean["NumberOfMissingBlocks"]))
    return early(told, missing, path)


def early(told: Mapping[str, Answer[str]], missing: Answer[int], path: str) -> Refusal | None:
    """Return why it is too early, by the link of each host and the count of blocks without a replica."""
    doctor = command("doctor", path)
    silent = next((name for name, one in told.items() if not one.known), None)
    if silent:
        return Refusal(f"{silent} does not say which release it has: {told[silent].why}", doctor)
    releases = sorted({one.value.rpartition("/")[2] for one in told.values() if one.value})
    if len(releases) > 1:
        return Refusal(f"hosts have {' and '.join(releases)}", command("upgrade hadoop", path))
    if missing.value is None:
        return Refusal(f"the NameNode does not count its blocks: {missing.why}", doctor)
    return (
        Refusal(f"{counted(missing.value, 'block is missing', 'blocks are missing')}", doctor)
        if missing.value
        else None
    )
