"""What is on a host, compared with items of its manifest.

An item is a dictionary with `kind` and what that kind has (see `KINDS`). It is what a module has put on the
host: `differences` says where the host is otherwise. Reads only. The standard library alone: `lakehouse
doctor` hands this file to a host as a program, with the path of a manifest.
"""

from __future__ import annotations

import grp
import hashlib
import json
import os
import pwd
import stat
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from itertools import islice
from pathlib import Path
from typing import IO, Any

Item = Mapping[str, Any]
FORMAT = 1
# The file of the manifest, in the folder of configuration.
NAME = "lakehouse-manifest.json"
# In place of differences, where there is no manifest that can be read.
NO_MANIFEST = "no manifest"
# The last line, so that a list that was cut is seen.
END = "end of the list"
# The list of a release's files: size and name on each line, sorted by bytes.
RELEASE_LIST = ".lakehouse-files"
# Path of the NameNode's web address.
DATANODES = "/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo"
# Of one question; the doctor has five for all of a host.
_SECONDS = 4
_MOST_BYTES = 16 << 20
# Of an item whose service did not answer, and of one that cannot be read.
UNCOMPARED = "cannot be compared"
# Of the differences of one host: a release may lack thousands of files.
MOST_LINES = 200


def sealed(document: Mapping[str, Any]) -> str:
    """Return the digest of a manifest but for the digest that it has itself."""
    content = {key: value for key, value in document.items() if key != "digest"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def read(path: str) -> dict[str, Any]:
    """Return a manifest as it was written; ValueError says why there is none."""
    try:
        with _opened(path) as stream:
            status = os.fstat(stream.fileno())
            # What is more than any manifest has is cut, and no JSON.
            document = json.loads(stream.read(_MOST_BYTES))
    except FileNotFoundError:
        raise ValueError("is not there") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"cannot be read: {error}") from error
    # Its probes and queries run as root and as PostgreSQL's superuser.
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ValueError("can be changed by another account")
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError("was written by another version of the kit")
    if document.get("digest") != sealed(document):
        raise ValueError("was edited")
    return document


def _opened(path: str) -> IO[bytes]:
    """Open a regular file; OSError for anything else, which another account may have put there meanwhile."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError("no regular file")
    return os.fdopen(handle, "rb")


def fingerprint(content: bytes) -> dict[str, Any]:
    """Return what is compared of a file's content."""
    return {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}


def _names(status: os.stat_result) -> tuple[str, str]:
    """Return owner and group, by number where they have no name."""
    try:
        owner = pwd.getpwuid(status.st_uid).pw_name
    except KeyError:
        owner = str(status.st_uid)
    try:
        group = grp.getgrgid(status.st_gid).gr_name
    except KeyError:
        group = str(status.st_gid)
    return owner, group


def _attributes(item: Item, expected: str) -> Iterator[str]:
    """Compare type, owner, group and mode of a path; links are not followed."""
    status = os.lstat(item["path"])
    kinds = {"file": stat.S_ISREG, "directory": stat.S_ISDIR}
    if not kinds[expected](status.st_mode):
        yield f"is no {expected}"
        return
    owner, group = _names(status)
    for name, is_now in (("owner", owner), ("group", group), ("mode", f"{stat.S_IMODE(status.st_mode):04o}")):
        if item.get(name) not in (None, is_now):
            yield f"{name} is {is_now} in place of {item[name]}"


def _file(item: Item) -> Iterator[str]:
    faults = list(_attributes(item, "file"))
    yield from faults
    if "sha256" in item and "is no file" not in faults:
        with _opened(item["path"]) as stream:
            # An account may have made its own file as large as the disk.
            is_other = os.fstat(stream.fileno()).st_size != item["size"]
            if is_other or fingerprint(stream.read(item["size"] + 1))["sha256"] != item["sha256"]:
                yield "has other content"


def _directory(item: Item) -> Iterator[str]:
    faults = list(_attributes(item, "directory"))
    yield from faults
    if "only" in item and "is no directory" not in faults:
        names = {path.name for path in Path(item["path"]).iterdir()}
        yield from (f"lacks {name}" for name in sorted(set(item["only"]) - names))
        yield from (f"has {name}, which the kit does not write" for name in sorted(names - set(item["only"])))


def _link(item: Item) -> Iterator[str]:
    path = Path(item["path"])
    if not path.is_symlink():
        yield "is no link"
    elif (target := str(path.readlink())) != item["target"]:
        yield f"leads to {target} in place of {item['target']}"


def _absent(item: Item) -> Iterator[str]:
    if os.path.lexists(item["path"]):
        yield "is there, and the kit has removed it"


