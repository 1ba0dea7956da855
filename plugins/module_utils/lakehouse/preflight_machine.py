"""Whether a machine is of the kind that the roles were tested on, and large enough.

Standard library only, and Python 3.9: this runs on the nodes. ``root`` is the top of their file system.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path, PurePosixPath
from typing import Any

from ansible.module_utils.lakehouse.findings import finding

MIB = 1024 * 1024


def release(root: Path) -> str:
    """Return the operating system as ``<ID>-<VERSION_ID>`` of os-release(5), such as debian-13."""
    fields = {}
    for name in ("etc/os-release", "usr/lib/os-release"):
        path = root / name
        if path.is_file():
            pairs = (
                line.split("=", 1) for line in path.read_text(encoding="utf-8").splitlines() if "=" in line
            )
            fields = {key: value.strip("\"'") for key, value in pairs}
            break
    return f"{fields.get('ID', 'unknown')}-{fields.get('VERSION_ID', 'unknown')}"


def check_kind(root: Path, supported_os: list[str], architectures: list[str]) -> list[dict[str, str]]:
    """Check the operating system, its architecture, and that systemd runs it."""
    findings = []
    if release(root) not in supported_os:
        advice = "install a supported system; add yours to node_supported_os only to try it"
        findings.append(finding("os.release", f"runs {release(root)}", advice, " or ".join(supported_os)))
    if platform.machine() not in architectures:
        advice = "use another machine: the Java packages are looked for under these architectures"
        findings.append(finding("os.architecture", platform.machine(), advice, " or ".join(architectures)))
    init = (root / "proc/1/comm").read_text(encoding="utf-8").strip()
    if init != "systemd":
        advice = "boot the machine with systemd: every daemon is one of its units"
        findings.append(finding("os.init", f"process 1 is {init}", advice, "systemd"))
    return findings


def memory_mb(root: Path) -> int:
    """Return the memory that the machine may use: what it has, or the limit of its control group if lower."""
    return min([_memory(root), *_group_limits(root)]) // MIB


def facts(root: Path) -> dict[str, Any]:
    """Return what sizes follow from, under the names that Ansible's own facts have."""
    return {
        "memtotal_mb": _memory(root) // MIB,
        "processor_vcpus": os.cpu_count(),
        "architecture": os.uname().machine,
    }


def _memory(root: Path) -> int:
    for line in (root / "proc/meminfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return 0


def _group_limits(root: Path) -> list[int]:
    """Read the memory limits above process 1, in control groups of version 2 and 1 (cgroups(7))."""
    limits = []
    for line in (root / "proc/1/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, group = line.split(":", 2)
        if not controllers:
            top, name = root / "sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            top, name = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        for folder in (PurePosixPath(group), *PurePosixPath(group).parents):
            path = top / str(folder).lstrip("/") / name
            value = path.read_text(encoding="utf-8").strip() if path.is_file() else "max"
            if value.isdigit():
                limits.append(int(value))
    return limits


def check_memory(root: Path, minimum_mb: int) -> list[dict[str, str]]:
    """Check that the daemons have room to run."""
    memory = memory_mb(root)
    if memory >= minimum_mb:
        return []
    advice = "give the machine more memory, or lower node_min_memory_mb"
    return [finding("node.memory", f"{memory} MiB of memory", advice, f"at least {minimum_mb} MiB")]


def check_disk(root: Path, paths: list[str], minimum_mb: int) -> list[dict[str, str]]:
    """Check the free space of every file system that data will be on, each once."""
    findings = []
    devices = set()
    for path in paths:
        place = root / path.lstrip("/")
        while not place.exists():
            place = place.parent
        device = place.stat().st_dev
        if device in devices:
            continue
        devices.add(device)
        status = os.statvfs(place)
        free = status.f_bavail * status.f_frsize // MIB
        if free < minimum_mb:
            advice = "free some space, choose another directory, or lower node_min_disk_mb"
            fact = f"{free} MiB are free on the file system of {path}"
            findings.append(finding("node.disk", fact, advice, f"at least {minimum_mb} MiB"))
    return findings
