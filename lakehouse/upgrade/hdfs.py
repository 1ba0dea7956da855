"""Rolling upgrade of HDFS: prepare it before the NameNode changes, finalize it or roll it back.

The NameNode reports whether it is finalized. A drop-in of its unit notes the old release and its layouts, and
starts the NameNode with the option of an upgrade in progress.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakehouse.maybe import Answer, both
from lakehouse.next_command import command
from lakehouse.rolling import restart
from lakehouse.rolling.facts import Living
from lakehouse.rolling.result import Ending, Refusal, Stopped
from lakehouse.rolling.run import Running
from lakehouse.status import reading
from lakehouse.upgrade.detached import detached
from plugins.module_utils.lakehouse.checked_document import checked

_UNIT = "hdfs-namenode"
_DROP_IN = f"/etc/systemd/system/{_UNIT}.service.d/rolling-upgrade.conf"
# The variable in the unit of the role: _hdfs_namenode_start.
_WORDS = "HDFS_NAMENODE_START"
BEFORE, _LAYOUTS = "X-Before", "X-Layouts"
# An image takes some seconds per million files.
_PREPARE_SECONDS, _FINALIZE_SECONDS, _SECONDS = 900.0, 300.0, 60.0
# Variables with the directories of each service.
_KINDS = {"namenode": "lakehouse_namenode_dirs", "datanode": "lakehouse_datanode_dirs"}
PAGE = "docs/operations/upgrade.md#rollback"
# It is read from a file of HDFS's account on each DataNode, and written into the drop-in.
_LAYOUT = re.compile(r"(?:namenode|datanode) -?\d{1,9}")


@dataclass(frozen=True)
class PendingUpgrade:
    """An upgrade that is not finalized: its start (seconds since the epoch), and the release before it.

    `layouts` are those of that release, such as `namenode -67`. Both are empty where an operator has prepared
    it by hand.
    """

    since: float
    before: str
    layouts: frozenset[str]


def pending_upgrade(living: Living) -> Answer[PendingUpgrade | None]:
    """Return the upgrade that is not finalized; None without one."""
    return both(living.bean("NameNodeInfo"), notes(living), _read)


def notes(living: Living) -> Answer[Mapping[str, str]]:
    """Return the keys and values of the drop-in; empty without one.

    It is written before the NameNode prepares, and removed after it is finalized, so it may exist without an
    upgrade.
    """
    host = living.cluster.active("namenode")
    text = living.do(host.name, f"cat {_DROP_IN} 2>/dev/null || true", _SECONDS)
    return text.then(lambda content: dict(line.split("=", 1) for line in content.splitlines() if "=" in line))


def _read(bean: Mapping[str, Any], drop_in: Mapping[str, str]) -> PendingUpgrade | None:
    since = reading.upgrade(bean)
    layouts = frozenset(drop_in.get(_LAYOUTS, "").split(", ")) - {""}
    return None if since is None else PendingUpgrade(since, drop_in.get(BEFORE, ""), layouts)


def layouts(living: Living) -> frozenset[str]:
    """Return the layouts of HDFS's directories; Stopped where a host does not answer."""
    lines = []
    for service, directories in _KINDS.items():
        for host in living.having(service):
            paths = " ".join(shlex.quote(f"{path}/current/VERSION") for path in host.variables[directories])
            script = f"sed -n 's/^layoutVersion=/{service} /p' {paths}"
            answer = living.do(host.name, script, _SECONDS).then(_layouts)
            if answer.value is None:
                why = f"{host.name} does not say in which layout its {service} writes: {answer.why}"
                raise Stopped(Ending.REFUSED, why, command("doctor", living.cluster.inventory.path))
            lines += answer.value
    return frozenset(lines)


def _layouts(text: str) -> list[str]:
    return [checked(line, _LAYOUT, "VERSION") for line in text.splitlines()]


def unreadable(living: Living) -> Refusal | None:
    """Return why the old release cannot read the current layout; None if it can.

    The NameNode is not asked, since it may not start. Without a drop-in no other release has written.
    """
    host = living.cluster.active("namenode")
    script = f"[ ! -e {_DROP_IN} ] || sed -n 's/^{_LAYOUTS}=//p' {_DROP_IN}"
    answer = living.do(host.name, script, _SECONDS)
    if answer.value is None:
        return Refusal(f"it is unknown what the release before wrote: {answer.why}", PAGE)
    old_layouts = answer.value.strip()
    return layout_change(frozenset(old_layouts.split(", ")), layouts(living)) if old_layouts else None


