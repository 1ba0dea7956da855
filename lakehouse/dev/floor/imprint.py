"""The changes of a run of the kit on a bare node, separated from those of packages and daemons by path."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from fnmatch import fnmatch

# Where the kit puts files, beside the folders that an inventory names.
PLACES = ("/etc", "/usr/local")
# What packages write when they are installed, and what is each node's own.
_GENERATED = (
    "/etc/*-", "/etc/.*", "/etc/alternatives/*", "/etc/apt/*", "/etc/default/*", "/etc/hosts",
    "/etc/ld.so.cache", "/etc/locale*", "/etc/machine-id", "/etc/mtab", "/etc/rc?.d/*", "/etc/ssl/*",
)  # fmt: skip
# What a package has to find: accounts with their numbers, and where a database is to be.
_BEFORE_PACKAGES = ("/etc/group", "/etc/gshadow", "/etc/passwd", "/etc/shadow", "*/createcluster.conf")
# As `ss` prints who listens on every address; for IPv6 it has other words.
EVERY = "0.0.0.0"  # noqa: S104 -- read, not bound
_UNIT = re.compile(r"/etc/systemd/system/([^/]+\.(?:service|timer))(?:\.d/[^/]+)?")
_PATH = re.compile(r"/[\w.+@/-]+")
_SOCKET = re.compile(r"(\d+(?:\.\d+){3})?\]?:(\d+)$")


def packaged(lists: str, verified: str) -> set[str]:
    """Return the paths of dpkg's lists without the configuration that `dpkg --verify` finds changed."""
    changed = (line.partition(" c ")[2] for line in verified.splitlines())
    return set(lists.splitlines()) - set(changed)


def kept(changed: Iterable[str], install_dir: str, config_dir: str) -> list[str]:
    """Return the files, links and folders of configuration, units and programs among the changed paths.

    Of a release in `install_dir` only the link `conf` counts: its archive has the other files.
    """
    places = (*PLACES, install_dir, config_dir)
    unpacked, conf = f"{install_dir}/*/releases/*", re.compile(r".*/releases/[^/]+/conf")
    return [
        path
        for path in changed
        if any(f"{path}/".startswith(f"{place}/") for place in places)
        and not any(fnmatch(path, pattern) for pattern in _GENERATED)
        and (not fnmatch(path, unpacked) or conf.fullmatch(path))
    ]


def rooms(changed: Iterable[str], text: str) -> list[str]:
    """Return the changed paths that a text names: candidates for the kit's data folders.

    `text` is the content of the `kept` files. The caller checks whether a path is a folder.
    """
    paths = {"/" + path.strip("/") for path in _PATH.findall(text)}
    paths |= {parent for path in paths for parent in _parents(path)}
    return [path for path in changed if path in paths]


def precedes_packages(path: str) -> bool:
    """Whether a path has to be there before packages are installed."""
    return any(fnmatch(path, pattern) for pattern in _BEFORE_PACKAGES)


def releases(changed: Iterable[str], install_dir: str, names: Collection[str]) -> dict[str, str]:
    """Return the installed releases: by folder (`/opt/hadoop`) the release's name, if it is in `names`."""
    matches = (re.fullmatch(rf"({re.escape(install_dir)}/[^/]+)/releases/([^/]+)", path) for path in changed)
    return {match[1]: match[2] for match in matches if match and match[2] in names}


def units(paths: Iterable[str]) -> set[str]:
    """Return the services and timers that have a file or a drop-in among the paths."""
    return {match[1] for match in map(_UNIT.fullmatch, paths) if match}


def of_unit(unit: str, paths: Iterable[str]) -> list[str]:
    """Return the unit's file and its drop-ins among the paths."""
    return [path for path in paths if (match := _UNIT.fullmatch(path)) and match[1] == unit]


def state(output: str, known_units: Collection[str], ports: Collection[int]) -> frozenset[str]:
    """Return the state of a node, a line each: active units, ports with a listener.

    `output` has lines `unit NAME` and `socket ADDRESS:PORT` (of `ss`); unknown units and ports are ignored.
    """
    lines = set()
    for kind, _, name in (line.partition(" ") for line in output.splitlines()):
        if kind == "unit" and name in known_units:
            lines.add(f"{name} is active")
        elif kind == "socket" and (socket := _SOCKET.search(name)) and int(socket[2]) in ports:
            lines.add(f"{socket[1] or EVERY}:{socket[2]} listens")
    return frozenset(lines)


def sockets(lines: Iterable[str], address: str) -> list[tuple[str, int]]:
    """Return address and port of the listeners in a node's state that other machines can reach."""
    matches = (re.fullmatch(r"(\d\S*):(\d+) listens", line) for line in lines)
    places = {(address if match[1] == EVERY else match[1], int(match[2])) for match in matches if match}
    return sorted(place for place in places if not place[0].startswith("127."))


def _parents(path: str) -> Iterable[str]:
    while path := path.rpartition("/")[0]:
        yield path
