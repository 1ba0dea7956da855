import gzip
import io
import json
import shlex
import sys
import tarfile
import time
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import click

from lakehouse import commands, runs, shared_options
from lakehouse.doctor import look as doctor
from lakehouse.doctor import screen as diagnosis
from lakehouse.doctor.diagnosis import diagnose
from lakehouse.doctor.model import Snapshot
from lakehouse.errors import UsageError
from lakehouse.maybe import Answer, unknown
from lakehouse.model import specs
from lakehouse.model.inventory import Host
from lakehouse.outcome import Finding, Outcome, Result
from lakehouse.remote import hosts, openssh, output
from lakehouse.remote.probing import Http, Prober
from lakehouse.report.text import size
from lakehouse.rolling import journal, run
from lakehouse.run import BUILD, ROOT
from lakehouse.status import look as status
from lakehouse.status import screen
from lakehouse.support_bundle import archive, collector, items, mask
from lakehouse.support_bundle.archive import Archive
from lakehouse.support_bundle.mask import Masker
from lakehouse.validation import secrets, variables
from plugins.module_utils.lakehouse import checked_document
from plugins.module_utils.lakehouse.checked_document import DocumentError
from plugins.module_utils.lakehouse.counting import counted

VERB = "support-bundle"
_ASK_SECONDS = 15.0
_SECRETS_SECONDS = 30.0
_MIB = 1 << 20
# What Ansible reads of an inventory: the password of a vault may lie beside it.
_INVENTORY = {".yml", ".yaml", ".json", ".ini"}
_VARIABLES = ("group_vars", "host_vars")
# Of what one host sends, unpacked: more than all of its journals and logs, as they are cut there.
_MOST_BYTES = 512 * _MIB
# The last jobs of each engine: group, port, path.
_JOBS = {
    "spark-master": ("spark_master_http", "/json/"),
    "spark-history": ("spark_history", "/api/v1/applications?limit=50"),
    "trino": ("trino_http", "/v1/query"),
    "flink": ("flink_rest", "/jobs/overview"),
    "flink-history": ("flink_history", "/jobs/overview"),
}


@commands.command(failure=commands.NOT_KNOWN)
@click.option("--size", "mebibytes", type=float, default=32.0, metavar="MIB", help="maximum size")
@shared_options.limit(120.0)
@shared_options.as_json
@shared_options.inventory
def command(mebibytes: float, limit: float, as_json: bool, inventory: str) -> int:
    """Collect logs, configuration and states of all hosts, without secrets.

    Exit code: 1 if a host is missing, 2 if all are.
    """
    began = time.monotonic()
    if mebibytes < 1 or limit < 1:
        raise UsageError("--size and --limit: 1 MiB, 1 second, or more")
    output.progress("asking what status and doctor ask")
    with closing(Prober()) as prober:
        snapshot = doctor.look(prober, inventory, time.monotonic() + _ASK_SECONDS)
    options = variables.options(specs.every())
    host_secrets = (secrets.values(host, options) for host in snapshot.cluster.hosts)
    masker = Masker(set[str]().union(*host_secrets), secrets.names(options))
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    path = BUILD / f"support-{snapshot.status.cluster}-{stamp}.tar.gz"
    with archive.create(path, int(mebibytes * _MIB)) as bundle:
        answers = _fill(bundle, masker, snapshot, limit, began)
    ending = _result(inventory, path, snapshot, answers)
    seconds = time.monotonic() - began
    facts = (
        *ending.facts,
        f"{counted(masker.count, 'value masked', 'values masked')}",
        f"{len(bundle.cut)} cut",
        f"{seconds:.1f} s",
    )
    details = {"masked": masker.count, "cut": bundle.cut, "seconds": round(seconds, 1)}
    ending = replace(ending, facts=facts, details={**ending.details, **details})
    lines = [json.dumps(ending.json())] if as_json else [*map(str, ending.worst), ending.last_line]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return int(ending.outcome)


def _fill(
    bundle: Archive, masker: Masker, snapshot: Snapshot, limit: float, began: float
) -> dict[str, Answer[int]]:
    """Put everything in, the small things of the cluster first; return how each host ended."""
    hosts = snapshot.cluster.hosts
    with ThreadPoolExecutor(len(hosts)) as pool:
        output.progress("reading the secrets that are to be masked")
        for host_secrets in pool.map(_secrets, hosts):
            masker.learn(host_secrets)
        for name, text in _cluster(snapshot, began):
            bundle.add(name, masker.text(name, text))
        output.progress(f"collecting from {', '.join(host.name for host in hosts)}")
        ended = list(pool.map(lambda host: _host(bundle, masker, snapshot, host, limit), hosts))
    answers = dict(zip((host.name for host in hosts), ended, strict=True))
    for host, answer in answers.items():
        if not answer.known:
            bundle.add(f"{host}/missing.txt", masker.text("", f"{answer.why}\n"))
    bundle.close(
        {
            "cluster": snapshot.status.cluster,
            "hosts": {host: answer.why or "complete" for host, answer in answers.items()},
            "masked": masker.count,
        }
    )
    return answers


def _secrets(host: Host) -> set[str]:
    """Return what stands in a host's files of secrets; nothing where it does not answer."""
    values: set[str] = set()
    for name, text, _ in _members(host, items.secrets(host), _SECRETS_SECONDS, []):
        values |= mask.values(name, text)
    return values


