"""Writes the mark of a host that is away, on the host itself, and takes it off."""

from __future__ import annotations

import shlex

from ops.answer import Answer
from ops.change.facts import Living
from ops.status.questions import away_file
from plugins.module_utils.lakehouse import away

_SECONDS = 30.0


def put(living: Living, host: str, text: str) -> Answer[str]:
    """Mark a host with what `away.written` returns: it is on the disk, whole or not at all."""
    path = away_file(living.host(host))
    place, new, folder = map(shlex.quote, (path, f"{path}.new", path.rpartition("/")[0]))
    script = f"mkdir -p {folder} && printf %s {shlex.quote(text)} > {new} && sync {new} && mv {new} {place}"
    return living.do(host, script, _SECONDS)


def take(living: Living, host: str) -> Answer[str]:
    """Take the mark off a host; nothing happens where there is none."""
    return living.do(host, f"rm -f {shlex.quote(away_file(living.host(host)))}", _SECONDS)


def of(living: Living) -> dict[str, away.Mark]:
    """Return the marks of those hosts that answer and have one."""
    [path] = {away_file(host) for host in living.cluster.hosts}
    answers = living.everywhere(f"cat {shlex.quote(path)} 2>/dev/null; true")
    found = {name: answer.then(lambda reply: away.read(reply.text)) for name, answer in answers.items()}
    return {name: answer.value for name, answer in found.items() if answer.value}
