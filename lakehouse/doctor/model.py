"""The model of checks: a check is a name and a pure function from a snapshot to faults."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import yaml

from lakehouse.maybe import Answer, unknown
from lakehouse.model.inventory import Host
from lakehouse.model.placement import Cluster
from lakehouse.next_command import command
from lakehouse.remote.probing import Reply
from lakehouse.status import judge, questions, reading
from lakehouse.status.model import RUNNING, Placed, Status
from lakehouse.validation.finding import Level

T = TypeVar("T")
# A younger daemon may not yet listen, or be registered with its leader.
SETTLED_SECONDS = 60


class Fault(NamedTuple):
    """A fact, the command to run, and the `expected` value where the fact does not imply it."""

    fact: str
    action: str
    expected: str = ""
    level: Level = Level.FAULT


class Case(NamedTuple):
    """The faults of a host, by an answer of the host or of a `service`; an unknown one is not judged."""

    host: str
    faults: Answer[tuple[Fault, ...]]
    service: Placed | None = None


@dataclass(frozen=True)
class Snapshot:
    """All questions and answers of one diagnosis."""

    cluster: Cluster
    status: Status
    answers: Mapping[str, Answer[Reply]]

    def host(self, name: str) -> Host:
        """Return a host by its name."""
        return next(host for host in self.cluster.hosts if host.name == name)

    def part(self, host: str, name: str) -> Answer[str]:
        """Return the output of one command of a host's script."""
        reply, parts = self._replies[host]
        return reading.part(reply, parts, name)

    @cached_property
    def _replies(self) -> Mapping[str, tuple[Answer[Reply], Mapping[str, Answer[str]]]]:
        """The reply of each host, and its parts."""
        replies = {host.name: self.answers[questions.shell(host)] for host in self.cluster.hosts}
        return {name: (reply, questions.parts(reply)) for name, reply in replies.items()}

    def document(self, name: str) -> Answer[Any]:
        """Return the JSON document of a URL; unknown where no host serves it."""
        not_asked: Answer[Reply] = unknown("it was not asked")
        return self.answers.get(name, not_asked).then(lambda reply: json.loads(reply.text))

    def variable(self, host: str, name: str, default: Any = None) -> Any:
        """Return a variable of a host."""
        return self.host(host).variables.get(name, default)

    def placed(self, service: str) -> tuple[Placed, ...]:
        """Return the placements of a service."""
        return tuple(placed for placed in self.status.services if placed.service == service)

    def active(self, service: str) -> Placed:
        """Return a service on its active host; LakehouseError where no host runs it."""
        host = self.cluster.active(service).name
        return next(placed for placed in self.placed(service) if placed.host == host)

    def settled(self, service: str) -> tuple[Placed, ...]:
        """Return the placements of a service whose unit has been active for SETTLED_SECONDS."""
        return tuple(
            placed for placed in self.placed(service) if runs(placed) and self.age(placed) >= SETTLED_SECONDS
        )

    def age(self, placed: Placed) -> float:
        """Return the seconds since a unit became active."""
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
        """Return the command that prints the journal of a service."""
        return judge.journal(self.status, placed)

    @property
    def site(self) -> str:
        """The command that applies the inventory to all hosts."""
        return judge.site(self.status)


def runs(placed: Placed) -> bool:
    """Return whether a unit is known to run."""
    return placed.state.value is not None and placed.state.value.word == RUNNING


def judged(answer: Answer[T], find_faults: Callable[[T], Iterable[Fault]]) -> Answer[tuple[Fault, ...]]:
    """Return the faults of an answer; an unknown or unreadable one is unknown."""
    return answer.then(lambda value: tuple(find_faults(value)))


def settings(text: str) -> dict[str, Any]:
    """Parse a configuration file of Flink."""
    try:
        return dict(yaml.safe_load(text))
    except yaml.YAMLError as error:
        raise ValueError("no YAML") from error


@dataclass(frozen=True)
class Check:
    """A check: its name (`area.check`), what its fault means, and its cases.

    `person` is what an operator has to do. Where it is empty, the command of its faults fixes them.
    """

    name: str
    about: str
    cases: Callable[[Snapshot], Iterator[Case]]
    person: str = ""
