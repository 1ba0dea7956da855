"""`lakehouse upgrade postgresql`: another minor version of Debian's packages, with the way back beside it.

The data files are the same. Both versions lie on the host before anything is changed: apt forgets the one
before as soon as its archive has a newer one.
"""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, NoReturn

from lakehouse import airgap
from lakehouse.errors import LakehouseError
from lakehouse.inventory import Host
from lakehouse.next_command import command
from ops.change import journal, marker, restart, run, steps
from ops.change.facts import Living
from ops.change.result import Ending, Refusal, Stopped, cause
from ops.change.run import Request, Running, Work
from ops.change.steps import Step
from ops.doctor import backups
from ops.maybe import Answer
from ops.status import questions, reading
from ops.status.model import LastGood
from ops.upgrade import proof
from ops.upgrade.detached import detached
from plugins.module_utils.lakehouse.checked_document import checked

COMPONENT = "postgresql"
# Its data is the metastore's, which engines ask.
_PROVEN = "hive"
_ASK_SECONDS, _FETCH_SECONDS, _INSTALL_SECONDS = 180.0, 900.0, 900.0
# Of the above: a mirror may drop packets, and what is known without it counts.
_UPDATE_SECONDS = 60
_HOUR = 3600
_PAGE = "docs/operations/upgrade.md#postgresql"
_UP = "@@up"
# What a host and its mirrors say of packages becomes words of a shell, and names of folders (deb-version(7)).
_NAME, _VERSION = re.compile(r"[a-z0-9][a-z0-9.+-]{0,99}"), re.compile(r"\d[A-Za-z0-9.+~:-]{0,99}")
_PROBE_SECONDS, _START_SECONDS = 0.1, 120


@dataclass(frozen=True)
class Packages:
    """The packages of a server: their names and version, apt's candidate, and all versions to be had."""

    names: tuple[str, ...]
    installed: str
    candidate: str
    known: tuple[str, ...]


@dataclass(frozen=True)
class Change:
    """On a host, packages from one version to another, and the unit that runs from them."""

    host: str
    names: tuple[str, ...]
    old: str
    new: str
    unit: Step


def read(row: Mapping[str, Any]) -> Change:
    """Return the change that a journal holds."""
    return Change(**{**row, "names": tuple(row["names"]), "unit": steps.read(row["unit"])})


def prepare(living: Living, request: Request) -> Work:
    """Return the plan: none where the version is there. LakehouseError where the host does not say."""
    arguments, path = request.arguments, request.path
    refusal: Refusal | None = None
    if request.stopped:
        change = read(request.stopped.plan[0])
    else:
        if os.environ.get(airgap.VARIABLE):
            what = f"PostgreSQL's packages come from the host's own mirrors, and {airgap.VARIABLE} is set"
            raise LakehouseError(what, f"unset {airgap.VARIABLE}, then the same; without mirrors: {_PAGE}")
        [step] = restart.with_invocations(living, steps.plan(living.cluster, COMPONENT))
        found = _packages(living, step, path, update=not request.dry_run)
        new, refusal = chosen(found, arguments["to"])
        change = Change(step.host, found.names, found.installed, new, step)
        if not arguments["force"]:
            refusal = refusal or unsaved(_backup(living), time.time(), path)
    refusal = marker.absent(living.cluster, [change.host], path) or refusal
    there = change.old == change.new
    return Work(
        target=COMPONENT,
        arguments=arguments,
        plan=[] if there else [asdict(change)],
        lines=[
            f"upgrade postgresql: {change.old} -> {change.new} on {change.host}; {change.unit.noticed}",
            f"  {', '.join(change.names)}; those of before are kept in {_place(living, change.host)}",
            *([f"refused: {refusal.fact}"] if refusal else []),
        ],
        question=f"Install PostgreSQL {change.new}, and restart it?",
        do=partial(_do, change, request),
        following=command("doctor", path),
        refusal=None if there and arguments["to"] is None else refusal,
        words=_words(arguments),
    )


def _words(arguments: Mapping[str, Any]) -> str:
    """Return what a person typed after the verb."""
    return run.typed(COMPONENT, {"--to": arguments["to"], "--force": arguments["force"]})


