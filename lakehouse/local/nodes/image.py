"""The image of a bare Debian machine, built from this computer's own mirrors without a registry."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

import docker
from docker.errors import ImageNotFound

from lakehouse.artifacts import airgap, apt
from lakehouse.errors import LakehouseError

REPOSITORY = "lakehouse-node"

# What is not read on a node. Manual pages stay: without their folders a package that registers alternatives,
# such as Java, cannot be installed.
_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/info/*", "/usr/share/locale/*")
_UNIT = Path(__file__).with_name("node-identity.service")
_AUTHORITIES = Path("/usr/local/share/ca-certificates")
# Where mmdebstrap writes what it was told with --aptopt.
_APT_SETTINGS = "/etc/apt/apt.conf.d/99mmdebstrap"
_APT_SOURCES = "/etc/apt/sources.list"
_UNIT_FOLDER = "/etc/systemd/system"
# By this systemd knows where it runs and leaves the hardware alone.
_CHANGES = ("ENV container=docker",)


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the content of the image, so that its digest names it."""

    suite: str
    sources: tuple[str, ...]
    settings: tuple[str, ...]
    authorities: tuple[tuple[str, str], ...]
    packages: tuple[str, ...] = apt.BARE_MACHINE
    left_out: tuple[str, ...] = _LEFT_OUT
    changes: tuple[str, ...] = _CHANGES
    unit: str = _UNIT.read_text()

    @property
    def tag(self) -> str:
        """The suite and the digest of everything else."""
        canonical = json.dumps(asdict(self), sort_keys=True).encode()
        return f"{self.suite}-{hashlib.sha256(canonical).hexdigest()[:12]}"

    @property
    def reference(self) -> str:
        """Repository and tag of the image."""
        return f"{REPOSITORY}:{self.tag}"


def recipe(suite: str, *added: str) -> Recipe:
    """Return the recipe for this computer: its mirrors, its proxies, the authorities it was told to trust.

    Where a bundle is in use, that is its mirror. `added` are packages beside those that every node has.
    """
    bundle = airgap.folder()
    return Recipe(
        suite=suite,
        sources=tuple(airgap.sources(bundle) if bundle else apt.sources(suite)),
        settings=tuple(apt.settings()),
        authorities=tuple((str(path), path.read_text()) for path in sorted(_AUTHORITIES.rglob("*.crt"))),
        packages=(*apt.BARE_MACHINE, *added),
    )


def ensure(client: docker.DockerClient, suite: str, log: Callable[[str], None], *added: str) -> str:
    """Return the reference of the image for `suite`; build the image if Docker lacks it."""
    image_recipe = recipe(suite, *added)
    try:
        client.images.get(image_recipe.reference)
    except ImageNotFound:
        log(f"making the image {image_recipe.reference} (about half a minute)")
        _make(client, image_recipe)
    return image_recipe.reference


def _make(client: docker.DockerClient, image_recipe: Recipe) -> None:
    with tempfile.TemporaryFile(mode="w+") as errors:
        with _building(image_recipe, errors) as build:
            image = _import(client, build.stdout, image_recipe)
        if build.returncode == 0:
            # Tagged last, so that an interrupted build never counts as a complete image.
            client.api.tag(image, REPOSITORY, image_recipe.tag)
            return
        client.api.remove_image(image)
        errors.seek(0)
        raise LakehouseError(f"the image of Debian {image_recipe.suite} cannot be made: {_reason(errors)}")


@contextmanager
def _building(image_recipe: Recipe, errors: IO[str]) -> Iterator[subprocess.Popen[bytes]]:
    try:
        # In its own session: on failure it sends SIGHUP to its whole process group.
        build = subprocess.Popen(
            command(image_recipe), stdout=subprocess.PIPE, stderr=errors, start_new_session=True
        )
    except FileNotFoundError as error:
        raise LakehouseError("mmdebstrap is not installed", "scripts/bootstrap") from error
    with build:
        try:
            yield build
        except BaseException:
            build.terminate()
            raise


def _import(client: docker.DockerClient, stream: IO[bytes] | None, image_recipe: Recipe) -> str:
    response = client.api.import_image_from_stream(stream, changes=list(image_recipe.changes))
    last = json.loads(response.splitlines()[-1])
    if "error" in last:
        raise LakehouseError(
            f"Docker does not take the image of Debian {image_recipe.suite}: {last['error']}"
        )
    return str(last["status"])


def command(image_recipe: Recipe) -> list[str]:
    """Return the mmdebstrap command that writes the file system as a tar archive to its standard output."""
    hooks = [
        f"upload {_UNIT} {_UNIT_FOLDER}/{_UNIT.name}",
        f'chroot "$1" systemctl --quiet enable {_UNIT.name}',
        # Every node generates its own keys, and does not use this computer's hosts file.
        'rm -f "$1"/etc/ssh/ssh_host_*',
        'install -m 0644 /dev/null "$1"/etc/hosts',
        # A proxy with a password in its URL: every user of the image could read it.
        rf"""sed -i '\|://.*@|d' "$1"{_APT_SETTINGS}""",
        # Sources in a folder of this computer do not exist on the nodes.
        rf"""sed -i '\| copy:/|d' "$1"{_APT_SOURCES}""",
    ]
    if image_recipe.authorities:
        hooks += [f"upload {path} {_AUTHORITIES}/{Path(path).name}" for path, _ in image_recipe.authorities]
        hooks += ['chroot "$1" update-ca-certificates']
    return [
        "mmdebstrap",
        "--quiet",
        "--variant=minbase",
        f"--include={','.join(image_recipe.packages)}",
        "--dpkgopt=force-unsafe-io",
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in image_recipe.left_out),
        '--aptopt=Acquire::Languages "none";',
        *(f"--aptopt={setting}" for setting in image_recipe.settings),
        *(f"--customize-hook={hook}" for hook in hooks),
        image_recipe.suite,
        "-",
        *image_recipe.sources,
    ]


def _reason(complaints: IO[str]) -> str:
    lines = [line.strip() for line in complaints if line.strip()]
    errors = [line for line in lines if line.startswith("E:")]
    return (errors or lines or ["mmdebstrap says nothing"])[0]
