"""Asks an engine by a program on a host of it, which runs as the person's account and reads statements."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from ops import output, remote
from ops.sql.query import Asked, Outcome


@dataclass(frozen=True)
class Client:
    """A program: its line for the shell, what it reads, and what it printed means."""

    script: Callable[[Asked], str]
    given: Callable[[Asked], str]
    read: Callable[[Iterable[str]], Outcome]

    def ask(self, asked: Asked) -> Outcome:
        """Run it; the host ends it when the time is over, or when this connection ends."""
        name = asked.host.name
        kept = output.CapturedLines([name])
        scripts = {name: as_account(asked.person, self.script(asked))}
        ended = remote.run(scripts, [asked.host], kept, asked.limit, self.given(asked))[name]
        if not ended.known:
            return Outcome((), ended.why, silent=True)
        if ended.value == remote.TIMED_OUT:
            return Outcome((), f"ended after {asked.limit:g} s (--limit)", late=True)
        outcome = self.read(kept.of(name, wrong=False))
        if ended.value and not outcome.complaint:
            said = [line for line in kept.of(name, wrong=True) if line.strip()]
            return replace(outcome, complaint=said[-1].strip() if said else f"exit code {ended.value}")
        if not outcome.complaint and len(outcome.results) != len(asked.statements):
            return replace(
                outcome, complaint="the client has said something else than one answer to each statement"
            )
        return outcome


def as_account(account: str, command: str) -> str:
    """Return the command as it runs as a Unix account, in a folder that every account may enter."""
    return f"cd / && exec runuser -u {shlex.quote(account)} -- sh -c {shlex.quote(command)}"
