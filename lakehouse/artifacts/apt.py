"""Where this computer gets its Debian packages from, so that its nodes use the same mirrors and proxies."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable

# What a small Debian server has. What the services need (Java, PostgreSQL) is the roles' business.
BARE_MACHINE = (
    "ca-certificates",
    "dbus",
    "iproute2",
    "openssh-server",
    "procps",
    "python3",
    "python3-apt",
    "sudo",
    "systemd",
    "systemd-sysv",
)
# The pockets of a release, by what follows its name; the empty one is the release itself.
_RELEASE = re.compile(r"(?P<name>[a-z]+)(?P<pocket>|-updates|-security)$")
_SETTINGS = re.compile(
    r"^Acquire::(https?::Proxy(::\S+)?|Check-Valid-Until|Check-Date|Retries) ", re.MULTILINE
)
_PROXY = re.compile(r'^Acquire::(https?)::Proxy "(.+)";$')


def sources(suite: str) -> list[str]:
    """Return one-line apt sources for `suite` on this computer's own mirrors; none if it is not a Debian."""
    targets = _output(
        "apt-get",
        "indextargets",
        "--format",
        "$(ORIGIN) $(COMPONENT) $(RELEASE) $(REPO_URI)",
        "Created-By: Packages",
    )
    return derive_sources(suite, targets)


def settings() -> list[str]:
    """Return the `Acquire::` lines on reaching mirrors: proxies, retries, what to believe of their clock."""
    return derive_settings(_output("apt-config", "dump"))


def derive_sources(suite: str, targets: str) -> list[str]:
    """Translate `origin component release uri` lines into sources of another release."""
    lines: dict[str, None] = {}
    for target in targets.splitlines():
        origin, component, release, uri = target.split(maxsplit=3)
        match = _RELEASE.match(release)
        if origin == "Debian" and component == "main" and match:
            lines[f"deb {uri} {suite}{match['pocket']} main"] = None
    # Without the release itself its updates are no use: then the tool's own default is better.
    return list(lines) if any(f" {suite} main" in line for line in lines) else []


def derive_settings(dump: str) -> list[str]:
    """Pick the settings out of the output of `apt-config dump`, without those that are empty."""
    return [line for line in dump.splitlines() if _SETTINGS.match(line) and not line.endswith(' "";')]


def proxies() -> dict[str, str]:
    """Return the variables by which apt finds this computer's proxies inside a container."""
    return derive_proxies(settings())


def derive_proxies(lines: Iterable[str]) -> dict[str, str]:
    """Return the variables of the settings with a proxy for all hosts."""
    matches = [match for match in map(_PROXY.match, lines) if match]
    return {f"{match[1]}_proxy": match[2] for match in matches}


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except (FileNotFoundError, subprocess.CalledProcessError):
        # No apt here, or no package lists: there is nothing to take over.
        return ""
