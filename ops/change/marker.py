"""Writes the mark of a host that is away, on the host itself or where the NameNode is, and takes it off."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping

from lakehouse.next_command import command
from ops.change.facts import Living
from ops.change.result import Refusal
from ops.maybe import Answer, unknown
from ops.status.placement import Cluster
from ops.status.questions import away_file, notes_file
from plugins.module_utils.lakehouse import away

_SECONDS = 30.0


def absent(cluster: Cluster, hosts: Iterable[str], path: str) -> Refusal | None:
    """Return that one of some hosts is in maintenance, and must not be started; None where none is."""
    host = next((name for name in hosts if name in cluster.away), None)
    if host is None:
        return None
    return Refusal(f"{host} is in maintenance", command(f"maintenance {host} --end", path))


def put(living: Living, host: str, text: str) -> Answer[str]:
    """Mark a host with what `away.written` returns: it is on the disk, whole or not at all.

    A maintenance is noted on the NameNode's host as well.
    """
    marked = _write(living, host, away_file(living.host(host)), text)
    if not marked.known:
        return marked
    # One in maintenance may be off, and is to be expected back all the same.
    maintenance = away.read(text)["state"] == away.MAINTENANCE
    return note(living, host, text) if maintenance else _forget(living, host)


def note(living: Living, host: str, text: str) -> Answer[str]:
    """Mark a host that is offline, on the NameNode's."""
    known = _notes(living)
    if known.value is None:
        return unknown(known.why)
    return _keep(living, {**known.value, host: away.read(text)})


def take(living: Living, host: str) -> Answer[str]:
    """Take the mark off a host, and the note of it; nothing happens where there is none.

    The note stays until the host has answered: it is still away.
    """
    taken = living.do(host, f"rm -f {shlex.quote(away_file(living.host(host)))}", _SECONDS)
    return _forget(living, host) if taken.known else taken


def of(living: Living) -> dict[str, away.Mark]:
    """Return the marks of the hosts that are away: of those that answer, and of those that are noted."""
    [path] = {away_file(host) for host in living.cluster.hosts}
    answers = living.everywhere(f"cat {shlex.quote(path)} 2>/dev/null; true")
    found = {name: answer.then(lambda reply: away.read(reply.text)).value for name, answer in answers.items()}
    notes = _notes(living).value or {}
    marks = {name: away.of(own, notes.get(name)) for name, own in found.items()}
    return {name: mark for name, mark in marks.items() if mark}


def _notes(living: Living) -> Answer[dict[str, away.Mark]]:
    namenode, path = _place(living)
    file = shlex.quote(path)
    # What cannot be read is not nothing: it would be written over.
    return living.do(namenode, f"[ ! -e {file} ] || cat {file}", _SECONDS).then(away.notes)


def _forget(living: Living, host: str) -> Answer[str]:
    known = _notes(living)
    if known.value is None:
        return unknown(known.why)
    if host not in known.value:
        return Answer("")
    return _keep(living, {name: mark for name, mark in known.value.items() if name != host})


def _keep(living: Living, notes: Mapping[str, away.Mark]) -> Answer[str]:
    namenode, path = _place(living)
    return _write(living, namenode, path, away.noted(notes))


def _place(living: Living) -> tuple[str, str]:
    host = living.cluster.active("namenode")
    return host.name, notes_file(host)


def _write(living: Living, host: str, path: str, text: str) -> Answer[str]:
    place, new, folder = map(shlex.quote, (path, f"{path}.new", path.rpartition("/")[0]))
    script = f"mkdir -p {folder} && printf %s {shlex.quote(text)} > {new} && sync {new} && mv {new} {place}"
    return living.do(host, script, _SECONDS)
