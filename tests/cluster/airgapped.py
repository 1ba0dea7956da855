"""A control machine as a container, on a network of its own that leads nowhere."""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import docker
import yaml
from docker.models.containers import Container
from docker.types import IPAMConfig, IPAMPool

from lakehouse import run
from lakehouse.local.nodes import docker_api, image

CLUSTER = "kit-airgap"
SUBNET = "172.31.8"
INVENTORY = "inventory/airgap"
HOME = "/lakehouse"
SOCKET = "/var/run/docker.sock"
# What tells pip and Maven of this computer where their mirrors are, and whom to trust.
_VARIABLES = re.compile(r"PIP_|MAVEN_|(https?|no)_proxy$|SSL_CERT|REQUESTS_CA", re.IGNORECASE)
_SETTINGS = ("/etc/pip.conf", "~/.config/pip/pip.conf", "~/.m2/settings.xml")


@dataclass(frozen=True)
class Control:
    """A bare Debian with `make` and a checkout; its Docker is this computer's."""

    container: Container

    def run(self, *command: str, environment: Mapping[str, str] | None = None) -> tuple[int, str]:
        """Return the exit code of a command in the checkout, and all that it says."""
        done = self.container.exec_run([*command], workdir=HOME, environment=dict(environment or {}))
        return done.exit_code or 0, cast(bytes, done.output).decode(errors="replace")

    def install(self, *words: str, environment: Mapping[str, str] | None = None) -> tuple[float, str]:
        """Run `make lakehouse` of the small profile; return the seconds to its services, and what it says.

        The image of the nodes is made anew.
        """
        client, own = docker.from_env(), self.container.attrs["Config"]["Image"]
        for each in client.images.list(image.REPOSITORY):
            for tag in {*each.tags} - {own}:
                client.images.remove(tag, force=True)
        client.close()
        words = ("PROFILE=core", f"INVENTORY={INVENTORY}", *words)
        code, said = self.run("make", "lakehouse", *words, environment=environment)
        assert not code, said[-4000:]
        phases = json.loads(self.run("cat", "build/report/phases.json")[1])
        ended = {phase["name"]: phase["started"] + phase["seconds"] for phase in phases}
        return ended["converge"] - min(phase["started"] for phase in phases), said


@contextmanager
def control(
    client: docker.DockerClient, mounts: Mapping[Path, str], *, internal: bool = True
) -> Iterator[Control]:
    """Make the network and the machine, with folders and files of this computer; remove both, and its nodes.

    The network has the nodes' own label, so they are put there. An ``internal`` one has no gateway.
    """
    remove(client)
    suite = platform.freedesktop_os_release()["VERSION_CODENAME"]
    reference = image.ensure(client, suite, print, "make")
    network = client.networks.create(
        CLUSTER,
        driver="bridge",
        internal=internal,
        labels={docker_api.LABEL: CLUSTER},
        ipam=IPAMConfig(pool_configs=[IPAMPool(subnet=f"{SUBNET}.0/24")]),
    )
    try:
        made = client.containers.create(
            reference,
            ["sleep", "infinity"],
            init=True,
            name=f"{CLUSTER}-control",
            network=network.name,
            volumes=[f"{SOCKET}:{SOCKET}", *(f"{here}:{there}:ro" for here, there in mounts.items())],
            # As mmdebstrap needs it, which mounts and changes roots.
            cap_add=["SYS_ADMIN"],
            security_opt=["seccomp=unconfined", "apparmor=unconfined"],
        )
        made.put_archive("/", checkout())
        made.start()
        yield Control(made)
    finally:
        remove(client)


def mirrors() -> tuple[dict[Path, str], dict[str, str]]:
    """Return the files and the variables by which this computer's pip and Maven find their mirrors."""
    files = {Path(name).expanduser(): name.replace("~", "/root") for name in _SETTINGS}
    said = {name: value for name, value in os.environ.items() if _VARIABLES.match(name)}
    return {here: there for here, there in files.items() if here.is_file()}, said


def remove(client: docker.DockerClient) -> None:
    """Remove the machine, its nodes and the network, of any run."""
    found = client.containers.list(all=True, filters={"name": f"^{CLUSTER}-"})
    for each in found:
        each.remove(force=True, v=True)
    docker_api.remove_networks(client, CLUSTER)


def checkout() -> bytes:
    """Return this checkout as a tar archive, with an inventory of its own: that of three local nodes."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=run.ROOT, check=True, capture_output=True, text=True,
    ).stdout.rstrip("\0").split("\0")  # fmt: skip
    local = "inventory/local/"
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name in filter(lambda name: (run.ROOT / name).is_file(), listed):
            tar.add(run.ROOT / name, f"{HOME}/{name}")
            if name.startswith(local):
                text = (run.ROOT / name).read_text(encoding="utf-8").replace("172.28.0.", f"{SUBNET}.")
                _add(tar, f"{HOME}/{INVENTORY}/{name.removeprefix(local)}", text)
        own = {"lakehouse_cluster": CLUSTER, "lakehouse_cluster_id": f"CID-{CLUSTER}"}
        _add(tar, f"{HOME}/{INVENTORY}/group_vars/all/zz-own.yml", yaml.safe_dump(own))
    return archive.getvalue()


def _add(tar: tarfile.TarFile, name: str, text: str) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(text.encode())
    tar.addfile(info, io.BytesIO(text.encode()))


def altered(bundle: Path, target: Path, suffix: str, *, listed: bool) -> str:
    """Write a copy of a bundle in which one byte of one file is another; return that file's path.

    Where it is ``listed``, the bundle's own list of checksums says that this is right.
    """
    shutil.copyfile(bundle, target)
    with tarfile.open(bundle) as archive:
        member = next(each for each in archive if each.name.endswith(suffix))
        sums = archive.getmember("SHA256SUMS")
        content = bytearray(archive.extractfile(member).read())  # type: ignore[union-attr]
    before = hashlib.sha256(content).hexdigest()
    content[len(content) // 2] ^= 1
    with target.open("r+b") as stream:
        stream.seek(member.offset_data)
        stream.write(content)
        if listed:
            stream.seek(sums.offset_data)
            text = stream.read(sums.size).decode().replace(before, hashlib.sha256(content).hexdigest())
            stream.seek(sums.offset_data)
            stream.write(text.encode())
    return member.name