def block(text: str, begin: str, end: str) -> list[str] | None:
    """Return the lines between two marks; None where a mark is missing."""
    lines = text.splitlines()
    if begin not in lines or end not in lines:
        return None
    return lines[lines.index(begin) + 1 : lines.index(end)]


def _block(item: Item) -> Iterator[str]:
    """Compare the part of a file that is the kit's; no other line may begin with `without`."""
    text = Path(item["path"]).read_text(encoding="utf-8")
    lines = block(text, item["begin"], item["end"])
    if lines is None or hashlib.sha256("\n".join(lines).encode()).hexdigest() != item["sha256"]:
        yield "has other lines of the kit"
    if any(line.split()[:1] == [item["without"]] for line in text.splitlines()):
        yield f"has a line of {item['without']}"


def listed(folder: Path) -> list[str]:
    """Return size and name of each file below a folder, sorted by bytes."""
    lines: list[str] = []
    folders = [("", str(folder))]
    while folders:
        prefix, place = folders.pop()
        with os.scandir(place) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append((f"{prefix}{entry.name}/", entry.path))
                elif entry.is_file(follow_symlinks=False):
                    lines.append(f"{entry.stat(follow_symlinks=False).st_size} {prefix}{entry.name}")
    return sorted(lines, key=os.fsencode)


def lacking(folder: Path) -> list[str] | None:
    """Return the names of files that a release lacks, or has with another size; None where it has no list.

    What the list does not name is ignored: Python writes its caches beside its modules.
    """
    try:
        text = (folder / RELEASE_LIST).read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return None
    on_disk = set(listed(folder))
    return [line.partition(" ")[2] for line in text.splitlines() if line not in on_disk]


def _release(item: Item) -> Iterator[str]:
    folder = Path(item["path"])
    if not folder.is_dir():
        yield "is not there"
    elif (names := lacking(folder)) is None:
        yield f"has no list of its files ({RELEASE_LIST})"
    elif names:
        suffix = f" and {len(names) - 1} more" if names[1:] else ""
        yield f"lacks {names[0]}{suffix}, or has another size"


def _package(item: Item) -> Iterator[str]:
    status = _printed(["dpkg-query", "--show", "--showformat=${db:Status-Status}\\n", item["name"]])
    # A line for each architecture.
    if "installed" not in status.splitlines():
        yield "is not installed"


def _account(item: Item) -> Iterator[str]:
    try:
        entry = pwd.getpwnam(item["name"])
        group = grp.getgrnam(item["group"])
    except KeyError as error:
        yield f"lacks its entry: {error.args[0]}"
        return
    if group.gr_gid not in os.getgrouplist(item["name"], entry.pw_gid):
        yield f"is not in the group {item['group']}"


def _kernel(item: Item) -> Iterator[str]:
    is_now = Path("/proc/sys", *item["name"].split(".")).read_text(encoding="ascii").split()
    if is_now != str(item["value"]).split():
        yield f"is {' '.join(is_now)} in place of {item['value']}"


def psql(port: str, database: str, user: str, sql: str) -> str:
    """Return what a query prints, as an account that PostgreSQL knows by its socket; OSError says why not."""
    return _printed([
        "runuser", "-u", "postgres", "--", "psql", "--port", port, "--username", user, "--dbname", database,
        "--no-psqlrc", "--no-align", "--tuples-only", "--quiet", "--set", "ON_ERROR_STOP=1", "--command", sql,
    ], PGOPTIONS="-c search_path=pg_catalog")  # fmt: skip


def _sql(item: Item) -> Iterator[str]:
    """Compare the digest of an answer: a password's verifier is not written anywhere else."""
    try:
        answer = psql(item["port"], item["database"], item["user"], item["sql"])
    except OSError as error:
        # How a query says no.
        if "division by zero" not in str(error):
            raise
        answer = ""
    if hashlib.sha256(answer.encode()).hexdigest() != item["sha256"]:
        yield "is not as the kit has set it"


