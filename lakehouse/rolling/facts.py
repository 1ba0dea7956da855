"""Read from a running cluster the facts for a gate, and whether a step is done."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lakehouse.maybe import Answer, both
from lakehouse.model import services
from lakehouse.model.inventory import Host
from lakehouse.model.placement import Cluster
from lakehouse.remote.hosts import as_root
from lakehouse.remote.operations import Operation
from lakehouse.remote.probing import Http, Operations, Question, Reply, Session, Shell
from lakehouse.rolling import ready
from lakehouse.rolling.gate import Facts, Unit
from lakehouse.rolling.steps import Step
from lakehouse.status import questions, reading
from plugins.module_utils.lakehouse import away, fsck, hdfs_gate
from plugins.module_utils.lakehouse.datanode_lists import unheard
from plugins.module_utils.lakehouse.hdfs_gate import Blocks
from plugins.module_utils.lakehouse.probes import MOST_BYTES

_PROPERTIES = "Id,ActiveState,MainPID,InvocationID"
_COUNTERS, _AWAY = ("hdfs", "namenode"), "away"
ASK_SECONDS = 20.0
_OK = "@@done"


class Living:
    """A running cluster, over connections that stay open."""

    def __init__(self, cluster: Cluster, session: Session) -> None:
        self.cluster = cluster
        self._session = session

    def of(self, cluster: Cluster) -> Living:
        """Return another selection of the same hosts, over the same connections."""
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
        """Run a script as root on every host, or only on those in `among`; return the output of each."""
        names = [host.name for host in self.cluster.hosts if among is None or host.name in among]
        shells = [Shell(name, name, as_root(script)) for name in names]
        return self._session.ask(shells, seconds)

    def repeat(self, hosts: list[str], script: str, pause: float) -> None:
        """Run a script as root on hosts every `pause` seconds from now on."""
        self._session.repeat([Shell(name, name, as_root(script)) for name in hosts], pause)

    def do(self, host: str, script: str, seconds: float) -> Answer[str]:
        """Run a script as root on a host; unknown, with the end of its output, unless its exit code is 0."""
        # Not `script && echo`: a shell that tests a script's exit code ignores the script's own `set -e`.
        shell = Shell("do", host, as_root(f"( {script}\n) 2>&1; [ $? != 0 ] || echo {_OK}"))
        return self._session.ask([shell], seconds)["do"].then(_finished)

    def bring(
        self, host: str, operations: Sequence[Operation], seconds: float, *, check: bool = False
    ) -> Answer[list[str]]:
        """Bring things of a host into the desired states; return the operations that it differed from.

        With `check` the host stays as it is.
        """
        question = Operations("bring", host, tuple(operations), check)
        answer = self._session.ask([question], seconds)["bring"]
        return answer.then(lambda reply: list(json.loads(reply.text)))

    def as_hdfs(self, command: str) -> str:
        """Return the command that runs another as the superuser of HDFS."""
        return self.as_user("hdfs", command)

    def as_user(self, name: str, command: str) -> str:
        """Return the command that runs another as a user of the catalogue."""
        user = shlex.quote(str(self.cluster.variable("lakehouse_users")[name]))
        return f"cd /; runuser -u {user} -- {command}"

    def units(self, service: str, unit: str) -> dict[str, Answer[Unit]]:
        """Return the unit of a service on each of its hosts."""
        shells = list(_units(self.having(service), unit))
        return {host.name: parse_unit(answer) for host, answer in self._each(shells)}

    def facts(self, step: Step, *, back: bool) -> Facts:
        """Return the facts before a step; `back` where its host serves again seconds later."""
        hosts = self.having(step.service)
        probes: list[Question] = list(_units(hosts, step.unit))
        path = shlex.quote(questions.away_file(self.host(step.host)))
        probes.append(Shell(_AWAY, step.host, as_root(f"cat {path} 2>/dev/null; true")))
        row = services.load().services[step.service]
        if row.gate:
            status_questions = questions.questions(self.cluster)
            probes += [question for question in status_questions if question.name in _COUNTERS]
        answers = self._session.ask(probes, ASK_SECONDS)
        units = {host.name: parse_unit(answers[f"unit {host.name}"]) for host in hosts}
        mark = answers[_AWAY].then(lambda reply: str(away.read(reply.text).get("state", "")))
        facts = Facts(units, away=mark if back else Answer(""))
        if row.gate is None:
            return facts
        namenode = answers["namenode"].then(reading.beans)
        facts = replace(facts, blocks=both(answers["hdfs"].then(reading.beans), namenode, self._blocks))
        if row.gate.kind != hdfs_gate.REPLICAS:
            return facts
        silent = namenode.then(unheard).value or frozenset()
        if back and step.host in silent:
            return replace(facts, silent=True)
        if not hdfs_gate.has_elsewhere(len(hosts), back=back):
            return facts
        return replace(facts, last=self._last(step, units, silent, back=back))

    def _blocks(self, counters: Mapping[str, Any], info: Mapping[str, Any]) -> Blocks:
        return hdfs_gate.blocks(counters, info, len(self.having("datanode")), self.replication())

    def _last(
        self, step: Step, units: Mapping[str, Answer[Unit]], unheard: Collection[str], *, back: bool
    ) -> Answer[tuple[str, ...]]:
        """Return the file of each block without a replica on another host that serves."""
        address = self.host(step.host).address
        silent = frozenset(
            self.host(name).address
            for name, answer in units.items()
            if name != step.host and (answer.value is None or not answer.value.active or name in unheard)
        )
        return self.report().then(lambda text: hdfs_gate.last_replicas(text, address, silent, back=back))

    def replication(self) -> int:
        """Return the default number of replicas of a file."""
        hosts = self.having("datanode")
        return int(hosts[0].variables.get("hdfs_replication", min(3, len(hosts))))

    def report(self) -> Answer[str]:
        """Return the NameNode's fsck report of all files, open ones too, with their replicas."""
        return self.page(self.fsck(), hdfs_gate.REPORT_SECONDS, fsck.MOST_BYTES)

    def page(self, url: str, seconds: float = ASK_SECONDS, most: int = MOST_BYTES) -> Answer[str]:
        """Return the body at a URL, of at most `most` bytes."""
        answer = self._session.ask([Http("page", url, {}, most)], seconds)["page"]
        return answer.then(lambda reply: reply.text)

    def fsck(self, path: str = "/") -> str:
        """Return the URL of the NameNode's fsck report."""
        report_path = hdfs_gate.report_path(str(self.cluster.variable("lakehouse_users")["hdfs"]), path)
        [(_, url)] = self.cluster.urls({"fsck": ("namenode_http", report_path)})
        return url

    def bean(self, name: str) -> Answer[dict[str, Any]]:
        """Return a bean of the NameNode."""
        query = f"/jmx?qry=Hadoop:service=NameNode,name={name}"
        requests = [Http(*row, {}) for row in self.cluster.urls({name: ("namenode_http", query)})]
        return self._session.ask(requests, ASK_SECONDS)[name].then(reading.beans)

    def leaders(self, service: str) -> frozenset[str]:
        """Return the hosts of a service that lead; none where its row has no `leads`."""
        hosts = self.having(service)
        probes = [question for host in hosts for question in ready.leads(self.cluster, service, host)]
        answers = self._session.ask(probes, ASK_SECONDS) if probes else {}
        return frozenset(name for name, answer in answers.items() if answer.known)

    def members(self, step: Step) -> Answer[frozenset[str]]:
        """Return the names under which a leader lists the step's process; none for a service without one."""
        no_members: Answer[frozenset[str]] = Answer(frozenset())
        requests = [Http(name, url, {}) for name, url in ready.members_url(self.cluster, step.service)]
        if not requests:
            return no_members
        answer = self._session.ask(requests, ASK_SECONDS)[ready.MEMBERS]
        return ready.members(step.service, answer, self.host(step.host))

    def serves(self, step: Step, previous: Answer[frozenset[str]], *, alone: bool = False) -> str:
        """Return why a step is not done; empty once the new process answers and its leader lists it.

        With `alone` the leader is not asked.
        """
        host = self.host(step.host)
        readiness = ready.questions_of(self.cluster, step.service, host, alone=alone)
        probes = [*_units((host,), step.unit), *readiness]
        answers = self._session.ask(probes, ASK_SECONDS)
        unit_answer, *ready_answers = (answers[question.name] for question in probes)
        unit = parse_unit(unit_answer)
        if unit.value is None:
            return unit.why
        if not unit.value.active or unit.value.invocation == step.invocation:
            return "it is not active"
        if reason := next((answer.why for answer in ready_answers if not answer.known), ""):
            return reason
        return "" if alone else self._joined(step, previous)

    def settled(self, step: Step) -> str:
        """Return why a step's service has not settled; empty once it has."""
        probes = ready.settled(self.cluster, step.service, self.host(step.host))
        answers = self._session.ask(probes, ASK_SECONDS) if probes else {}
        return next((answer.why for answer in answers.values() if not answer.known), "")

    def _joined(self, step: Step, previous: Answer[frozenset[str]]) -> str:
        members = self.members(step)
        if members.value is None:
            return members.why
        if previous.value and not members.value - previous.value:
            return "its leader still counts the process before it"
        return ""

    def _each(self, shells: list[Shell]) -> Iterator[tuple[Host, Answer[Reply]]]:
        answers = self._session.ask(shells, ASK_SECONDS)
        for shell in shells:
            yield self.host(shell.host), answers[shell.name]


def _units(hosts: tuple[Host, ...], unit: str) -> Iterator[Shell]:
    command = f"systemctl show --property={_PROPERTIES} {shlex.quote(f'{unit}.service')}"
    for host in hosts:
        yield Shell(f"unit {host.name}", host.name, command)


def parse_unit(answer: Answer[Reply]) -> Answer[Unit]:
    """Parse the output of `systemctl show`."""

    def read(reply: Reply) -> Unit:
        [properties] = reading.units(reply.text)
        return Unit(
            properties["ActiveState"] == "active", int(properties["MainPID"] or 0), properties["InvocationID"]
        )

    return answer.then(read)


def _finished(reply: Reply) -> str:
    output = reply.text.rstrip()
    if not output.endswith(_OK):
        raise ValueError(output[-300:] or "it did not come to its end")
    return output.removesuffix(_OK).rstrip()
