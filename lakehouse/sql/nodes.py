"""Run statements with an engine's client on one of its hosts, as the user's Unix account."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from lakehouse.remote import openssh, output
from lakehouse.sql.query import Outcome, Query


@dataclass(frozen=True)
class Client:
    """A client: its shell command, its input, and the parser of its output."""

    script: Callable[[Query], str]
    client_input: Callable[[Query], str]
    read: Callable[[Iterable[str]], Outcome]

    def ask(self, query: Query) -> Outcome:
        """Run the client; the host ends it after the timeout, or with the connection."""
        name = query.host.name
        lines = output.CapturedLines([name])
        scripts = {name: as_account(query.user, self.script(query))}
        exit_code = openssh.run(scripts, [query.host], lines, query.limit, self.client_input(query))[name]
        if not exit_code.known:
            return Outcome((), exit_code.why, silent=True)
        if exit_code.value == openssh.TIMED_OUT:
            return Outcome((), f"ended after {query.limit:g} s (--limit)", late=True)
        outcome = self.read(lines.of(name, wrong=False))
        if exit_code.value and not outcome.complaint:
            errors = [line for line in lines.of(name, wrong=True) if line.strip()]
            return replace(
                outcome, complaint=errors[-1].strip() if errors else f"exit code {exit_code.value}"
            )
        if not outcome.complaint and len(outcome.results) != len(query.statements):
            return replace(
                outcome, complaint="the client has said something else than one answer to each statement"
            )
        return outcome


def as_account(account: str, command: str) -> str:
    """Return the command that runs another as a Unix account, in a folder that every account may enter."""
    return f"cd / && exec runuser -u {shlex.quote(account)} -- sh -c {shlex.quote(command)}"
