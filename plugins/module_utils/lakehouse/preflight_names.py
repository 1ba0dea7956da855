"""Whether the cluster's names and addresses mean the same on this machine as in the inventory.

A daemon that finds 127.0.1.1 behind its own name listens where no other machine can reach it, and a DataNode
whose address has no name is refused. Standard library only, and Python 3.9: this runs on the nodes.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ansible.module_utils.lakehouse.findings import finding

HOSTS_FILE = "/etc/hosts"
# What the node role writes into the hosts file, and the line of Debian's installer that it takes out.
BLOCK_BEGIN, BLOCK_END = "# BEGIN lakehouse nodes", "# END lakehouse nodes"
INSTALLER_ADDRESS = "127.0.1.1"
LOOPBACK = ("127.", "::1")


# Where cloud-init reads its settings, the last word last: the user data of the machine's maker.
CLOUD_INIT = ("etc/cloud/cloud.cfg", "etc/cloud/cloud.cfg.d/*.cfg", "var/lib/cloud/instance/cloud-config.txt")
CLOUD_INIT_OFF = "etc/cloud/cloud-init.disabled"
REWRITES = re.compile(r"""^manage_etc_hosts:\s*["']?(\w+)""", re.MULTILINE)


class Entry(NamedTuple):
    """A line of the hosts file."""

    number: int
    address: str
    names: list[str]


def parse_hosts(text: str, *, managed: bool) -> list[Entry]:
    """Read a hosts file; with ``managed``, only the lines that the node role will not rewrite."""
    entries = []
    in_block = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() in (BLOCK_BEGIN, BLOCK_END):
            in_block = line.strip() == BLOCK_BEGIN
        words = line.split("#", 1)[0].split()
        if words and not (managed and (in_block or words[0] == INSTALLER_ADDRESS)):
            entries.append(Entry(number, words[0], words[1:]))
    return entries


def is_name_of(host: str, names: list[str]) -> bool:
    """Whether one of the names is the host's, with or without its domain."""
    return host.partition(".")[0] in {name.partition(".")[0] for name in names}


def check_hosts_file(text: str, addresses: dict[str, str]) -> list[dict[str, str]]:
    """Check that no line of the hosts file contradicts the block that the node role will write into it."""
    findings = []
    for entry in parse_hosts(text, managed=True):
        where = f"{HOSTS_FILE} line {entry.number}"
        for name in entry.names:
            expected = addresses.get(name)
            # An IPv6 address beside the IPv4 one is no contradiction, except the loopback one.
            differs = entry.address != expected and (
                "." in entry.address or entry.address.startswith(LOOPBACK)
            )
            if expected and differs:
                fact = f"{where} gives {name} the address {entry.address}"
                findings.append(finding("net.names", fact, f"remove {name} from that line", expected))
        for host, address in addresses.items():
            if entry.address == address and not is_name_of(host, entry.names):
                fact = f"{where} calls {address} {' '.join(entry.names)}"
                findings.append(finding("net.names", fact, f"remove that line, or add {host} to it", host))
    return findings


def forward(name: str) -> list[str]:
    """Return the IPv4 addresses of a name, none if it has none."""
    try:
        return sorted({str(answer[4][0]) for answer in socket.getaddrinfo(name, None, socket.AF_INET)})
    except OSError:
        return []


def backward(address: str) -> list[str]:
    """Return the names of an address, none if it has none."""
    try:
        name, aliases, _ = socket.gethostbyaddr(address)
    except OSError:
        return []
    return [name, *aliases]


def check_resolution(
    text: str,
    addresses: dict[str, str],
    resolve: Callable[[str], list[str]] = forward,
    reverse: Callable[[str], list[str]] = backward,
) -> list[dict[str, str]]:
    """Check that every name leads to its inventory address alone, and that address back to the name.

    ``text`` is the hosts file, to point at the line to correct; the answers may as well come from DNS.
    """
    entries = parse_hosts(text, managed=False)
    findings = []
    for host, address in addresses.items():
        answers = resolve(host)
        if answers != [address]:
            wrong_answers = [answer for answer in answers if answer != address]
            line = next(
                (entry.number for entry in entries if entry.address in wrong_answers and host in entry.names),
                None,
            )
            place = f"{HOSTS_FILE} line {line}" if line else f"DNS or {HOSTS_FILE}"
            fact = f"{host} resolves to {', '.join(answers) or 'nothing'}"
            findings.append(
                finding("net.names", fact, f"correct {place}, or set node_manage_hosts: true", address)
            )
        names = reverse(address)
        if not is_name_of(host, names):
            line = next((entry.number for entry in entries if entry.address == address), None)
            place = f"{HOSTS_FILE} line {line}" if line else "the PTR record in DNS"
            fact = f"{address} resolves back to {', '.join(names) or 'nothing'}"
            findings.append(
                finding("net.names", fact, f"correct {place}, or set node_manage_hosts: true", host)
            )
    return findings


def is_local(address: str) -> bool:
    """Whether an address belongs to a network interface of this machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def check_own_address(address: str, local: Callable[[str], bool] = is_local) -> list[dict[str, str]]:
    """Check that daemons can bind the address that the inventory gives this machine."""
    if local(address):
        return []
    advice = "set ansible_host to the address of an interface (ip -brief address)"
    return [finding("net.address", f"no interface of this machine has {address}", advice, "an own address")]


def check_cloud_init(root: Path) -> list[dict[str, str]]:
    """Check that cloud-init does not rewrite the hosts file at every boot."""
    if (root / CLOUD_INIT_OFF).exists():
        return []
    settings = [
        (path, match[1].lower())
        for pattern in CLOUD_INIT
        for path in sorted(root.glob(pattern))
        for match in REWRITES.finditer(path.read_text(encoding="utf-8", errors="replace"))
    ]
    if not settings or settings[-1][1] in ("false", "no", "off"):
        return []
    path, value = f"/{settings[-1][0].relative_to(root)}", settings[-1][1]
    fact = f"{path} says manage_etc_hosts: {value}, so the next boot writes {HOSTS_FILE} anew"
    if path.startswith("/etc/"):
        advice = "echo 'manage_etc_hosts: false' > /etc/cloud/cloud.cfg.d/99-lakehouse.cfg"
    else:
        advice = f"correct the machine's user data, or switch cloud-init off: touch /{CLOUD_INIT_OFF}"
    return [finding("net.cloud_init", fact, advice, "manage_etc_hosts: false")]
