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

from lakehouse.errors import LakehouseError, system_said
from lakehouse.interruption import raised
from lakehouse.model import inventory, placement, state
from lakehouse.model.placement import Cluster
from lakehouse.next_command import command
from lakehouse.remote import hosts, output
from lakehouse.remote.probing import Session
from lakehouse.rolling import journal, lock, marker
from lakehouse.rolling.facts import Living
from lakehouse.rolling.journal import Journal, Run
from lakehouse.rolling.lock import Holder
from lakehouse.rolling.result import Ending, Refusal, RunResult, Stopped
from lakehouse.shared_options import ChangeOptions
from lakehouse.terminal import LINES, printable
from lakehouse.validation import topology
from plugins.module_utils.lakehouse import away
from plugins.module_utils.lakehouse.counting import counted

_PAUSE_SECONDS = 0.5
# The NameNode counts moved blocks every 30 s; after so long without a change the work has stalled.
_STALLED_SECONDS = 900.0
_LOOK_SECONDS = 1.0
# SIGHUP and SIGTERM end a run as Ctrl-C does: it releases its lock.
_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Work:
    """The work of a verb: its plan for operators and for the journal, and the function that does it.

    `danger` names a loss, which an operator confirms by typing a name: `typed`, or the cluster's. Without
    danger and question the command starts at once. `refusal` is why the work must not be done. `words` are
    the words after the verb on the command line, by default the target. `do` returns facts for the last
    line, and raises Stopped where it cannot continue. `following` is the next command after success. `reread`
    prepares the work again under the lock, in place of the verb's `prepare`.
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
    """A verb's work, its cluster, and the state of each host that is away, by name."""

    living: Living
    marks: Mapping[str, str]
    work: Work


@dataclass(frozen=True)
class Request:
    """The request of a verb: its arguments, the inventory's path, and the run that it resumes, if any.

    With `dry_run` the plan is only printed.
    """

    arguments: Mapping[str, Any]
    path: str
    stopped: Run | None = None
    dry_run: bool = False


@dataclass
class Running:
    """A run in progress: its cluster, journal, finished steps and lock."""

    living: Living
    journal: Journal
    changed: bool = False
    hosts: dict[str, list[str]] = field(default_factory=dict)
    lock: lock.OwnLock | None = None
    # Marks of locks that killed processes of this run left behind.
    orphaned_locks: frozenset[str] = frozenset()

    def say(self, text: str) -> None:
        """Print progress to stderr."""
        output.progress(f"{self.journal.id} {text}")

    def done(self, host: str, step: str, **facts: Any) -> None:
        """Record a finished step in the journal and for the result."""
        self.hosts.setdefault(host, []).append(step)
        self.journal.write(journal.DONE, host=host, what=step, **facts)

    def begins(self, host: str, step: str) -> None:
        """Record the start of a step before the cluster is changed; an error keeps the step from starting.

        So does a lost lock: Stopped where another run has broken it.
        """
        self.holds()
        self.journal.write(journal.BEGINS, host=host, what=step)
        self.changed = True

    def holds(self) -> None:
        """Check that this run still has its lock, as far as hosts answer; Stopped where it was broken."""
        if self.lock:
            answers = self.living.everywhere(lock.look(), among=self.lock.hosts)
            if loss := lock.loss(answers, self.lock):
                raise Stopped(Ending.LOCKED, loss, "")

    def wait(self, where: str, pending: Callable[[], str], seconds: float, quiet: float = 0.0) -> None:
        """Poll until `pending` returns no reason; Stopped on timeout. Log reasons after `quiet` seconds."""
        reported, began = "", time.monotonic()
        while reason := pending():
            elapsed = time.monotonic() - began
            if reason != reported and elapsed >= quiet:
                self.say(f"{where}: waits: {reason}")
                reported = reason
            if elapsed > seconds:
                raise Stopped(Ending.HALFWAY, f"{where}: for {seconds:.0f} s: {reason}", "")
            time.sleep(_PAUSE_SECONDS)

    def follow(self, where: str, remaining: Callable[[], str]) -> None:
        """Poll until `remaining` returns nothing, and log each change; Stopped when it stalls."""
        reported, began = "", time.monotonic()
        while progress := remaining():
            if progress != reported:
                self.say(f"{where}: {progress}")
                reported, began = progress, time.monotonic()
            if time.monotonic() - began > _STALLED_SECONDS:
                raise Stopped(Ending.HALFWAY, f"{where}: for {_STALLED_SECONDS:.0f} s: {progress}", "")
            time.sleep(_LOOK_SECONDS)