def _cluster(snapshot: Snapshot, began: float) -> Iterator[tuple[str, str]]:
    """Give what is there once: status, doctor, inventory, runs, versions of the kit, the last jobs."""
    seconds = time.monotonic() - began
    yield "status.json", json.dumps(screen.result(snapshot.status, seconds).json(), indent=2)
    yield (
        "doctor.json",
        json.dumps(diagnosis.result(snapshot.status, diagnose(snapshot), seconds).json(), indent=2),
    )
    yield from inventory_files(snapshot.cluster.inventory.path)
    past_runs = journal.runs(run.folder(snapshot.cluster))
    yield "runs.json", json.dumps(runs.document(snapshot.status.cluster, past_runs), indent=2)
    yield "versions.yml", (ROOT / "versions.yml").read_text(encoding="utf-8")
    # Trino shows other people's queries to its own user alone.
    headers = {"X-Trino-User": str(snapshot.cluster.variable("lakehouse_users")["trino"])}
    queries = [Http(name, url, headers) for name, url in snapshot.cluster.urls(_JOBS)]
    with closing(Prober()) as prober:
        answers = status.ask(prober, snapshot.cluster, queries, time.monotonic() + _ASK_SECONDS)
    for name, answer in answers.items():
        yield f"jobs/{name}.json", answer.value.text if answer.value else f"unknown: {answer.why}\n"


def inventory_files(path: Path) -> Iterator[tuple[str, str]]:
    """Give what Ansible reads of an inventory, a file or a folder, each file by its name below it."""
    folder = path if path.is_dir() else path.parent
    tops = sorted(path.iterdir()) if path.is_dir() else [path]
    files = [file for file in tops if file.suffix in _INVENTORY or file == path]
    files += [file for name in _VARIABLES for file in sorted((folder / name).rglob("*"))]
    for file in files:
        if file.is_file():
            name = f"inventory/{file.relative_to(folder)}"
            # Without an ending it is YAML, too.
            name = name if file.suffix else f"{name}.yml"
            yield name, collector.tail(file, items.BYTES)[0].decode(errors="replace")


def _host(bundle: Archive, masker: Masker, snapshot: Snapshot, host: Host, limit: float) -> Answer[int]:
    """Put in what a host sends; unknown where that is not all."""
    ends: list[Answer[int]] = []
    sizes: Mapping[str, int] | None = None
    sizes_sent = dict[str, int]()
    for name, text, sent in _members(host, items.request(snapshot.cluster, host), limit, ends):
        if name == collector.INDEX:
            sizes = _sizes(text)
        else:
            sizes_sent[name] = sent
            bundle.add(f"{host.name}/{name}", masker.text(name, text))
    [end] = ends
    if end.known and sizes is None:
        return unknown(f"it sent a part only (exit code {end.value})")
    for name, size_there in (sizes or {}).items():
        bundle.note(f"{host.name}/{name}", size_there, sizes_sent.get(name, 0))
    return end


def _sizes(text: str) -> dict[str, int] | None:
    """Return how large each thing was on its host; None where the host sent no such list."""
    kind = checked_document.mapping(checked_document.text, checked_document.count)
    try:
        return dict(checked_document.checked(checked_document.parse(text, "the list"), kind, "the list"))
    except DocumentError:
        return None


def _members(
    host: Host, request: Mapping[str, Any], limit: float, ends: list[Answer[int]]
) -> Iterator[tuple[str, str, int]]:
    """Give name, text and size of each thing that the collector sends; the end of it goes to `ends`."""
    python = str(host.variables.get("ansible_python_interpreter", "python3"))
    program = Path(collector.__file__).read_text(encoding="utf-8")
    script = shlex.join([python if python.startswith("/") else "python3", "-c", program, json.dumps(request)])
    with openssh.output(host, f"exec {script}", limit) as (stream, ended):
        try:
            with tarfile.open(fileobj=_Bounded(stream), mode="r|") as sent:
                for member in sent:
                    content = sent.extractfile(member)
                    if content:
                        yield _name(member.name), content.read().decode(errors="replace"), member.size
        except (tarfile.TarError, EOFError, OSError, ValueError, zlib.error):
            pass  # cut off, or no archive: how it ended says why, and its list is not there
        ends.append(ended())


def _name(name: str) -> str:
    """Return the name of what a host sends, which becomes one in the archive; ValueError if it leads out."""
    return checked_document.relative(checked_document.printable(name), "a name")


class _Bounded(io.RawIOBase):
    """Gives what a host sends, unpacked, up to a limit: OSError for more, which is no archive of ours."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__()
        self._stream, self._left = gzip.GzipFile(fileobj=stream), _MOST_BYTES

    def read(self, size: int = -1, /) -> bytes:
        """Return so many bytes."""
        content = self._stream.read(min(size, self._left + 1) if size >= 0 else self._left + 1)
        self._left -= len(content)
        if self._left < 0:
            raise OSError(f"it sends more than {_MOST_BYTES // _MIB} MiB")
        return content


def _result(inventory: str, path: Path, snapshot: Snapshot, answers: Mapping[str, Answer[int]]) -> Result:
    complete_hosts = [name for name, answer in answers.items() if answer.known]
    archive_path = path.relative_to(ROOT)
    severity = Outcome.DEGRADED if complete_hosts else Outcome.DOWN
    return Result(
        verb=VERB,
        target=snapshot.status.cluster,
        findings=tuple(
            Finding(
                "bundle.missing", severity, host, f"is missing: {answer.why}", hosts.ping(inventory, host)
            )
            for host, answer in answers.items()
            if not answer.known
        ),
        facts=(f"{len(complete_hosts)} of {counted(len(answers), 'host')}", size(path.stat().st_size)),
        hosts={name: {"answered": answer.known, "why": answer.why} for name, answer in answers.items()},
        healthy_next=f"tar tzf {archive_path}",
        details={"archive": str(archive_path)},
        summary=str(archive_path),
    )
