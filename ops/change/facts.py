"""Asks a living cluster what a gate judges, and whether a step is done."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from lakehouse import services
from lakehouse.inventory import Host
from ops.change import ready
from ops.change.gate import Facts, Unit
from ops.change.steps import Step
from ops.hosts import as_root
from ops.maybe import Answer, both
from ops.probing import Http, Question, Reply, Session, Shell
from ops.status import questions, reading
from ops.status.placement import Cluster
from plugins.module_utils.lakehouse import away, fsck, hdfs_gate
from plugins.module_utils.lakehouse.datanode_lists import unheard
from plugins.module_utils.lakehouse.hdfs_gate import Blocks
from plugins.module_utils.lakehouse.probes import MOST_BYTES

_PROPERTIES = "Id,ActiveState,MainPID,InvocationID"
_COUNTERS, _AWAY = ("hdfs", "namenode"), "away"
ASK_SECONDS = 20.0
_OK = "@@done"


class Living:
    """A cluster that is asked, and told, over connections that stay open."""

    def __init__(self, cluster: Cluster, session: Session) -> None:
        self.cluster = cluster
        self._session = session

    def of(self, cluster: Cluster) -> Living:
        """Return another view of the same hosts, over the same connections."""
        return Living(cluster, self._session)

    def host(self, name: str) -> Host:
        """Return a host by its name."""
        return next(host for host in self.cluster.hosts if host.name == name)

    def having(self, service: str) -> tuple[Host, ...]:
        """Return the hosts that run a service."""
        return tuple(
            host
            for host in self.cluster.hosts
            if any(row.name == service for row in self.cluster.services[host.name])
        )

    def everywhere(
        self, script: str, seconds: float = ASK_SECONDS, *, among: Collection[str] | None = None
    ) -> dict[str, Answer[Reply]]:
        """Run a script as root on every host, or on those `among` them; return what each one printed."""
        names = [host.name for host in self.cluster.hosts if among is None or host.name in among]
        asked = [Shell(name, name, as_root(script)) for name in names]
        return self._session.ask(asked, seconds)

    def repeat(self, hosts: list[str], script: str, pause: float) -> None:
        """Run a script as root on hosts every `pause` seconds from now on."""
        self._session.repeat([Shell(name, name, as_root(script)) for name in hosts], pause)

    def do(self, host: str, script: str, seconds: float) -> Answer[str]:
        """Run a script as root on a host; unknown, with what it said last, unless it ends with 0."""
        # Not `script && echo`: a shell that tests what a script returns ignores the script's own `set -e`.
        asked = Shell("do", host, as_root(f"( {script}\n) 2>&1; [ $? != 0 ] || echo {_OK}"))
        return self._session.ask([asked], seconds)["do"].then(_finished)

    def as_hdfs(self, command: str) -> str:
        """Return what runs a command on a host as the user of HDFS, who may administer it."""
        return self.as_user("hdfs", command)

    def as_user(self, name: str, command: str) -> str:
        """Return what runs a command on a host as a user of the catalogue."""
        user = shlex.quote(str(self.cluster.variable("lakehouse_users")[name]))
        return f"cd /; runuser -u {user} -- {command}"

    def units(self, service: str, unit: str) -> dict[str, Answer[Unit]]:
        """Return a service on each of its hosts."""
        asked = list(_units(self.having(service), unit))
        return {host.name: shown(answer) for host, answer in self._each(asked)}

    def facts(self, step: Step, *, back: bool) -> Facts:
        """Return what is known before a step, after which its host is `back` in seconds, or is not."""
        hosts = self.having(step.service)
        asked: list[Question] = list(_units(hosts, step.unit))
        place = shlex.quote(questions.away_file(self.host(step.host)))
        asked.append(Shell(_AWAY, step.host, as_root(f"cat {place} 2>/dev/null; true")))
        row = services.load().services[step.service]
        if row.gate:
            known = questions.questions(self.cluster)
            asked += [question for question in known if question.name in _COUNTERS]
        answers = self._session.ask(asked, ASK_SECONDS)
        units = {host.name: shown(answers[f"unit {host.name}"]) for host in hosts}
        mark = answers[_AWAY].then(lambda reply: str(away.read(reply.text).get("state", "")))
        found = Facts(units, away=mark if back else Answer(""))
        if row.gate is None:
            return found
        info = answers["namenode"].then(reading.beans)
        found = replace(found, blocks=both(answers["hdfs"].then(reading.beans), info, self._blocks))
        if row.gate.kind != hdfs_gate.REPLICAS:
            return found
        silent = info.then(unheard).value or frozenset()
        if back and step.host in silent:
            return replace(found, silent=True)
        if not hdfs_gate.has_elsewhere(len(hosts), back=back):
            return found
        return replace(found, last=self._last(step, units, silent, back=back))

    def _blocks(self, counters: Mapping[str, Any], info: Mapping[str, Any]) -> Blocks:
        return hdfs_gate.blocks(counters, info, len(self.having("datanode")), self.replication())

    def _last(
        self, step: Step, units: Mapping[str, Answer[Unit]], unheard_of: Collection[str], *, back: bool
    ) -> Answer[tuple[str, ...]]:
        """Return the file of each block whose replicas are on the step's host alone, or where none serves."""
        leaving = self.host(step.host).address
        silent = frozenset(
            self.host(name).address
            for name, answer in units.items()
            if name != step.host and (answer.value is None or not answer.value.active or name in unheard_of)
        )
        return self.report().then(lambda text: hdfs_gate.last_replicas(text, leaving, silent, back=back))

    def replication(self) -> int:
        """Return how many replicas a new file has unless its writer wants another number."""
        hosts = self.having("datanode")
        return int(hosts[0].variables.get("hdfs_replication", min(3, len(hosts))))

    def report(self) -> Answer[str]:
        """Return the NameNode's report of all files, open ones too, with their replicas."""
        return self.page(self.fsck(), hdfs_gate.REPORT_SECONDS, fsck.MOST_BYTES)

    def page(self, url: str, seconds: float = ASK_SECONDS, most: int = MOST_BYTES) -> Answer[str]:
        """Return what is at an address: at most so many bytes."""
        answer = self._session.ask([Http("page", url, {}, most)], seconds)["page"]
        return answer.then(lambda reply: reply.text)

    def fsck(self, path: str = "/") -> str:
        """Return the address of the NameNode's report of all files, open ones too, with their replicas."""
        asked = hdfs_gate.report_path(str(self.cluster.variable("lakehouse_users")["hdfs"]), path)
        [(_, url)] = self.cluster.urls({"fsck": ("namenode_http", asked)})
        return url

    def bean(self, name: str) -> Answer[dict[str, Any]]:
        """Return a bean of the NameNode."""
        query = f"/jmx?qry=Hadoop:service=NameNode,name={name}"
        asked = [Http(*one, {}) for one in self.cluster.urls({name: ("namenode_http", query)})]
        return self._session.ask(asked, ASK_SECONDS)[name].then(reading.beans)

    def leaders(self, service: str) -> frozenset[str]:
        """Return the hosts of a service that say that they lead; none where its row has no `leads`."""
        hosts = self.having(service)
        asked = [question for host in hosts for question in ready.leads(self.cluster, service, host)]
        answers = self._session.ask(asked, ASK_SECONDS) if asked else {}
        return frozenset(name for name, answer in answers.items() if answer.known)

    def members(self, step: Step) -> Answer[frozenset[str]]:
        """Return the names by which a leader knows the step's process; none where it does not tell."""
        nobody: Answer[frozenset[str]] = Answer(frozenset())
        asked = [Http(name, url, {}) for name, url in ready.members_url(self.cluster, step.service)]
        if not asked:
            return nobody
        answer = self._session.ask(asked, ASK_SECONDS)[ready.MEMBERS]
        return ready.members(step.service, answer, self.host(step.host))

    def serves(self, step: Step, before: Answer[frozenset[str]], *, alone: bool = False) -> str:
        """Return why a step is not done; empty once the new process answers, and its leader knows it.

        Its leader is not asked where it is to answer `alone`.
        """
        host = self.host(step.host)
        questions = ready.questions_of(self.cluster, step.service, host, alone=alone)
        asked = [*_units((host,), step.unit), *questions]
        answers = self._session.ask(asked, ASK_SECONDS)
        first, *others = (answers[question.name] for question in asked)
        unit = shown(first)
        if unit.value is None:
            return unit.why
        if not unit.value.active or unit.value.invocation == step.invocation:
            return "it is not active"
        if wrong := next((answer.why for answer in others if not answer.known), ""):
            return wrong
        return "" if alone else self._joined(step, before)

    def settled(self, step: Step) -> str:
        """Return why a step's service is not yet what it has to be at the end; empty when it is."""
        asked = ready.settled(self.cluster, step.service, self.host(step.host))
        answers = self._session.ask(asked, ASK_SECONDS) if asked else {}
        return next((answer.why for answer in answers.values() if not answer.known), "")

    def _joined(self, step: Step, before: Answer[frozenset[str]]) -> str:
        now = self.members(step)
        if now.value is None:
            return now.why
        if before.value and not now.value - before.value:
            return "its leader still counts the process before it"
        return ""

    def _each(self, asked: list[Shell]) -> Iterator[tuple[Host, Answer[Reply]]]:
        answers = self._session.ask(asked, ASK_SECONDS)
        for question in asked:
            yield self.host(question.host), answers[question.name]


def _units(hosts: tuple[Host, ...], unit: str) -> Iterator[Shell]:
    command = f"systemctl show --property={_PROPERTIES} {shlex.quote(f'{unit}.service')}"
    for host in hosts:
        yield Shell(f"unit {host.name}", host.name, command)


def shown(answer: Answer[Reply]) -> Answer[Unit]:
    """Read what systemd shows of a unit."""

    def read(reply: Reply) -> Unit:
        [known] = reading.units(reply.text)
        return Unit(known["ActiveState"] == "active", int(known["MainPID"] or 0), known["InvocationID"])

    return answer.then(read)


def _finished(reply: Reply) -> str:
    said = reply.text.rstrip()
    if not said.endswith(_OK):
        raise ValueError(said[-300:] or "it did not come to its end")
    return said.removesuffix(_OK).rstrip()
