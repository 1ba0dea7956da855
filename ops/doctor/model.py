"""What a check is: a name, and a pure function from what was answered to what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import yaml

from lakehouse.inventory import Host
from lakehouse.next_command import command
from lakehouse.validation.finding import Level
from ops.maybe import Answer, unknown
from ops.probing import Reply
from ops.status import judge, questions, reading
from ops.status.model import RUNNING, Placed, Status
from ops.status.placement import Cluster

T = TypeVar("T")
# A daemon that is younger may not have opened its ports, or told its leader.
SETTLED_SECONDS = 60


class Fault(NamedTuple):
    """What a check saw, and what to run; `expected` where it says more than the fact."""

    fact: str
    action: str
    expected: str = ""
    level: Level = Level.FAULT


class Case(NamedTuple):
    """One judgement of a host, by what it said or a service that was `asked`; unknown is not judged."""

    host: str
    faults: Answer[tuple[Fault, ...]]
    asked: Placed | None = None


@dataclass(frozen=True)
class Seen:
    """Everything that was asked and answered."""

    cluster: Cluster
    status: Status
    answers: Mapping[str, Answer[Reply]]

    def host(self, name: str) -> Host:
        """Return a host by its name."""
        return next(host for host in self.cluster.hosts if host.name == name)

    def part(self, host: str, name: str) -> Answer[str]:
        """Return what one command of a host's script printed."""
        reply, parts = self._said[host]
        return reading.part(reply, parts, name)

    @cached_property
    def _said(self) -> Mapping[str, tuple[Answer[Reply], Mapping[str, Answer[str]]]]:
        """What each host said, and the parts of it: every check asks for some."""
        replies = {host.name: self.answers[questions.shell(host)] for host in self.cluster.hosts}
        return {name: (reply, questions.parts(reply)) for name, reply in replies.items()}

    def document(self, name: str) -> Answer[Any]:
        """Return the JSON of an address; unknown where no host runs it."""
        unasked: Answer[Reply] = unknown("it was not asked")
        return self.answers.get(name, unasked).then(lambda reply: json.loads(reply.text))

    def variable(self, host: str, name: str, default: Any = None) -> Any:
        """Return a variable of a host."""
        return self.host(host).variables.get(name, default)

    def placed(self, service: str) -> tuple[Placed, ...]:
        """Return a service on each host where it belongs."""
        return tuple(one for one in self.status.services if one.service == service)

    def active(self, service: str) -> Placed:
        """Return a service on the host that serves clients; LakehouseError where no host runs it."""
        host = self.cluster.active(service).name
        return next(placed for placed in self.placed(service) if placed.host == host)

    def settled(self, service: str) -> tuple[Placed, ...]:
        """Return it where its unit runs, and has for a while."""
        return tuple(one for one in self.placed(service) if runs(one) and self.age(one) >= SETTLED_SECONDS)

    def age(self, placed: Placed) -> float:
        """Return for how many seconds a unit has been active."""
        since = placed.state.value.since if placed.state.value else None
        return self.status.at - since if since else 0.0

    def on(self, host: str, line: str) -> str:
        """Return the command that runs another one on a host."""
        return judge.on(self.status, host, line)

    def lakehouse(self, words: str) -> str:
        """Return the command of one of the kit's verbs for this inventory."""
        return command(words, self.status.inventory)

    def restart(self, placed: Placed) -> str:
        """Return the command that restarts a service on its host."""
        return judge.restart(self.status, placed)

    def journal(self, placed: Placed) -> str:
        """Return the command that shows what a service has said."""
        return judge.journal(self.status, placed)

    @property
    def site(self) -> str:
        """The command that brings every host to what the inventory says."""
        return judge.site(self.status)


def runs(placed: Placed) -> bool:
    """Tell whether a unit is known to run."""
    return placed.state.value is not None and placed.state.value.word == RUNNING


def judged(answer: Answer[T], judge_it: Callable[[T], Iterable[Fault]]) -> Answer[tuple[Fault, ...]]:
    """Return the faults of an answer; unknown stays unknown, and what cannot be read becomes so."""
    return answer.then(lambda value: tuple(judge_it(value)))


def settings(text: str) -> dict[str, Any]:
    """Read a file of Flink's: a key and its value on each line."""
    try:
        return dict(yaml.safe_load(text))
    except yaml.YAMLError as error:
        raise ValueError("no YAML") from error


@dataclass(frozen=True)
class Check:
    """A row: its name (`area.check`), what it means when it is found, and its cases.

    `person` is what a person has to do. Where it is empty, the command of its faults mends them.
    """

    name: str
    about: str
    cases: Callable[[Seen], Iterator[Case]]
    person: str = ""