def folder(cluster: Cluster) -> Path:
    """Return the folder with a cluster's runs on this machine."""
    name = str(cluster.variable("lakehouse_cluster"))
    return state.folder(cluster.inventory.path, name) / "runs"


# Prepares the work of a verb.
Prepare = Callable[[Living, Request], Work]
# Reads the plan: by the verb's own `prepare`, or another.
Read = Callable[[Prepare | None], "Plan"]


@dataclass(frozen=True)
class Confirmed:
    """The confirmed work, and the command that retries it.

    `current_plan` reads the plan again under the lock; it raises Stopped where that differs.
    """

    work: Work
    retry: str
    current_plan: Callable[[], Plan]


def carry_out(
    options: ChangeOptions,
    verb: str,
    prepare: Prepare,
    arguments: Mapping[str, Any],
    resumed: Run | None = None,
) -> int:
    """Run a verb that changes a cluster, and return its exit code; `resumed` is the run to resume.

    Decommissioned hosts are skipped unless the verb names one. Raises LakehouseError where the inventory or
    the arguments are invalid, before any change.
    """
    loaded = inventory.load(options.inventory)
    if faults := topology.group_sizes(loaded):
        raise LakehouseError(f"{options.inventory}: {faults[0].fact}", faults[0].action)
    cluster = placement.read(loaded)
    with closing(Session({host.name: hosts.connection(host) for host in cluster.hosts})) as session:
        request = Request(arguments, options.inventory, resumed, options.dry_run)

        def read(reread: Prepare | None = None) -> Plan:
            return _read(Living(cluster, session), reread or prepare, request)

        result = _result(options, verb, read(), read, resumed)
    text = json.dumps(result.json()) if options.as_json else result.last_line
    sys.stdout.write(f"{text}\n")
    return int(result.ending)


def _read(all_hosts: Living, prepare: Prepare, request: Request) -> Plan:
    """Return the plan for the current cluster, without decommissioned hosts other than the requested one."""
    marks = {name: str(mark["state"]) for name, mark in marker.of(all_hosts).items()}
    departed = {name for name, state in marks.items() if state == away.LEFT} - {request.arguments.get("node")}
    in_maintenance = frozenset(name for name, state in marks.items() if state == away.MAINTENANCE)
    living = all_hosts.of(replace(placement.without(all_hosts.cluster, departed), away=in_maintenance))
    work = prepare(living, request)
    if request.stopped and not (work.plan or work.refusal):
        # It was killed after its last step: its end is not written, and its lock still exists.
        work = replace(work, do=lambda _: ("there was nothing left to do",), question="", danger="")
    return Plan(living, marks, work)


def _result(options: ChangeOptions, verb: str, plan: Plan, read: Read, resumed: Run | None) -> RunResult:
    path, work = options.inventory, plan.work
    if not options.as_json:
        sys.stdout.write("".join(f"{printable(line, keep=LINES)}\n" for line in work.lines))
        sys.stdout.flush()
    details = {"inventory": str(path), "plan": list(work.plan)}
    name = resumed.id if resumed else ""
    # A resumed run has its words in its journal.
    typed_verb, words = ("resume", replace(work, words=name)) if resumed else (verb, work)

    def end(ending: Ending, fact: str, next_command: str) -> RunResult:
        return RunResult(verb, work.target, ending, (fact,), next_command, name, {}, details)

    if work.refusal:
        return end(Ending.REFUSED, work.refusal.fact, work.refusal.next)
    if not work.plan and not resumed:
        return end(Ending.DONE, "there is nothing to do", command("status", path))
    if options.dry_run:
        return end(Ending.DONE, "nothing was changed (--dry-run)", repeat_command(typed_verb, path, words))
    if not _confirmed(options, plan.living.cluster, work):
        why = f"{work.danger.rstrip('.')}; nothing was changed" if work.danger else "nothing was changed"
        return end(Ending.UNCONFIRMED, why, repeat_command(typed_verb, path, words, confirmed=True))
    return _start(options, verb, plan, read, resumed, details)


def _start(  # noqa: PLR0913, PLR0917 -- the state of a run
    options: ChangeOptions,
    verb: str,
    plan: Plan,
    read: Read,
    resumed: Run | None,
    details: Mapping[str, Any],
) -> RunResult:
    """Start or resume the run, and do the plan if it is unchanged under the lock."""
    runs_folder, work = folder(plan.living.cluster), plan.work
    if resumed:
        run_journal = Journal(runs_folder / f"{resumed.id}.jsonl")
        run_journal.write("resumed", **journal.process())
        typed_verb, work = "resume", replace(work, words=resumed.id)
    else:
        run_journal, typed_verb = (
            journal.begin(runs_folder, verb, work.target, work.arguments, work.plan),
            verb,
        )
    retry = repeat_command(typed_verb, options.inventory, work)

    def current_plan() -> Plan:
        """Return the current plan; Stopped where it differs from the confirmed one."""
        current = read(work.reread)
        if differs := difference(plan, current):
            raise Stopped(Ending.REFUSED, f"{differs.fact}; nothing was changed", differs.next or retry)
        if not resumed and (current.work.plan, current.work.arguments) != (work.plan, work.arguments):
            run_journal.planned(current.work.arguments, current.work.plan)
        return current

    running = Running(plan.living, run_journal, orphaned_locks=resumed.marks if resumed else frozenset())
    return _run(options, verb, running, Confirmed(work, retry, current_plan), details)


