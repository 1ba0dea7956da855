"""What a bundle holds of a host: commands, files, and the daemons whose threads are asked for. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from lakehouse import services as catalogue
from lakehouse.inventory import Host
from lakehouse.services import Service
from ops.status import placement, questions
from ops.status.placement import Cluster

# Of each journal; of each file and each command; and for a command.
LINES, BYTES, SECONDS = 2000, 1 << 20, 15.0
# What every daemon runs as: Debian's PostgreSQL is no JVM.
_NO_JVM = {"postgresql"}
_PROPERTIES = (
    "Id", "ActiveState", "SubState", "Result", "NRestarts", "ExecMainStartTimestamp", "MemoryCurrent",
)  # fmt: skip
_UNIT_FILES = ("/etc/systemd/system/{unit}.service", "/etc/systemd/system/{unit}.service.d/*")
# What the kit's own programs read, below the folder of configuration.
_OWN = ("lakehouse-*", "lakehouse*/**/*")
# What PostgreSQL reads.
_OF_PACKAGES = ("/etc/postgresql/*/*/conf.d/*.conf", "/etc/postgresql/*/*/pg_hba.conf")
# What holds passwords; read first, to know what to look for in everything else.
_SECRETS = ("/root/.pgpass", "/home/*/.pgpass", "/var/lib/postgresql/.pgpass", "/etc/environment")


def request(cluster: Cluster, host: Host, lines: int = LINES, most: int = BYTES) -> dict[str, Any]:
    """Return what the collector is asked for. The journals come before the signals that fill them."""
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
    """Return the request for the files that hold secrets, alone."""
    return {
        "shell": {},
        "files": {"root": secret_files(host)},
        "threads": [],
        "bytes": BYTES,
        "seconds": SECONDS,
    }


def secret_files(host: Host) -> list[str]:
    """Return the files whose every value is a secret."""
    return [f"{host.variables['lakehouse_config_dir']}/*/*.env", *_SECRETS]


def configuration(host: Host, services: tuple[Service, ...]) -> list[str]:
    """Return what the kit has written, what Debian's packages read beside it, and the services' units."""
    units = [path.format(unit=placement.unit(service)) for service in services for path in _UNIT_FILES]
    config = host.variables["lakehouse_config_dir"]
    # By default that is /etc, with much in it that is not the kit's: accounts, keys.
    of_releases = [row.role for row in catalogue.load().services.values() if row.release]
    names = dict.fromkeys([*placement.bill()["components"], *of_releases])
    own = [f"{name.replace('_', '-')}/**/*" for name in names]
    return [*(f"{config}/{one}" for one in (*own, *_OWN)), *_OF_PACKAGES, *units]


def journal(of: str, lines: int) -> str:
    """Return the command that shows the end of a journal, in UTC."""
    return f"journalctl -q --no-pager --utc -o short-iso-precise -n {lines} {of}"


def _logs(host: Host, services: tuple[Service, ...]) -> dict[str, list[str]]:
    """Return the files of services by the account that reads them: it may have linked one to root's."""
    found: dict[str, list[str]] = {}
    for service in services:
        if paths := placement.logs(service, host):
            found.setdefault(placement.account(service, host), []).extend(paths)
    return found


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