def _hdfs(item: Item) -> Iterator[str]:
    query = urllib.parse.urlencode({"user.name": item["user"]})

    def get(operation: str, path: str) -> Any:
        address = f"{item['url']}/webhdfs/v1{urllib.parse.quote(path)}?op={operation}&{query}"
        with urllib.request.urlopen(address, timeout=_SECONDS) as response:  # noqa: S310 -- of root's manifest
            return json.load(response)

    try:
        status = get("GETFILESTATUS", item["path"])["FileStatus"]
    except urllib.error.HTTPError as error:
        if error.code != HTTPStatus.NOT_FOUND:
            raise
        yield "is not there"
        return
    for name, key in (("owner", "owner"), ("group", "group"), ("mode", "permission")):
        if status[key] != item[name]:
            yield f"{name} is {status[key]} in place of {item[name]}"
    if "readers" in item:
        entries = get("GETACLSTATUS", item["path"])["AclStatus"]["entries"]
        readers = sorted(entry.split(":")[1] for entry in entries if entry.startswith("user:"))
        if readers != sorted(item["readers"]):
            yield f"is open to {', '.join(readers) or 'no reader'} in place of {', '.join(item['readers'])}"
    if item.get("snapshots"):
        answer = get("GETSNAPSHOTTABLEDIRECTORYLIST", "/").get("SnapshottableDirectoryList") or ()
        paths = {f"{row['parentFullPath'].rstrip('/')}/{row['dirStatus']['pathSuffix']}" for row in answer}
        if item["path"] not in paths:
            yield "takes no snapshots"


def _datanodes(item: Item) -> Iterator[str]:
    """Each host is in the file of those that may register, and the NameNode knows it, alive or dead."""
    listed = {row["hostName"] for row in json.loads(Path(item["name"]).read_text(encoding="utf-8"))}
    yield from (f"lacks {host}" for host in item["hosts"] if host not in listed)
    address = f"{item['url']}{DATANODES}"
    with urllib.request.urlopen(address, timeout=_SECONDS) as response:  # noqa: S310 -- of root's manifest
        registered_hosts = registered(response.read())
    yield from (f"is not read for {host}" for host in item["hosts"] if host not in registered_hosts)


def registered(answer: bytes) -> set[str]:
    """Return the DataNodes in the NameNode's answer to `DATANODES`, dead ones too; ValueError for no JSON."""
    [bean] = json.loads(answer)["beans"]
    places = (place for group in ("LiveNodes", "DeadNodes") for place in json.loads(bean[group]))
    return {place.rpartition(":")[0] for place in places}


def _printed(argv: list[str], **environment: str) -> str:
    """Return the output of a program; OSError if it fails or exceeds the timeout."""
    try:
        process = subprocess.run(
            argv, capture_output=True, text=True, timeout=_SECONDS, check=False, cwd="/",
            env=os.environ | environment,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise OSError(f"{argv[0]} has not ended within {_SECONDS} s") from None
    if process.returncode and argv[0] != "dpkg-query":
        raise OSError(process.stderr.strip() or f"{argv[0]} ended with {process.returncode}")
    return process.stdout.strip()


KINDS: dict[str, Callable[[Item], Iterator[str]]] = {
    "file": _file,
    "directory": _directory,
    "link": _link,
    "absent": _absent,
    "block": _block,
    "release": _release,
    "package": _package,
    "account": _account,
    "kernel": _kernel,
    "sql": _sql,
    "hdfs": _hdfs,
    "datanodes": _datanodes,
}
# A path says by itself what it is.
_NAMED = {
    "release": "release ",
    "package": "package ",
    "account": "account ",
    "kernel": "parameter ",
    "sql": "PostgreSQL: ",
    "hdfs": "hdfs:",
    "datanodes": "DataNodes of ",
    "unit": "unit ",
}


def key(item: Item) -> str:
    """Return what an item is called: what is put twice is one item."""
    return f"{_NAMED.get(item['kind'], '')}{item['path' if 'path' in item else 'name']}"


def differences(items: Iterable[Item]) -> Iterator[str]:
    """Give a line for each difference, which names the item; what cannot be compared is one, too.

    One request goes to a service that does not answer. host_comparison.py compares units.
    """
    silent = set()
    for item in items:
        server = item.get("url") or item.get("port")
        if item["kind"] not in KINDS or server in silent:
            continue
        try:
            yield from (f"{key(item)} {fault}" for fault in KINDS[item["kind"]](item))
        except FileNotFoundError:
            yield f"{key(item)} is not there"
        except (OSError, LookupError, ValueError, TypeError) as error:
            yield f"{key(item)} {UNCOMPARED}: {error}"
            silent |= {server} - {None}


def main() -> None:
    """Print the differences of the host from the manifest whose path is the argument."""
    try:
        items = list(read(sys.argv[1])["items"].values())
    except ValueError as error:
        lines: Iterable[str] = [f"{NO_MANIFEST}: {sys.argv[1]} {error}"]
    else:
        # A service that does not answer is a finding of its own.
        served = {key(item) for item in items if item["kind"] in ("hdfs", "sql", "datanodes")}
        lines = (
            " ".join(line.split())
            for line in differences(items)
            if UNCOMPARED not in line or line.partition(f" {UNCOMPARED}")[0] not in served
        )
    for line in [*islice(lines, MOST_LINES), END]:
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
