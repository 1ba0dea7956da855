"""`lakehouse upgrade postgresql`: install another minor version of Debian's packages, with a rollback.

The data files are the same. The packages of both versions are stored on the host before any change, since
mirrors drop the old version when they have a newer one.
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

from lakehouse.artifacts import airgap
from lakehouse.doctor import backups
from lakehouse.errors import LakehouseError
from lakehouse.maybe import Answer
from lakehouse.model.inventory import Host
from lakehouse.next_command import command
from lakehouse.rolling import journal, marker, restart, run, steps
from lakehouse.rolling.facts import Living
from lakehouse.rolling.result import Ending, Refusal, Stopped, cause
from lakehouse.rolling.run import Request, Running, Work
from lakehouse.rolling.steps import Step
from lakehouse.status import questions, reading
from lakehouse.status.model import LastGood
from lakehouse.upgrade import proof
from lakehouse.upgrade.detached import detached
from plugins.module_utils.lakehouse.checked_document import checked

COMPONENT = "postgresql"
# The component whose engine is queried before and after: it uses the metastore.
_PROVEN = "hive"
_ASK_SECONDS, _FETCH_SECONDS, _INSTALL_SECONDS = 180.0, 900.0, 900.0
# Timeout of apt-get update, without which the known versions are used.
_UPDATE_SECONDS = 60
_HOUR = 3600
_PAGE = "docs/operations/upgrade.md#postgresql"
_UP = "@@up"
# Names and versions from a host and its mirrors go into shell scripts and names of folders (deb-version(7)).
_NAME, _VERSION = re.compile(r"[a-z0-9][a-z0-9.+-]{0,99}"), re.compile(r"\d[A-Za-z0-9.+~:-]{0,99}")
_PROBE_SECONDS, _START_SECONDS = 0.1, 120


@dataclass(frozen=True)
class Packages:
    """The packages of a server: names, installed version, apt's candidate, and available versions."""

    names: tuple[str, ...]
    installed: str
    candidate: str
    available: tuple[str, ...]


@dataclass(frozen=True)
class Change:
    """A change of packages on a host: old and new version, and the unit of the server."""

    host: str
    names: tuple[str, ...]
    old: str
    new: str
    unit: Step


def read(row: Mapping[str, Any]) -> Change:
    """Return the change of an entry in a journal."""
    return Change(**{**row, "names": tuple(row["names"]), "unit": steps.read(row["unit"])})


def prepare(living: Living, request: Request) -> Work:
    """Return the plan, empty where the version is installed; LakehouseError without an answer."""
    arguments, path = request.arguments, request.path
    refusal: Refusal | None = None
    if request.stopped:
        change = read(request.stopped.plan[0])
    else:
        if os.environ.get(airgap.VARIABLE):
            fact = f"PostgreSQL's packages come from the host's own mirrors, and {airgap.VARIABLE} is set"
            raise LakehouseError(fact, f"unset {airgap.VARIABLE}, then the same; without mirrors: {_PAGE}")
        [step] = restart.with_invocations(living, steps.plan(living.cluster, COMPONENT))
        packages = _packages(living, step, path, update=not request.dry_run)
        new, refusal = select(packages, arguments["to"])
        change = Change(step.host, packages.names, packages.installed, new, step)
        if not arguments["force"]:
            refusal = refusal or unsaved(_backup(living), time.time(), path)
    refusal = marker.absent(living.cluster, [change.host], path) or refusal
    is_installed = change.old == change.new
    return Work(
        target=COMPONENT,
        arguments=arguments,
        plan=[] if is_installed else [asdict(change)],
        lines=[
            f"upgrade postgresql: {change.old} -> {change.new} on {change.host}; {change.unit.noticed}",
            f"  {', '.join(change.names)}; those of before are kept in {_place(living, change.host)}",
            *([f"refused: {refusal.fact}"] if refusal else []),
        ],
        question=f"Install PostgreSQL {change.new}, and restart it?",
        do=partial(_do, change, request),
        following=command("doctor", path),
        refusal=None if is_installed and arguments["to"] is None else refusal,
        words=_words(arguments),
    )


