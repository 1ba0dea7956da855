"""One run of a verb that changes a cluster: plan, question, lock, journal, work, last line."""

from __future__ import annotations

import getpass
import json
import shlex
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lakehouse import inventory, state
from lakehouse.errors import LakehouseError, system_said
from lakehouse.interruption import raised
from lakehouse.next_command import command
from lakehouse.shared_options import ChangeOptions
from lakehouse.terminal import LINES, printable
from lakehouse.validation import topology
from ops import hosts, output
from ops.change import journal, lock, marker
from ops.change.facts import Living
from ops.change.journal import Journal, Run
from ops.change.lock import Holder
from ops.change.result import Ended, Ending, Refusal, Stopped
from ops.probing import Session
from ops.status import placement
from ops.status.placement import Cluster
from plugins.module_utils.lakehouse import away
from plugins.module_utils.lakehouse.counting import counted

_PAUSE_SECONDS = 0.5
# The NameNode looks every 30 s which blocks have moved; a count that is the same for so long moves no more.
_STALLED_SECONDS = 900.0
_LOOK_SECONDS = 1.0
# A terminal that is closed, and SIGTERM, end a run as Ctrl-C does: what it holds is given back.
_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Work:
    """What a verb is about to do: its plan for people and for the journal, and the function that does it.

    `danger` is what is lost by it, for which a name has to be typed: the cluster's, unless `typed` is
    another. Where there is neither a danger nor a question, nothing is asked. `refusal` is why it must not be
    done at all. `words` are what a person types after the verb, where that is not the target. `do` returns
    facts for the last line, and raises Stopped where it can not go on. `following` is the command to run when
    all is done. `reread` returns the work again under the lock, in place of the verb's own `prepare`.
    """

    target: str
    arguments: Mapping[str, Any]
    plan: Sequence[Mapping[str, Any]]
    lines: Sequence[str]
    question: str
    do: Callable[[Running], tuple[str, ...]]
    danger: str = ""
    following: str = ""
    typed: str = ""
    words: str = ""
    refusal: Refusal | None = None
    reread: Prepare | None = None


@dataclass(frozen=True)
class Plan:
    """A verb's work, the cluster that it is about, and the state of each host that is away, by name."""

    living: Living
    marks: Mapping[str, str]
    work: Work


@dataclass(frozen=True)
class Request:
    """What a verb is asked: its arguments, the inventory's path, and the run that it goes on with, if any.

    With `dry_run` its plan is only shown: looking changes nothing either.
    """

    arguments: Mapping[str, Any]
    path: str
    stopped: Run | None = None
    dry_run: bool = False


@dataclass
class Running:
    """A run on its way: where it tells what it does, and how much of that is done."""

    living: Living
    journal: Journal
    changed: bool = False
    hosts: dict[str, list[str]] = field(default_factory=dict)
    lock: lock.Own | None = None
    # Marks of locks that processes of this run have taken which were killed.
    left: frozenset[str] = frozenset()

    def say(self, what: str) -> None:
        """Show progress, on stderr."""
        output.progress(f"{self.journal.id} {what}")

    def done(self, host: str, what: str, **facts: Any) -> None:
        """Note what is done, for the journal and the result."""
        self.hosts.setdefault(host, []).append(what)
        self.journal.write(journal.DONE, host=host, what=what, **facts)

    def begins(self, host: str, what: str) -> None:
        """Note that the cluster is being changed from now on; what cannot be noted is not begun.

        Neither is what another run may be doing: Stopped where the lock is no longer this run's.
        """
        self.holds()
        self.journal.write(journal.BEGINS, host=host, what=what)
        self.changed = True

    def holds(self) -> None:
        """Return while the lock is this run's, as far as hosts answer; Stopped where it was broken."""
        if self.lock:
            answers = self.living.everywhere(lock.look(), among=self.lock.hosts)
            if lost := lock.lost(answers, self.lock):
                raise Stopped(Ending.LOCKED, lost, "")

    def wait(self, where: str, wrong: Callable[[], str], seconds: float, quiet: float = 0.0) -> None:
        """Return once nothing is wrong; Stopped after some time. What lasts longer than `quiet` is said."""
        said, began = "", time.monotonic()
        while found := wrong():
            lasted = time.monotonic() - began
            if found != said and lasted >= quiet:
                self.say(f"{where}: waits: {found}")
                said = found
            if lasted > seconds:
                raise Stopped(Ending.HALFWAY, f"{where}: for {seconds:.0f} s: {found}", "")
            time.sleep(_PAUSE_SECONDS)

    def follow(self, where: str, left: Callable[[], str]) -> None:
        """Return once nothing is left, and say each change; Stopped where there is none for long."""
        said, began = "", time.monotonic()
        while now := left():
            if now != said:
                self.say(f"{where}: {now}")
                said, began = now, time.monotonic()
            if time.monotonic() - began > _STALLED_SECONDS:
                raise Stopped(Ending.HALFWAY, f"{where}: for {_STALLED_SECONDS:.0f} s: {now}", "")
            time.sleep(_LOOK_SECONDS)