def chosen(found: Packages, to: str | None) -> tuple[str, Refusal | None]:
    """Return the version that is meant, apt's candidate where none is named, and why it cannot be."""
    if to is None:
        return found.candidate, None
    major = found.installed.partition(".")[0]
    if to.partition(".")[0] != major:
        what = f"postgresql {major} -> {to}: another major version has other data files, and wants pg_upgrade"
        return found.installed, Refusal(what, f"a version {major}.x")
    there = next((one for one in found.known if one == to or one.startswith(f"{to}-")), None)
    if there is None:
        what = f"no source has PostgreSQL {to} for this host"
        return found.installed, Refusal(what, f"one of: {', '.join(found.known)}")
    return there, None


def unsaved(kept: Answer[LastGood | None], now: float, path: str) -> Refusal | None:
    """Return that no good backup was made lately; None where one was, or the inventory wants none."""
    make = f"{command('backup', path)}, or --force"
    if not kept.known:
        return Refusal(f"the last backup is not known: {kept.why}", make)
    if kept.value is None:
        return None
    if kept.value.good is None:
        return Refusal("there is no good backup", make)
    hours = (now - kept.value.good) / _HOUR
    return Refusal(f"the last good backup is {hours:.0f} h old", make) if hours > backups.HOURS else None


def _backup(living: Living) -> Answer[LastGood | None]:
    keeper = next((host for host in living.cluster.hosts if questions.backups(host)), None)
    if keeper is None:
        return Answer(None)
    return living.do(keeper.name, str(questions.backups(keeper)), _ASK_SECONDS).then(reading.parse_backup)


def _place(living: Living, host: str) -> str:
    """Return where packages are kept."""
    return f"{living.host(host).variables['lakehouse_data_dir']}/packages/postgresql"


def _packages(living: Living, step: Step, path: str, *, update: bool) -> Packages:
    """Return what a host knows of its packages, after a look at its mirrors if they may be asked."""
    major = step.unit.partition("@")[2].partition("-")[0]
    server = f"postgresql-{major}"
    # Without a new list what apt knew last, and what is kept, still counts.
    lists = f"timeout -k 5 {_UPDATE_SECONDS} apt-get update -qq -o Acquire::Retries=0" if update else "true"
    script = f"""{lists} >/dev/null 2>&1
dpkg-query --show --showformat='${{source:Package}} ${{db:Status-Status}} ${{Package}} ${{Version}}\n' \
  | sed -n 's/^{server} installed /package /p'
LC_ALL=C apt-cache policy {server} | sed -n 's/^  Candidate: /candidate /p'
apt-cache madison {server} | awk -F' *[|] *' '{{ print "known " $2 }}'
ls {shlex.quote(_place(living, step.host))} 2>/dev/null | sed -n '/[.]part$/!s/^/known /p'"""
    told = living.do(step.host, script, _ASK_SECONDS).then(partial(told_packages, server))
    if told.value is None:
        why = f"{step.host} does not say which packages it has: {told.why}"
        raise LakehouseError(why, command("doctor", path))
    return told.value


def told_packages(server: str, text: str) -> Packages:
    """Read what a host tells of its packages; ValueError where it has no such server, or for no such name."""
    rows = [line.split() for line in text.splitlines()]
    installed = {
        checked(row[1], _NAME, "package"): checked(row[2], _VERSION, row[1])
        for row in rows
        if row[0] == "package"
    }
    if server not in installed:
        raise ValueError(f"{server} is not installed, and another major version has other data files")
    version = installed[server]
    [candidate] = [checked(row[1], _VERSION, server) for row in rows if row[0] == "candidate"]
    # What else lies in a folder of packages is none of them.
    known = dict.fromkeys(row[1] for row in rows if row[0] == "known" and _VERSION.fullmatch(row[1]))
    names = sorted(name for name, one in installed.items() if one == version)
    return Packages(tuple(names), version, candidate, tuple(known))


def _do(change: Change, request: Request, running: Running) -> tuple[str, ...]:
    living, host = running.living, running.living.host(change.host)
    if request.stopped and request.stopped.rolled_back:
        _back(running, change, host, "it was on its way back", request)
    proved = None if request.stopped else proof.made(living.cluster, _PROVEN)
    if proved and proved.complaint:
        raise Stopped(Ending.REFUSED, proved.complaint, command("doctor", request.path))
    running.say(f"postgresql: {change.old} and {change.new} are fetched to {_place(living, change.host)}")
    _keep(running, change, change.new)
    try:
        _keep(running, change, change.old)
    except Stopped as gone:
        if not request.arguments["force"]:
            what = f"no source has {change.old} any more, so there is no way back: {gone.fact}"
            words = _words({**request.arguments, "force": True})
            raise Stopped(Ending.REFUSED, what, command(f"upgrade {words}", request.path)) from gone
    restart.wait_for_gate(running, change.unit, str(change.unit), request)
    running.begins(change.host, COMPONENT)
    try:
        pause = _installed(running, change, change.new, host, float(request.arguments["ready"]))
        found = proved.again(living.cluster) if proved else ""
    except (Stopped, LakehouseError) as error:
        _back(running, change, host, cause(error), request)
    running.done(change.host, COMPONENT)
    facts = f"postgresql {change.new} on {change.host}, it did not answer for {pause:.1f} s"
    return (facts, found) if found else (facts,)