def layout_change(previous: frozenset[str], current: frozenset[str]) -> Refusal | None:
    """Return that the layout of directories has changed; None where it has not."""
    if current == previous:
        return None
    old, new = (", ".join(sorted(names)) for names in (previous - current, current - previous))
    return Refusal(f"the layout of HDFS is {new} and was {old}: the release before cannot read it", PAGE)


def refusal(upgrade: PendingUpgrade, current: str, new: str, path: str) -> Refusal | None:
    """Return why a plan cannot be done while an upgrade is not finalized; None if it can.

    `current` is the NameNode's release, `new` the one of the plan.
    """
    finalize = command("upgrade hadoop --finalize", path)
    if not upgrade.before:
        why = "an upgrade of HDFS is prepared, by another hand than this verb's"
        return Refusal(why, "hdfs dfsadmin -rollingUpgrade finalize, as hdfs on the NameNode's host")
    if new not in {current, upgrade.before} and current != upgrade.before:
        return Refusal(f"the upgrade of HDFS from {upgrade.before} to {current} is not finalized", finalize)
    return None


def prepare(running: Running, old_release: str) -> str:
    """Make the NameNode create a rollback image, unless it has one; return what users notice.

    HDFS takes no writes meanwhile. Stopped where that fails, so that nothing is prepared.
    """
    living = running.living
    running.wait("hadoop: the NameNode", lambda: pending_upgrade(living).why, restart.READY_SECONDS)
    if pending_upgrade(living).value:
        return ""
    host = living.cluster.active("namenode")
    old_layouts = ", ".join(sorted(layouts(living)))
    if f"${_WORDS}" not in (living.do(host.name, f"systemctl cat {_UNIT}", _SECONDS).value or ""):
        site = f".venv/bin/ansible-playbook -i {living.cluster.inventory.path} playbooks/site.yml --tags hdfs"
        raise Stopped(Ending.FAILED, f"the unit of the NameNode on {host.name} is an older one", site)
    text = (
        f"[Unit]\n{BEFORE}={old_release}\n{_LAYOUTS}={old_layouts}\n"
        f'[Service]\nEnvironment="{_WORDS}=-rollingUpgrade started"\n'
    )
    running.say(f"hadoop: {host.name} makes an image to go back to; HDFS takes no writes meanwhile")
    written = living.do(host.name, _note_script(text), _SECONDS)
    began = time.monotonic()
    answer = written.known and living.do(host.name, detached(_prepare_script(living)), _PREPARE_SECONDS)
    pause = time.monotonic() - began
    if not answer or not answer.known:
        why = answer.why if answer else written.why
        raise Stopped(Ending.HALFWAY, f"HDFS is not prepared: {why}", "")
    running.wait("hadoop: the image to go back to", lambda: _unprepared(living), _PREPARE_SECONDS)
    return f"no writes for {pause:.1f} s while it was prepared"


def finish(running: Running) -> None:
    """Finalize the upgrade of HDFS, if any, after which a rollback is impossible."""
    living = running.living
    host = living.cluster.active("namenode")
    upgrade = pending_upgrade(living)
    if not upgrade.known:
        raise Stopped(Ending.HALFWAY, f"the NameNode does not tell whether it is prepared: {upgrade.why}", "")
    finalize = living.as_hdfs("hdfs dfsadmin -rollingUpgrade finalize") if upgrade.value else "true"
    remove_drop_in = (
        f"rm -f {_DROP_IN}; rmdir --ignore-fail-on-non-empty {_DROP_IN.rpartition('/')[0]} 2>/dev/null"
    )
    script = f"set -e; {finalize}; {remove_drop_in} || true; systemctl daemon-reload"
    running.begins(host.name, "finalize")
    answer = living.do(host.name, script, _FINALIZE_SECONDS)
    if not answer.known:
        raise Stopped(Ending.HALFWAY, f"HDFS is not finalized: {answer.why}", "")
    running.done(host.name, "finalize")


def _unprepared(living: Living) -> str:
    upgrade = pending_upgrade(living)
    return "" if upgrade.value else upgrade.why or "the NameNode does not say that it is prepared"


def _note_script(text: str) -> str:
    folder, temporary = _DROP_IN.rpartition("/")[0], f"{_DROP_IN}.new"
    return (
        f"mkdir -p {folder} && printf %s {shlex.quote(text)} > {temporary} && sync {temporary}"
        f" && mv {temporary} {_DROP_IN} && systemctl daemon-reload"
    )


def _prepare_script(living: Living) -> str:
    """Return the script that prepares HDFS in safe mode, as a single NameNode requires, and leaves it."""
    dfsadmin = living.as_hdfs("hdfs dfsadmin")
    return (
        f"trap '{dfsadmin} -safemode leave' EXIT\n"
        f"set -e; {dfsadmin} -safemode enter; {dfsadmin} -rollingUpgrade prepare"
    )