def folder(cluster: Cluster) -> Path:
    """Return where the runs of a cluster are, on this machine."""
    name = str(cluster.variable("lakehouse_cluster"))
    return state.folder(cluster.inventory.path, name) / "runs"


# Returns what a verb is about to do.
Prepare = Callable[[Living, Request], Work]
# Reads the plan: by the verb's own `prepare`, or another.
Read = Callable[[Prepare | None], "Plan"]


@dataclass(frozen=True)
class Confirmed:
    """The work that was confirmed, and the command that asks for it again.

    `now` returns the plan as it is under the lock; it raises Stopped where that is another one.
    """

    work: Work
    repeated: str
    now: Callable[[], Plan]


def carry_out(
    options: ChangeOptions,
    verb: str,
    prepare: Prepare,
    arguments: Mapping[str, Any],
    resumed: Run | None = None,
) -> int:
    """Do what a verb prepares, and return its exit code. One that resumes goes on under the run's own name.

    Hosts that have left are none of the cluster's, but for the one that the verb names. Raises LakehouseError
    where the inventory or the arguments are wrong: nothing has been changed then.
    """
    known = inventory.load(options.inventory)
    if wrong := topology.group_sizes(known):
        raise LakehouseError(f"{options.inventory}: {wrong[0].fact}", wrong[0].action)
    cluster = placement.read(known)
    with closing(Session({host.name: hosts.connection(host) for host in cluster.hosts})) as session:
        request = Request(arguments, options.inventory, resumed, options.dry_run)

        def read(how: Prepare | None = None) -> Plan:
            return _read(Living(cluster, session), how or prepare, request)

        ended = _ended(options, verb, read(), read, resumed)
    shown = json.dumps(ended.json()) if options.as_json else ended.last_line
    sys.stdout.write(f"{shown}\n")
    return int(ended.ending)


def _read(everybody: Living, prepare: Prepare, request: Request) -> Plan:
    """Return the plan as the cluster is now. Hosts that have left are none of it, but for the one named."""
    marks = {name: str(found["state"]) for name, found in marker.of(everybody).items()}
    gone = {name for name, state in marks.items() if state == away.LEFT} - {request.arguments.get("node")}
    absent = frozenset(name for name, state in marks.items() if state == away.MAINTENANCE)
    living = everybody.of(replace(placement.without(everybody.cluster, gone), away=absent))
    work = prepare(living, request)
    if request.stopped and not (work.plan or work.refusal):
        # It was killed after its last step: its end is not written, and its lock is still there.
        work = replace(work, do=lambda _: ("there was nothing left to do",), question="", danger="")
    return Plan(living, marks, work)


def _ended(options: ChangeOptions, verb: str, plan: Plan, read: Read, resumed: Run | None) -> Ended:
    path, work = options.inventory, plan.work
    if not options.as_json:
        sys.stdout.write("".join(f"{printable(line, keep=LINES)}\n" for line in work.lines))
        sys.stdout.flush()
    details = {"inventory": str(path), "plan": list(work.plan)}
    name = resumed.id if resumed else ""
    # A run that goes on has its words in its journal.
    what, words = ("resume", replace(work, words=name)) if resumed else (verb, work)

    def end(ending: Ending, fact: str, next_command: str) -> Ended:
        return Ended(verb, work.target, ending, (fact,), next_command, name, {}, details)

    if work.refusal:
        return end(Ending.REFUSED, work.refusal.fact, work.refusal.next)
    if not work.plan and not resumed:
        return end(Ending.DONE, "there is nothing to do", command("status", path))
    if options.dry_run:
        return end(Ending.DONE, "nothing was changed (--dry-run)", again(what, path, words))
    if not _confirmed(options, plan.living.cluster, work):
        why = f"{work.danger.rstrip('.')}; nothing was changed" if work.danger else "nothing was changed"
        return end(Ending.UNCONFIRMED, why, again(what, path, words, confirmed=True))
    return _begun(options, verb, plan, read, resumed, details)