def _back(running: Running, change: Change, host: Host, why: str, request: Request) -> NoReturn:
    running.say(f"postgresql: goes back: {why}")
    running.journal.write(journal.BACK, what=COMPONENT)
    try:
        _installed(running, change, change.old, host, restart.READY_SECONDS)
    except (Stopped, LakehouseError) as error:
        raise Stopped(Ending.HALFWAY, f"{why}; and on the way back: {cause(error)}", "") from error
    following = command("logs postgresql", request.path)
    raise Stopped(Ending.BACK, f"PostgreSQL {change.old} serves again: {why}", following)


def _keep(running: Running, change: Change, version: str) -> None:
    """Have the packages of a version on the host, from apt or from what it has fetched before."""
    folder = f"{_place(running.living, change.host)}/{version}"
    place, part = shlex.quote(folder), shlex.quote(f"{folder}.part")
    script = f"""version={shlex.quote(version)}
[ ! -d {place} ] || exit 0
rm -rf {part}; mkdir -p {part}; cd {part}; set -e
for name in {shlex.join(change.names)}; do
  apt-get download -qq "$name=$version" || cp /var/cache/apt/archives/"$name"_"$version"_*.deb .
done
sync --file-system .; mv {part} {place}"""
    done = running.living.do(change.host, script, _FETCH_SECONDS)
    if not done.known:
        raise Stopped(Ending.REFUSED, done.why, "")


def _installed(running: Running, change: Change, version: str, host: Host, ready: float) -> float:
    """Install a version, have it run, and return for how many seconds PostgreSQL did not answer."""
    living, unit = running.living, change.unit
    running.say(f"postgresql: {change.host} installs {version}")
    script = installing(host, unit.unit, f"{_place(living, change.host)}/{version}", version)
    done = living.do(change.host, detached(script), _INSTALL_SECONDS)
    if done.value is None:
        raise Stopped(Ending.HALFWAY, f"{change.host} does not install {version}: {done.why}", "")
    # Its process may be that of a run which was killed: the version was asked, and not the process.
    serves = partial(living.serves, replace(unit, invocation=""), Answer(frozenset()))
    running.wait(str(unit), serves, ready)
    return gap(done.value)


def installing(host: Host, unit: str, folder: str, version: str) -> str:
    """Return what installs packages, which restarts PostgreSQL, and tells when it answered meanwhile."""
    asks, shows = (questions.server_psql(host, query) for query in ("select 1", "show server_version"))
    return f"""version={shlex.quote(version)}
up=$(mktemp); ask() {{ {asks}; }}; show() {{ {shows}; }}
( while sleep {_PROBE_SECONDS}; do ask >/dev/null 2>&1 && echo "{_UP} $(date +%s.%N)"; done > "$up" ) &
probe=$!; trap 'kill $probe; rm -f "$up"' EXIT
export DEBIAN_FRONTEND=noninteractive
until ask >/dev/null 2>&1 || [ $((n = n + 1)) -gt 10 ]; do sleep 1; done
dpkg --configure --pending && apt-get install -qq --allow-downgrades --no-install-recommends \
  --option DPkg::Lock::Timeout=120 --option Dpkg::Options::=--force-confold \
  {shlex.quote(folder)}/*.deb || exit 1
case "$(show 2>/dev/null)" in *" $version)") ;; *) systemctl restart {shlex.quote(unit)} || exit 1 ;; esac
n=0; until ask >/dev/null 2>&1; do [ $((n = n + 1)) -le {_START_SECONDS} ] || exit 1; sleep 1; done
case "$(show)" in *" $version)") ;; *) show; exit 1 ;; esac
sleep 1; cat "$up"
"""


def gap(text: str) -> float:
    """Return the longest time between two answers, in seconds."""
    times = [float(moment) for moment in re.findall(rf"^{_UP} (\d+(?:\.\d+)?)$", text, re.MULTILINE)]
    return max((later - earlier for earlier, later in pairwise(times)), default=0.0)