# The change of a host, by its new state.
_BECAME = {
    away.MAINTENANCE: "is in maintenance since the plan was shown",
    away.LEFT: "has left the cluster since the plan was shown",
    "": "is back since the plan was shown",
}


def difference(confirmed: Plan, current: Plan) -> Refusal | None:
    """Return how the current plan differs from the confirmed one; None where it does not.

    A restarted process makes no difference. A Refusal without a next command means to retry the same one.
    """
    if current.work.refusal:
        return current.work.refusal
    for name in sorted({*confirmed.marks, *current.marks}):
        if (state := current.marks.get(name, "")) != confirmed.marks.get(name, ""):
            return Refusal(f"{name} {_BECAME[state]}", "")
    if (_shown(before := confirmed.work)) == _shown(after := current.work):
        return None
    new = next((line for line in after.lines if line not in before.lines), None)
    old = next((line for line in before.lines if line not in after.lines), None)
    detail = f"it has {new.strip()!r}" if new else f"it lacks {old.strip()!r}" if old else "its steps differ"
    return Refusal(f"the plan is another one since it was shown: {detail}", "")


def _shown(work: Work) -> tuple[Any, ...]:
    """Return the parts of a work that an operator confirms."""
    return [*work.lines], work.question, work.danger, work.typed, _without_invocations(list(work.plan))


def _without_invocations(value: Any) -> Any:
    """Return a plan without the invocation IDs of the processes that it replaces."""
    if isinstance(value, Mapping):
        return {key: _without_invocations(item) for key, item in value.items() if key != "invocation"}
    return [_without_invocations(item) for item in value] if isinstance(value, list | tuple) else value


def _run(
    options: ChangeOptions,
    verb: str,
    running: Running,
    confirmed: Confirmed,
    details: Mapping[str, Any],
) -> RunResult:
    work = confirmed.work
    began, name = time.monotonic(), running.journal.id
    resume = command(f"resume {name}", options.inventory)
    facts: tuple[str, ...]
    try:
        with raised(KeyboardInterrupt, _ENDS), _locked(options, verb, running, confirmed.retry):
            plan = confirmed.current_plan()
            running.living = plan.living
            facts = plan.work.do(running)
            ending = Ending.DONE
            following = work.following or command("status", options.inventory)
    except Stopped as stopped:
        # A refusal or failure after the first step leaves the run halfway.
        halfway = running.changed and stopped.ending in {Ending.REFUSED, Ending.FAILED, Ending.LOCKED}
        ending, following = (Ending.HALFWAY if halfway else stopped.ending), stopped.next or resume
        facts = (stopped.fact,)
    except KeyboardInterrupt:
        ending, following = Ending.INTERRUPTED, resume
        facts = ("what was begun is finished by resume",)
    except (LakehouseError, OSError) as error:
        fault = LakehouseError(system_said(error)) if isinstance(error, OSError) else error
        ending = Ending.HALFWAY if running.changed else Ending.FAILED
        following, facts = fault.next_command or resume, (fault.message,)
    try:
        running.journal.write("ended", ending=int(ending), facts=list(facts))
    except LakehouseError as error:
        # `runs` lists it as killed, and `resume` finds the finished steps.
        facts = tuple(dict.fromkeys((*facts, error.message)))
    all_facts = (*facts, _duration(time.monotonic() - began))
    return RunResult(verb, work.target, ending, all_facts, following, name, dict(running.hosts), details)


def _confirmed(options: ChangeOptions, cluster: Cluster, work: Work) -> bool:
    """Return whether an operator confirms; a danger needs a typed name, and --yes is not enough."""
    name = work.typed or str(cluster.variable("lakehouse_cluster"))
    if work.danger:
        if options.confirm is not None:
            return bool(options.confirm == name)
        name_to_type = f"{work.typed} once more" if work.typed else "the name of the cluster"
        return _prompt(f"{work.danger}\nType {name_to_type} to go on: ") == name
    if not work.question:
        return True
    # A typed name is a yes, too.
    if options.confirm is not None:
        return bool(options.confirm == name)
    return options.yes or _prompt(f"{work.question} [y/N] ").lower() in {"y", "yes"}