def _words(arguments: Mapping[str, Any]) -> str:
    """Return the words after the verb on the command line."""
    return run.typed(COMPONENT, {"--to": arguments["to"], "--force": arguments["force"]})


def select(packages: Packages, version: str | None) -> tuple[str, Refusal | None]:
    """Return the requested version, by default apt's candidate, and a refusal if it is not possible."""
    if version is None:
        return packages.candidate, None
    major = packages.installed.partition(".")[0]
    if version.partition(".")[0] != major:
        reason = "another major version has other data files, and wants pg_upgrade"
        fact = f"postgresql {major} -> {version}: {reason}"
        return packages.installed, Refusal(fact, f"a version {major}.x")
    names = (name for name in packages.available if name == version or name.startswith(f"{version}-"))
    match = next(names, None)
    if match is None:
        fact = f"no source has PostgreSQL {version} for this host"
        return packages.installed, Refusal(fact, f"one of: {', '.join(packages.available)}")
    return match, None


def unsaved(backup: Answer[LastGood | None], now: float, path: str) -> Refusal | None:
    """Return that there is no recent good backup; None where there is, or where backups are disabled."""
    remedy = f"{command('backup', path)}, or --force"
    if not backup.known:
        return Refusal(f"the last backup is not known: {backup.why}", remedy)
    if backup.value is None:
        return None
    if backup.value.good is None:
        return Refusal("there is no good backup", remedy)
    hours = (now - backup.value.good) / _HOUR
    return Refusal(f"the last good backup is {hours:.0f} h old", remedy) if hours > backups.HOURS else None


def _backup(living: Living) -> Answer[LastGood | None]:
    backup_host = next((host for host in living.cluster.hosts if questions.backups(host)), None)
    if backup_host is None:
        return Answer(None)
    return living.do(backup_host.name, str(questions.backups(backup_host)), _ASK_SECONDS).then(
        reading.parse_backup
    )


def _place(living: Living, host: str) -> str:
    """Return the folder for packages on a host."""
    return f"{living.host(host).variables['lakehouse_data_dir']}/packages/postgresql"


def _packages(living: Living, step: Step, path: str, *, update: bool) -> Packages:
    """Return the packages of a host, after an update of apt's lists if `update`."""
    major = step.unit.partition("@")[2].partition("-")[0]
    server = f"postgresql-{major}"
    # Without an update apt's old lists and the stored packages are used.
    update_lists = (
        f"timeout -k 5 {_UPDATE_SECONDS} apt-get update -qq -o Acquire::Retries=0" if update else "true"
    )
    script = f"""{update_lists} >/dev/null 2>&1
dpkg-query --show --showformat='${{source:Package}} ${{db:Status-Status}} ${{Package}} ${{Version}}\n' \
  | sed -n 's/^{server} installed /package /p'
LC_ALL=C apt-cache policy {server} | sed -n 's/^  Candidate: /candidate /p'
apt-cache madison {server} | awk -F' *[|] *' '{{ print "known " $2 }}'
ls {shlex.quote(_place(living, step.host))} 2>/dev/null | sed -n '/[.]part$/!s/^/known /p'"""
    answer = living.do(step.host, script, _ASK_SECONDS).then(partial(parse_packages, server))
    if answer.value is None:
        why = f"{step.host} does not say which packages it has: {answer.why}"
        raise LakehouseError(why, command("doctor", path))
    return answer.value


def parse_packages(server: str, text: str) -> Packages:
    """Parse the packages of a host; ValueError without such a server, or for an invalid name or version."""
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
    # Other files in the folder of packages are ignored.
    available = dict.fromkeys(row[1] for row in rows if row[0] == "known" and _VERSION.fullmatch(row[1]))
    names = sorted(name for name, package_version in installed.items() if package_version == version)
    return Packages(tuple(names), version, candidate, tuple(available))