def _begun(  # noqa: PLR0913, PLR0917 -- as of a run
    options: ChangeOptions,
    verb: str,
    plan: Plan,
    read: Read,
    resumed: Run | None,
    details: Mapping[str, Any],
) -> Ended:
    """Begin the run, or go on with it, and do the plan where it is the confirmed one under the lock, too."""
    at, work = folder(plan.living.cluster), plan.work
    if resumed:
        own = Journal(at / f"{resumed.id}.jsonl")
        own.write("resumed", **journal.process())
        what, work = "resume", replace(work, words=resumed.id)
    else:
        own, what = journal.begin(at, verb, work.target, work.arguments, work.plan), verb
    repeated = again(what, options.inventory, work)

    def confirmed() -> Plan:
        """Return the plan as it is now; Stopped where it is not the one that was confirmed."""
        now = read(work.reread)
        if differs := difference(plan, now):
            raise Stopped(Ending.REFUSED, f"{differs.fact}; nothing was changed", differs.next or repeated)
        if not resumed and (now.work.plan, now.work.arguments) != (work.plan, work.arguments):
            own.planned(now.work.arguments, now.work.plan)
        return now

    running = Running(plan.living, own, left=resumed.marks if resumed else frozenset())
    return _run(options, verb, running, Confirmed(work, repeated, confirmed), details)


# What has become of a host, by the state that its mark has now.
_BECAME = {
    away.MAINTENANCE: "is in maintenance since the plan was shown",
    away.LEFT: "has left the cluster since the plan was shown",
    "": "is back since the plan was shown",
}


def difference(confirmed: Plan, now: Plan) -> Refusal | None:
    """Return what is otherwise than in the plan that a person has confirmed; None where nothing is.

    That a process has started again makes no other plan. Of a Refusal without a next command the same
    command, with a look at its plan, is the way on.
    """
    if now.work.refusal:
        return now.work.refusal
    for name in sorted({*confirmed.marks, *now.marks}):
        if (state := now.marks.get(name, "")) != confirmed.marks.get(name, ""):
            return Refusal(f"{name} {_BECAME[state]}", "")
    if (_shown(before := confirmed.work)) == _shown(after := now.work):
        return None
    new = next((line for line in after.lines if line not in before.lines), None)
    old = next((line for line in before.lines if line not in after.lines), None)
    what = f"it has {new.strip()!r}" if new else f"it lacks {old.strip()!r}" if old else "its steps differ"
    return Refusal(f"the plan is another one since it was shown: {what}", "")


def _shown(work: Work) -> tuple[Any, ...]:
    """Return of a work what a person confirms."""
    return [*work.lines], work.question, work.danger, work.typed, _lasting(list(work.plan))


def _lasting(value: Any) -> Any:
    """Return a plan without the names of the processes that it replaces."""
    if isinstance(value, Mapping):
        return {key: _lasting(one) for key, one in value.items() if key != "invocation"}
    return [_lasting(one) for one in value] if isinstance(value, list | tuple) else value


def _run(
    options: ChangeOptions,
    verb: str,
    running: Running,
    confirmed: Confirmed,
    details: Mapping[str, Any],
) -> Ended:
    work = confirmed.work
    began, name = time.monotonic(), running.journal.id
    resume = command(f"resume {name}", options.inventory)
    facts: tuple[str, ...]
    try:
        with raised(KeyboardInterrupt, _ENDS), _locked(options, verb, running, confirmed.repeated):
            plan = confirmed.now()
            running.living = plan.living
            facts = plan.work.do(running)
            ending = Ending.DONE
            following = work.following or command("status", options.inventory)
    except Stopped as stopped:
        # What a gate refuses, or a look fails at, after the first step is a run that stopped on its way.
        begun = running.changed and stopped.ending in {Ending.REFUSED, Ending.FAILED, Ending.LOCKED}
        ending, following = (Ending.HALFWAY if begun else stopped.ending), stopped.next or resume
        facts = (stopped.fact,)
    except KeyboardInterrupt:
        ending, following = Ending.INTERRUPTED, resume
        facts = ("what was begun is finished by resume",)
    except (LakehouseError, OSError) as error:
        known = LakehouseError(system_said(error)) if isinstance(error, OSError) else error
        ending = Ending.HALFWAY if running.changed else Ending.FAILED
        following, facts = known.next_command or resume, (known.message,)
    try:
        running.journal.write("ended", ending=int(ending), facts=list(facts))
    except LakehouseError as error:
        # For `runs` it was killed, and `resume` finds what is done.
        facts = tuple(dict.fromkeys((*facts, error.message)))
    shown = (*facts, _lasted(time.monotonic() - began))
    return Ended(verb, work.target, ending, shown, following, name, dict(running.hosts), details)