def _prompt(question: str) -> str:
    """Return a line typed by the operator; empty without a terminal."""
    if not sys.stdin.isatty():
        return ""
    sys.stderr.write(printable(question, keep=LINES))
    sys.stderr.flush()
    return sys.stdin.readline().strip()


def typed(target: str, options: Mapping[str, object]) -> str:
    """Return the words after a verb on the command line: its target, and the given options."""
    return shlex.join([target, *given(options)])


def given(options: Mapping[str, object]) -> list[str]:
    """Return the words of the given options: the name of a flag, name and value of another."""
    words = []
    for name, value in options.items():
        if value:
            words += [name] if value is True else [name, str(value)]
    return words


def repeat_command(verb: str, path: str, work: Work, *, confirmed: bool = False) -> str:
    """Return the command line of a work."""
    confirmation = (
        "" if not confirmed else (f" --confirm {work.typed or 'CLUSTER'}" if work.danger else " --yes")
    )
    words = work.words or work.target
    target = f" {words}" if words else ""
    return f"{command(f'{verb}{target}', path)}{confirmation}"


@contextmanager
def _locked(options: ChangeOptions, verb: str, running: Running, retry: str) -> Iterator[None]:
    """Hold the lock of the cluster, and touch it regularly."""
    living, mark = running.living, lock.mark()
    holder = Holder(
        run=running.journal.id, verb=verb, user=getpass.getuser(), machine=socket.gethostname(),
        since=time.time(), mark=mark, **journal.process(),
    )  # fmt: skip
    running.journal.write(journal.LOCKS, mark=mark)
    _break(options, running, lock.locks(living.everywhere(lock.look())))
    try:
        answers = living.everywhere(lock.take(holder))
        own_hosts = [name for name, answer in answers.items() if lock.is_taken(answer)]
        if foreign := lock.locks(answers):
            name, host_lock = next(iter(foreign.items()))
            raise Stopped(
                Ending.LOCKED, f"{host_lock} holds {name}", _waiting(options, running, host_lock, retry)
            )
        if 2 * len(own_hosts) <= len(answers):
            silent = [name for name in answers if name not in own_hosts]
            why = f"{silent[0]}: {lock.refusal(answers[silent[0]])}"
            fact = f"{len(silent)} of {counted(len(answers), 'host')} do not give their lock ({why})"
            raise Stopped(Ending.REFUSED, fact, command("doctor", options.inventory))
        living.repeat(own_hosts, lock.beat(mark), lock.BEAT_SECONDS)
        running.lock = lock.OwnLock(mark, tuple(own_hosts), len(answers))
        yield
    finally:
        # The next run reports a lock that stays; an error here would hide how this run ended.
        with suppress(LakehouseError):
            living.everywhere(lock.release(mark))


def _waiting(options: ChangeOptions, running: Running, host_lock: lock.HostLock, retry: str) -> str:
    """Return the next command while another run holds the lock: list it, resume it, or break its lock."""
    holder, path = host_lock.holder, options.inventory
    if _killed(running, holder):
        return command(f"resume {holder.run}", path)
    if not host_lock.stale:
        return command("runs", path)
    return f"{retry} --break-lock {holder.token}, or resume {holder.run} on {holder.machine}"


def _killed(running: Running, holder: Holder) -> bool:
    """Return whether the holder is a killed run of this machine."""
    runs = journal.runs(running.journal.folder)
    return any(holder.mark in run.marks and run.state == journal.KILLED for run in runs)


def _break(options: ChangeOptions, running: Running, host_locks: Mapping[str, lock.HostLock]) -> None:
    """Break the lock of --break-lock, and those that killed processes of this run left behind.

    Stopped where the named holder has touched its lock recently, on any host.
    """
    for mark in {host_lock.holder.mark for host_lock in host_locks.values()}:
        same_holder = [host_lock for host_lock in host_locks.values() if host_lock.holder.mark == mark]
        last = min(same_holder, key=lambda host_lock: host_lock.silent)
        if mark in running.orphaned_locks:
            running.say(f"breaks the lock of {last.holder}")
            running.living.everywhere(lock.release(mark))
        elif last.holder.token == options.break_lock:
            if not last.stale:
                fact = f"{last.holder} was heard of {max(last.silent, 0):.0f} s ago: its lock is not broken"
                raise Stopped(Ending.LOCKED, fact, _waiting(options, running, last, ""))
            running.say(f"breaks the lock of {last.holder}")
            running.living.everywhere(lock.break_stale(mark))


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest} s"