def _do(change: Change, request: Request, running: Running) -> tuple[str, ...]:
    living, host = running.living, running.living.host(change.host)
    if request.stopped and request.stopped.rolled_back:
        _roll_back(running, change, host, "it was on its way back", request)
    proof_before = None if request.stopped else proof.find(living.cluster, _PROVEN)
    if proof_before and proof_before.complaint:
        raise Stopped(Ending.REFUSED, proof_before.complaint, command("doctor", request.path))
    running.say(f"postgresql: {change.old} and {change.new} are fetched to {_place(living, change.host)}")
    _store(running, change, change.new)
    try:
        _store(running, change, change.old)
    except Stopped as missing:
        if not request.arguments["force"]:
            fact = f"no source has {change.old} any more, so there is no way back: {missing.fact}"
            words = _words({**request.arguments, "force": True})
            raise Stopped(Ending.REFUSED, fact, command(f"upgrade {words}", request.path)) from missing
    restart.wait_for_gate(running, change.unit, str(change.unit), request)
    running.begins(change.host, COMPONENT)
    try:
        pause = _install(running, change, change.new, host, float(request.arguments["ready"]))
        proof_after = proof_before.repeat(living.cluster) if proof_before else ""
    except (Stopped, LakehouseError) as error:
        _roll_back(running, change, host, cause(error), request)
    running.done(change.host, COMPONENT)
    facts = f"postgresql {change.new} on {change.host}, it did not answer for {pause:.1f} s"
    return (facts, proof_after) if proof_after else (facts,)


def _roll_back(running: Running, change: Change, host: Host, why: str, request: Request) -> NoReturn:
    running.say(f"postgresql: rolls back: {why}")
    running.journal.write(journal.BACK, what=COMPONENT)
    try:
        _install(running, change, change.old, host, restart.READY_SECONDS)
    except (Stopped, LakehouseError) as error:
        raise Stopped(Ending.HALFWAY, f"{why}; and on the way back: {cause(error)}", "") from error
    next_command = command("logs postgresql", request.path)
    raise Stopped(Ending.BACK, f"PostgreSQL {change.old} serves again: {why}", next_command)


def _store(running: Running, change: Change, version: str) -> None:
    """Store the packages of a version on the host, from apt or from its cache."""
    folder = f"{_place(running.living, change.host)}/{version}"
    destination, partial_folder = shlex.quote(folder), shlex.quote(f"{folder}.part")
    script = f"""version={shlex.quote(version)}
[ ! -d {destination} ] || exit 0
rm -rf {partial_folder}; mkdir -p {partial_folder}; cd {partial_folder}; set -e
for name in {shlex.join(change.names)}; do
  apt-get download -qq "$name=$version" || cp /var/cache/apt/archives/"$name"_"$version"_*.deb .
done
sync --file-system .; mv {partial_folder} {destination}"""
    answer = running.living.do(change.host, script, _FETCH_SECONDS)
    if not answer.known:
        raise Stopped(Ending.REFUSED, answer.why, "")


def _install(running: Running, change: Change, version: str, host: Host, ready: float) -> float:
    """Install a version, wait until it serves, and return the seconds without an answer of PostgreSQL."""
    living, unit = running.living, change.unit
    running.say(f"postgresql: {change.host} installs {version}")
    script = install_script(host, unit.unit, f"{_place(living, change.host)}/{version}", version)
    answer = living.do(change.host, detached(script), _INSTALL_SECONDS)
    if answer.value is None:
        raise Stopped(Ending.HALFWAY, f"{change.host} does not install {version}: {answer.why}", "")
    # Any process is accepted, since a killed run may have started it: the script has checked the version.
    pending = partial(living.serves, replace(unit, invocation=""), Answer(frozenset()))
    running.wait(str(unit), pending, ready)
    return gap(answer.value)


def install_script(host: Host, unit: str, folder: str, version: str) -> str:
    """Return the script that installs packages, restarts PostgreSQL, and prints when it answered."""
    ask, show = (questions.server_psql(host, query) for query in ("select 1", "show server_version"))
    return f"""version={shlex.quote(version)}
up=$(mktemp); ask() {{ {ask}; }}; show() {{ {show}; }}
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