def _confirmed(options: ChangeOptions, cluster: Cluster, work: Work) -> bool:
    """Ask; for a loss a name has to be typed, and --yes does not do."""
    name = work.typed or str(cluster.variable("lakehouse_cluster"))
    if work.danger:
        if options.confirm is not None:
            return bool(options.confirm == name)
        what = f"{work.typed} once more" if work.typed else "the name of the cluster"
        return _asked(f"{work.danger}\nType {what} to go on: ") == name
    if not work.question:
        return True
    # A name that is typed is a yes, too.
    if options.confirm is not None:
        return bool(options.confirm == name)
    return options.yes or _asked(f"{work.question} [y/N] ").lower() in {"y", "yes"}


def _asked(question: str) -> str:
    """Return what a person types; nothing where there is no terminal."""
    if not sys.stdin.isatty():
        return ""
    sys.stderr.write(printable(question, keep=LINES))
    sys.stderr.flush()
    return sys.stdin.readline().strip()


def typed(target: str, options: Mapping[str, object]) -> str:
    """Return what a person types after a verb: what it is about, and the options that are given."""
    return shlex.join([target, *given(options)])


def given(options: Mapping[str, object]) -> list[str]:
    """Return the words of the options that are given: of a flag its name, of another its name and value."""
    words = []
    for name, value in options.items():
        if value:
            words += [name] if value is True else [name, str(value)]
    return words


def again(verb: str, path: str, work: Work, *, confirmed: bool = False) -> str:
    """Return the command that does it."""
    how = "" if not confirmed else (f" --confirm {work.typed or 'CLUSTER'}" if work.danger else " --yes")
    words = work.words or work.target
    target = f" {words}" if words else ""
    return f"{command(f'{verb}{target}', path)}{how}"


@contextmanager
def _locked(options: ChangeOptions, verb: str, running: Running, repeated: str) -> Iterator[None]:
    """Hold the lock of the cluster, and say again and again that its holder lives."""
    living, own = running.living, lock.mark()
    holder = Holder(
        run=running.journal.id, verb=verb, user=getpass.getuser(), machine=socket.gethostname(),
        since=time.time(), mark=own, **journal.process(),
    )  # fmt: skip
    running.journal.write(journal.LOCKS, mark=own)
    _break(options, running, lock.held(living.everywhere(lock.look())))
    try:
        answers = living.everywhere(lock.take(holder))
        mine = [name for name, answer in answers.items() if lock.taken(answer)]
        if others := lock.held(answers):
            name, found = next(iter(others.items()))
            raise Stopped(Ending.LOCKED, f"{found} holds {name}", _waiting(options, running, found, repeated))
        if 2 * len(mine) <= len(answers):
            silent = [name for name in answers if name not in mine]
            why = f"{silent[0]}: {lock.refusal(answers[silent[0]])}"
            fact = f"{len(silent)} of {counted(len(answers), 'host')} do not give their lock ({why})"
            raise Stopped(Ending.REFUSED, fact, command("doctor", options.inventory))
        living.repeat(mine, lock.beat(own), lock.BEAT_SECONDS)
        running.lock = lock.Own(own, tuple(mine), len(answers))
        yield
    finally:
        # A lock that stays is named by the next run; how this one ended is what has to be told now.
        with suppress(LakehouseError):
            living.everywhere(lock.release(own))


def _waiting(options: ChangeOptions, running: Running, found: lock.Held, repeated: str) -> str:
    """Return what to run while another holds it: look, resume a dead one, or break the lock of it."""
    holder, path = found.holder, options.inventory
    if _killed(running, holder):
        return command(f"resume {holder.run}", path)
    if not found.stale:
        return command("runs", path)
    return f"{repeated} --break-lock {holder.token}, or resume {holder.run} on {holder.machine}"


def _killed(running: Running, holder: Holder) -> bool:
    """Tell whether a run of this machine holds a lock whose process is gone, as `runs` tells it."""
    known = journal.runs(running.journal.folder)
    return any(holder.mark in one.marks and one.state == journal.KILLED for one in known)


def _break(options: ChangeOptions, running: Running, found: Mapping[str, lock.Held]) -> None:
    """Take the lock away that is named, and those that this run itself left when it was killed.

    Stopped where the holder that is named was heard of lately, on any host.
    """
    for own in {one.holder.mark for one in found.values()}:
        held = [one for one in found.values() if one.holder.mark == own]
        last = min(held, key=lambda one: one.silent)
        if own in running.left:
            running.say(f"breaks the lock of {last.holder}")
            running.living.everywhere(lock.release(own))
        elif last.holder.token == options.break_lock:
            if not last.stale:
                fact = f"{last.holder} was heard of {max(last.silent, 0):.0f} s ago: its lock is not broken"
                raise Stopped(Ending.LOCKED, fact, _waiting(options, running, last, ""))
            running.say(f"breaks the lock of {last.holder}")
            running.living.everywhere(lock.broken(own))


def _lasted(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest} s"
