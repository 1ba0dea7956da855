"""Write and remove the mark of a host that is away, on the host itself and on the NameNode's host."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping

from lakehouse.maybe import Answer, unknown
from lakehouse.model.placement import Cluster
from lakehouse.next_command import command
from lakehouse.rolling.facts import Living
from lakehouse.rolling.result import Refusal
from lakehouse.status.questions import away_file, notes_file
from plugins.module_utils.lakehouse import away

_SECONDS = 30.0


def absent(cluster: Cluster, hosts: Iterable[str], path: str) -> Refusal | None:
    """Return that one of the hosts is in maintenance, and must not be started; None where none is."""
    host = next((name for name in hosts if name in cluster.away), None)
    if host is None:
        return None
    return Refusal(f"{host} is in maintenance", command(f"maintenance {host} --end", path))


def put(living: Living, host: str, text: str) -> Answer[str]:
    """Write the mark of a host atomically; note a maintenance on the NameNode's host, too."""
    answer = _write(living, host, away_file(living.host(host)), text)
    if not answer.known:
        return answer
    # A host in maintenance may be off, and is still expected to return.
    maintenance = away.read(text)["state"] == away.MAINTENANCE
    return note(living, host, text) if maintenance else _forget(living, host)


def note(living: Living, host: str, text: str) -> Answer[str]:
    """Note the mark of an offline host on the NameNode's host."""
    notes = _notes(living)
    if notes.value is None:
        return unknown(notes.why)
    return _keep(living, {**notes.value, host: away.read(text)})


def take(living: Living, host: str) -> Answer[str]:
    """Remove the mark of a host and its note, if any.

    The note stays while the host does not answer, since it is still away.
    """
    answer = living.do(host, f"rm -f {shlex.quote(away_file(living.host(host)))}", _SECONDS)
    return _forget(living, host) if answer.known else answer


def of(living: Living) -> dict[str, away.Mark]:
    """Return the marks of the hosts that are away: from hosts that answer, and from the notes."""
    [path] = {away_file(host) for host in living.cluster.hosts}
    answers = living.everywhere(f"cat {shlex.quote(path)} 2>/dev/null; true")
    host_marks = {
        name: answer.then(lambda reply: away.read(reply.text)).value for name, answer in answers.items()
    }
    notes = _notes(living).value or {}
    marks = {name: away.of(mark, notes.get(name)) for name, mark in host_marks.items()}
    return {name: mark for name, mark in marks.items() if mark}


def _notes(living: Living) -> Answer[dict[str, away.Mark]]:
    namenode, path = _place(living)
    file = shlex.quote(path)
    # An unreadable file is no empty one: the next note would overwrite it.
    return living.do(namenode, f"[ ! -e {file} ] || cat {file}", _SECONDS).then(away.notes)


def _forget(living: Living, host: str) -> Answer[str]:
    notes = _notes(living)
    if notes.value is None:
        return unknown(notes.why)
    if host not in notes.value:
        return Answer("")
    return _keep(living, {name: mark for name, mark in notes.value.items() if name != host})


def _keep(living: Living, notes: Mapping[str, away.Mark]) -> Answer[str]:
    namenode, path = _place(living)
    return _write(living, namenode, path, away.noted(notes))


def _place(living: Living) -> tuple[str, str]:
    host = living.cluster.active("namenode")
    return host.name, notes_file(host)


def _write(living: Living, host: str, path: str, text: str) -> Answer[str]:
    destination, temporary, folder = map(shlex.quote, (path, f"{path}.new", path.rpartition("/")[0]))
    script = (
        f"mkdir -p {folder} && printf %s {shlex.quote(text)} > {temporary}"
        f" && sync {temporary} && mv {temporary} {destination}"
    )
    return living.do(host, script, _SECONDS)
