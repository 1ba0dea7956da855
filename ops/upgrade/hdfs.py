"""HDFS's rolling upgrade: prepared before its NameNode changes, over when it is finalized or taken back.

That it is not finalized is the NameNode's to say. Which release was there before, and in which layouts it
wrote, stands in a drop-in of its unit, which has it started as one whose upgrade goes on.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakehouse.next_command import command
from ops.change import restart
from ops.change.facts import Living
from ops.change.result import Ending, Refusal, Stopped
from ops.change.run import Running
from ops.maybe import Answer, both
from ops.status import reading
from ops.upgrade.detached import detached
from plugins.module_utils.lakehouse.checked_document import checked

_UNIT = "hdfs-namenode"
_DROP_IN = f"/etc/systemd/system/{_UNIT}.service.d/rolling-upgrade.conf"
# As the role has it in the unit: _hdfs_namenode_start.
_WORDS = "HDFS_NAMENODE_START"
BEFORE, _LAYOUTS = "X-Before", "X-Layouts"
# An image takes some seconds per million files.
_PREPARE_SECONDS, _FINALIZE_SECONDS, _SECONDS = 900.0, 300.0, 60.0
# Directories by the kind of what lies in them.
_KINDS = {"namenode": "lakehouse_namenode_dirs", "datanode": "lakehouse_datanode_dirs"}
PAGE = "docs/operations/upgrade.md#rollback"
# Becomes a line of a unit's drop-in, and comes from a file of HDFS's account on every DataNode.
_LAYOUT = re.compile(r"(?:namenode|datanode) -?\d{1,9}")


@dataclass(frozen=True)
class Prepared:
    """An upgrade that is not finalized: since when (seconds since the epoch), from which release.

    `layouts` are those that it wrote, such as `namenode -67`. Both are empty where another than this verb has
    prepared it.
    """

    since: float
    before: str
    layouts: frozenset[str]


def prepared(living: Living) -> Answer[Prepared | None]:
    """Return what is prepared and not finalized; None where nothing is."""
    return both(living.bean("NameNodeInfo"), noted(living), _read)


def noted(living: Living) -> Answer[Mapping[str, str]]:
    """Return what the drop-in says, by its words; nothing where there is none.

    It is written before the NameNode prepares, and goes after it is finalized: it may be there alone.
    """
    host = living.cluster.active("namenode")
    text = living.do(host.name, f"cat {_DROP_IN} 2>/dev/null || true", _SECONDS)
    return text.then(lambda said: dict(line.split("=", 1) for line in said.splitlines() if "=" in line))


def _read(bean: Mapping[str, Any], known: Mapping[str, str]) -> Prepared | None:
    since = reading.upgrade(bean)
    layouts = frozenset(known.get(_LAYOUTS, "").split(", ")) - {""}
    return None if since is None else Prepared(since, known.get(BEFORE, ""), layouts)


def layouts(living: Living) -> frozenset[str]:
    """Return in which layouts the directories of HDFS are; Stopped where a host does not say."""
    lines = []
    for service, directories in _KINDS.items():
        for host in living.having(service):
            paths = " ".join(shlex.quote(f"{path}/current/VERSION") for path in host.variables[directories])
            script = f"sed -n 's/^layoutVersion=/{service} /p' {paths}"
            told = living.do(host.name, script, _SECONDS).then(_layouts)
            if told.value is None:
                why = f"{host.name} does not say in which layout its {service} writes: {told.why}"
                raise Stopped(Ending.REFUSED, why, command("doctor", living.cluster.inventory.path))
            lines += told.value
    return frozenset(lines)


def _layouts(text: str) -> list[str]:
    return [checked(line, _LAYOUT, "VERSION") for line in text.splitlines()]


def unreadable(living: Living) -> Refusal | None:
    """Return why the release before could not read what is there now; None if it can.

    The NameNode is not asked: it may be the one that does not start. Before it was prepared no other release
    has written.
    """
    host = living.cluster.active("namenode")
    script = f"[ ! -e {_DROP_IN} ] || sed -n 's/^{_LAYOUTS}=//p' {_DROP_IN}"
    told = living.do(host.name, script, _SECONDS)
    if told.value is None:
        return Refusal(f"it is unknown what the release before wrote: {told.why}", PAGE)
    before = told.value.strip()
    return otherwise(frozenset(before.split(", ")), layouts(living)) if before else None


def otherwise(before: frozenset[str], now: frozenset[str]) -> Refusal | None:
    """Return that directories have another layout than before; None where they have not."""
    if now == before:
        return None
    was, there = (", ".join(sorted(each)) for each in (before - now, now - before))
    return Refusal(f"the layout of HDFS is {there} and was {was}: the release before cannot read it", PAGE)


def refusal(found: Prepared, now: str, wanted: str, path: str) -> Refusal | None:
    """Return why the releases of a plan cannot come in while an upgrade is not finalized; None if they can.

    `now` is the NameNode's release, `wanted` the one of the plan.
    """
    finalize = command("upgrade hadoop --finalize", path)
    if not found.before:
        why = "an upgrade of HDFS is prepared, by another hand than this verb's"
        return Refusal(why, "hdfs dfsadmin -rollingUpgrade finalize, as hdfs on the NameNode's host")
    if wanted not in {now, found.before} and now != found.before:
        return Refusal(f"the upgrade of HDFS from {found.before} to {now} is not finalized", finalize)
    return None


def prepare(running: Running, before: str) -> str:
    """Have the NameNode keep an image to go back to, unless it has; return what users have noticed.

    HDFS takes no writes meanwhile. Stopped where it does not come to its end: nothing is prepared then.
    """
    living = running.living
    running.wait("hadoop: the NameNode", lambda: prepared(living).why, restart.READY_SECONDS)
    if prepared(living).value:
        return ""
    host = living.cluster.active("namenode")
    known = ", ".join(sorted(layouts(living)))
    if f"${_WORDS}" not in (living.do(host.name, f"systemctl cat {_UNIT}", _SECONDS).value or ""):
        site = f".venv/bin/ansible-playbook -i {living.cluster.inventory.path} playbooks/site.yml --tags hdfs"
        raise Stopped(Ending.FAILED, f"the unit of the NameNode on {host.name} is an older one", site)
    text = (
        f"[Unit]\n{BEFORE}={before}\n{_LAYOUTS}={known}\n"
        f'[Service]\nEnvironment="{_WORDS}=-rollingUpgrade started"\n'
    )
    running.say(f"hadoop: {host.name} makes an image to go back to; HDFS takes no writes meanwhile")
    written = living.do(host.name, _noting(text), _SECONDS)
    began = time.monotonic()
    done = written.known and living.do(host.name, detached(_preparing(living)), _PREPARE_SECONDS)
    pause = time.monotonic() - began
    if not done or not done.known:
        why = done.why if done else written.why
        raise Stopped(Ending.HALFWAY, f"HDFS is not prepared: {why}", "")
    running.wait("hadoop: the image to go back to", lambda: _lacks(living), _PREPARE_SECONDS)
    return f"no writes for {pause:.1f} s while it was prepared"


def finish(running: Running) -> None:
    """Have HDFS keep what it has: there is no way back then. Nothing happens where that is so."""
    living = running.living
    host = living.cluster.active("namenode")
    found = prepared(living)
    if not found.known:
        raise Stopped(Ending.HALFWAY, f"the NameNode does not tell whether it is prepared: {found.why}", "")
    ends = living.as_hdfs("hdfs dfsadmin -rollingUpgrade finalize") if found.value else "true"
    forgotten = (
        f"rm -f {_DROP_IN}; rmdir --ignore-fail-on-non-empty {_DROP_IN.rpartition('/')[0]} 2>/dev/null"
    )
    script = f"set -e; {ends}; {forgotten} || true; systemctl daemon-reload"
    running.begins(host.name, "finalize")
    done = living.do(host.name, script, _FINALIZE_SECONDS)
    if not done.known:
        raise Stopped(Ending.HALFWAY, f"HDFS is not finalized: {done.why}", "")
    running.done(host.name, "finalize")


def _lacks(living: Living) -> str:
    found = prepared(living)
    return "" if found.value else found.why or "the NameNode does not say that it is prepared"


def _noting(text: str) -> str:
    folder, new = _DROP_IN.rpartition("/")[0], f"{_DROP_IN}.new"
    return (
        f"mkdir -p {folder} && printf %s {shlex.quote(text)} > {new} && sync {new} && mv {new} {_DROP_IN}"
        " && systemctl daemon-reload"
    )


def _preparing(living: Living) -> str:
    """Return what prepares HDFS, which a cluster of one NameNode does in safe mode, and leaves that."""
    administers = living.as_hdfs("hdfs dfsadmin")
    return (
        f"trap '{administers} -safemode leave' EXIT\n"
        f"set -e; {administers} -safemode enter; {administers} -rollingUpgrade prepare"
    )
