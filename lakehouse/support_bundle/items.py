"""The contents of a bundle for a host: commands, files, and daemons whose threads are dumped. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from lakehouse.model import placement
from lakehouse.model import services as catalogue
from lakehouse.model.inventory import Host
from lakehouse.model.placement import Cluster
from lakehouse.model.services import Service
from lakehouse.status import questions

# Lines of each journal; bytes of each file and command output; timeout of a command.
LINES, BYTES, SECONDS = 2000, 1 << 20, 15.0
# Services that do not run in a JVM.
_NO_JVM = {"postgresql"}
_PROPERTIES = (
    "Id", "ActiveState", "SubState", "Result", "NRestarts", "ExecMainStartTimestamp", "MemoryCurrent",
)  # fmt: skip
_UNIT_FILES = ("/etc/systemd/system/{unit}.service", "/etc/systemd/system/{unit}.service.d/*")
# Configuration of the kit's own programs.
# Not Alertmanager's: the addresses of receivers have tokens in them.
_KIT_PATTERNS = ("lakehouse-*", "lakehouse*/**/[!a]*", "lakehouse*/**/a[!l]*")
# Configuration of PostgreSQL.
_OF_PACKAGES = ("/etc/postgresql/*/*/conf.d/*.conf", "/etc/postgresql/*/*/pg_hba.conf")
# Files with passwords, which are read first and then masked everywhere.
_SECRETS = ("/root/.pgpass", "/home/*/.pgpass", "/var/lib/postgresql/.pgpass", "/etc/environment")


def request(cluster: Cluster, host: Host, lines: int = LINES, most: int = BYTES) -> dict[str, Any]:
    """Return the request for the collector. Journals come before the thread dumps that fill them."""
    services = cluster.services[host.name]
    journals = {
        f"journal/{placement.unit(service)}.txt": journal(f"-u {shlex.quote(placement.unit(service))}", lines)
        for service in services
    }
    return {
        "shell": dict(_machine(host))
        | dict(_units(services))
        | journals
        | {"journal/kernel.txt": journal("-k", lines)},
        "files": {"root": [*secret_files(host), *configuration(host, services)], **_logs(host, services)},
        "threads": [placement.unit(service) for service in services if service.name not in _NO_JVM],
        "bytes": most,
        "seconds": SECONDS,
    }


def secrets(host: Host) -> dict[str, Any]:
    """Return the request for the files with secrets only."""
    return {
        "shell": {},
        "files": {"root": secret_files(host)},
        "threads": [],
        "bytes": BYTES,
        "seconds": SECONDS,
    }


def secret_files(host: Host) -> list[str]:
    """Return the files in which every value is a secret."""
    return [f"{host.variables['lakehouse_config_dir']}/*/*.env", *_SECRETS]


def configuration(host: Host, services: tuple[Service, ...]) -> list[str]:
    """Return the patterns of the kit's configuration, of Debian's packages, and of the services' units."""
    units = [path.format(unit=placement.unit(service)) for service in services for path in _UNIT_FILES]
    config = host.variables["lakehouse_config_dir"]
    # By default that is /etc, which also has files that are not the kit's: accounts, keys.
    released_roles = [row.role for row in catalogue.load().services.values() if row.release]
    names = dict.fromkeys([*placement.bill()["components"], *released_roles])
    patterns = [f"{name.replace('_', '-')}/**/*" for name in names]
    return [*(f"{config}/{pattern}" for pattern in (*patterns, *_KIT_PATTERNS)), *_OF_PACKAGES, *units]


def journal(selection: str, lines: int) -> str:
    """Return the command that prints the end of a journal, in UTC."""
    return f"journalctl -q --no-pager --utc -o short-iso-precise -n {lines} {selection}"


def _logs(host: Host, services: tuple[Service, ...]) -> dict[str, list[str]]:
    """Return the log files by the account that reads them: one may be a link to a file of root."""
    paths_by_account: dict[str, list[str]] = {}
    for service in services:
        if paths := placement.logs(service, host):
            paths_by_account.setdefault(placement.account(service, host), []).extend(paths)
    return paths_by_account


def _machine(host: Host) -> Iterator[tuple[str, str]]:
    links = f"{shlex.quote(str(host.variables['lakehouse_install_dir']))}/*/current"
    folders = shlex.join(questions.folders(host))
    yield "machine/system.txt", "uname -a; cat /etc/os-release; uptime; nproc; python3 --version"
    yield (
        "machine/versions.txt",
        (
            f'for link in {links}; do [ -L "$link" ] && echo "$link $(readlink "$link")"; done; '
            "dpkg-query -W 'openjdk-*' 'postgresql-*' systemd 2>/dev/null | grep -v '\t$'"
        ),
    )
    yield (
        "machine/memory.txt",
        "free -m; cat /proc/meminfo; ps -eo pid,user,rss,pcpu,etime,comm --sort=-rss | head -40",
    )
    yield "machine/disk.txt", f"df -h; df -i; findmnt -D; du -sx {folders} 2>/dev/null"
    yield "machine/clock.txt", "date -u +%FT%T.%NZ; timedatectl; chronyc tracking 2>/dev/null; true"
    yield "machine/network.txt", "ip -brief address; ss -s; ss -ltn; cat /etc/hosts"


def _units(services: tuple[Service, ...]) -> Iterator[tuple[str, str]]:
    units = shlex.join(f"{placement.unit(service)}.service" for service in services)
    yield "units/states.txt", f"systemctl --no-pager --full -n 0 status {units}; true"
    yield "units/failed.txt", "systemctl --no-pager --failed --all"
    yield (
        "units/properties.txt",
        f"systemctl show --property={','.join(_PROPERTIES)} {units}",
    )
