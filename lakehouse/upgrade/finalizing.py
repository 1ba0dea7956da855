"""`lakehouse upgrade hadoop --finalize`: end an upgrade of HDFS, after which a rollback is impossible."""

from __future__ import annotations

from collections.abc import Mapping

from lakehouse.errors import LakehouseError
from lakehouse.maybe import Answer
from lakehouse.next_command import command
from lakehouse.rolling.facts import Living
from lakehouse.rolling.result import Refusal
from lakehouse.rolling.run import Request, Running, Work
from lakehouse.upgrade import hdfs
from plugins.module_utils.lakehouse.counting import counted


def prepare(living: Living, request: Request) -> Work:
    """Return the plan: one step, or none without a pending upgrade or its notes.

    Raises LakehouseError where the NameNode or its host does not answer.
    """
    path = request.path
    upgrade, notes = hdfs.pending_upgrade(living), hdfs.notes(living)
    if notes.value is None or not upgrade.known:
        why = upgrade.why or notes.why
        raise LakehouseError(f"the NameNode does not answer: {why}", command("doctor", path))
    host = living.cluster.active("namenode")
    old_release = notes.value.get(hdfs.BEFORE, "")
    return Work(
        target="hadoop",
        arguments=request.arguments,
        plan=[{"host": host.name, "before": old_release}]
        if upgrade.value or notes.value or request.stopped
        else [],
        lines=[
            f"upgrade hadoop --finalize: HDFS keeps what it has; no way back to {old_release or 'before'}"
        ],
        question="Finalize the upgrade of HDFS?",
        do=_finalize,
        following=command("doctor", path),
        refusal=_refusal(living, path) if upgrade.value else None,
        words="hadoop --finalize",
    )


def _finalize(running: Running) -> tuple[str, ...]:
    hdfs.finish(running)
    return ("HDFS is finalized",)


def _refusal(living: Living, path: str) -> Refusal | None:
    """Return why it is too early to finalize; None with one release and no missing block."""
    link = f"{living.cluster.variable('lakehouse_install_dir')}/hadoop/current"
    answers = living.everywhere(f"readlink {link} || true")
    links = {name: answer.then(lambda reply: reply.text.strip()) for name, answer in answers.items()}
    missing = living.bean("NameNodeInfo").then(lambda bean: int(bean["NumberOfMissingBlocks"]))
    return early(links, missing, path)


def early(links: Mapping[str, Answer[str]], missing: Answer[int], path: str) -> Refusal | None:
    """Return why it is too early, by the release link of each host and the number of missing blocks."""
    doctor = command("doctor", path)
    silent_host = next((name for name, link in links.items() if not link.known), None)
    if silent_host:
        return Refusal(f"{silent_host} does not say which release it has: {links[silent_host].why}", doctor)
    releases = sorted({link.value.rpartition("/")[2] for link in links.values() if link.value})
    if len(releases) > 1:
        return Refusal(f"hosts have {' and '.join(releases)}", command("upgrade hadoop", path))
    if missing.value is None:
        return Refusal(f"the NameNode does not count its blocks: {missing.why}", doctor)
    return (
        Refusal(f"{counted(missing.value, 'block is missing', 'blocks are missing')}", doctor)
        if missing.value
        else None
    )
