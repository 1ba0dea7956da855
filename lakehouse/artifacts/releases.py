"""Build the archive of a component: a tree described in `versions.yml`, with the same bytes everywhere."""

from __future__ import annotations

import fnmatch
import io
import tarfile
import time
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO

from lakehouse.artifacts import FETCH_COMMAND, compiling
from lakehouse.artifacts.cache import Cache, translated_disk_errors
from lakehouse.artifacts.manifest import Artifact, Component, Layer, Manifest
from lakehouse.artifacts.seals import Seal, look, sha256_of
from lakehouse.errors import LakehouseError
from plugins.module_utils.lakehouse.counting import counted

DIGEST_LENGTH = 12
CHUNK = 1 << 20


def release_id(component: Component) -> str:
    """`<version>-<digest>`: the name of the release on a node; needs no file of the component."""
    return f"{component.version}-{component.digest[:DIGEST_LENGTH]}"


def archive(component: Component, cache: Cache) -> Path:
    """Where the component's archive lies, or would lie."""
    return cache.releases / f"{component.name}-{release_id(component)}.tar"


def digest(component: Component, cache: Cache) -> str | None:
    """The sha256 of the component's archive as this computer built it; None if another lies there."""
    return cache.seals.sha256(archive(component, cache))


def ensure(manifest: Manifest, name: str, cache: Cache, log: Callable[[str], None] = lambda _: None) -> Path:
    """Return the component's archive, built if it is not there, or not from this computer's verified files.

    It is uncompressed, owned by root, without times, and complete whenever it exists. Raises LakehouseError
    if files are missing from the cache or the disk is full.
    """
    component = manifest.component(name)
    if digest(component, cache) is None:
        with translated_disk_errors(cache.root), cache.exclusive(log):
            if digest(component, cache) is None:  # another process may have built it meanwhile
                _build(component, cache, log)
    return archive(component, cache)


def verified(
    manifest: Manifest, name: str, cache: Cache, log: Callable[[str], None] = lambda _: None
) -> Path:
    """As `ensure`, for who puts the archive to use: it is read to its end, and a bad one is built again."""
    target = ensure(manifest, name, cache, log)
    with translated_disk_errors(cache.root), cache.exclusive(log):
        component = manifest.component(name)
        if sha256_of(target) != digest(component, cache):
            log(f"{target.name} is not what was built")
            _build(component, cache, log)
    return target


def _build(component: Component, cache: Cache, log: Callable[[str], None]) -> None:
    started = time.monotonic()
    artifacts = list(component.artifacts)
    if missing := cache.missing(artifacts):
        raise LakehouseError(
            f"{component.name}: {len(missing)} of {counted(len(artifacts), 'file')} are not in {cache.root}, "
            f"first {missing[0].coordinate}",
            FETCH_COMMAND,
        )
    cache.require_space(2 * sum(artifact.size for artifact in artifacts), f"the {component.name} release")
    target = archive(component, cache)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{component.name}.part")
    try:
        with tarfile.open(part, "w", format=tarfile.GNU_FORMAT) as tar:
            tree = _Tree(tar)
            for layer in component.layers:
                for member in _members(component, layer, cache, log):
                    tree.add(member)
        sha256 = sha256_of(part)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    seal = Seal(look(target), sha256)
    cache.seals.add({cache.seals.key(target): seal})
    log(f"{target.name} ({seal.look.size >> 20} MB) built in {time.monotonic() - started:.1f} s")


@dataclass(frozen=True)
class _Member:
    """A file on its way from an archive into the release; the stream can be read once, now.

    `links` are the other names of the same content: hard links of a tarball, and of the release.
    """

    path: PurePosixPath
    size: int
    executable: bool
    stream: IO[bytes]
    links: tuple[PurePosixPath, ...] = ()

    def at(self, path: PurePosixPath, *links: PurePosixPath) -> _Member:
        return replace(self, path=path, links=links)


class _Tree:
    """The release tar being written: adds parent folders, refuses two files with one name."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._seen: set[PurePosixPath] = {PurePosixPath()}

    def add(self, member: _Member) -> None:
        info = self._place(member.path, member.executable)
        info.size = member.size
        self._tar.addfile(info, member.stream)
        for link in member.links:
            info = self._place(link, member.executable)
            info.type = tarfile.LNKTYPE
            info.linkname = str(member.path)
            self._tar.addfile(info)

    def _place(self, path: PurePosixPath, executable: bool) -> tarfile.TarInfo:
        if path in self._seen:
            raise LakehouseError(
                f"two files of the release are named {path}", "change the layer in versions.yml"
            )
        self._add_folder(path.parent)
        self._seen.add(path)
        info = tarfile.TarInfo(str(path))
        info.mode = 0o755 if executable else 0o644
        info.uname = info.gname = "root"
        return info

    def _add_folder(self, path: PurePosixPath) -> None:
        if path in self._seen:
            return
        self._add_folder(path.parent)
        self._seen.add(path)
        info = tarfile.TarInfo(str(path))
        info.type = tarfile.DIRTYPE
        info.mode = 0o755
        info.uname = info.gname = "root"
        self._tar.addfile(info)


def _members(
    component: Component, layer: Layer, cache: Cache, log: Callable[[str], None]
) -> Iterator[_Member]:
    """Yield everything that a layer contributes."""
    if layer.sources:
        yield _compiled(component, layer, cache, log)
        return
    for artifact in layer.artifacts:
        yield from _placed(layer, artifact, cache.file(artifact))


def _compiled(component: Component, layer: Layer, cache: Cache, log: Callable[[str], None]) -> _Member:
    """Return the jar of a layer's sources, compiled against the jars of the layers before it."""
    assert layer.sources is not None  # noqa: S101 (the caller asked)
    earlier_layers = component.layers[: component.layers.index(layer)]
    with cache.staging() as staging:
        classpath: list[Path] = []
        for member in (
            item for earlier in earlier_layers for item in _members(component, earlier, cache, log)
        ):
            if member.path.suffix == ".jar":
                classpath.append(staging / f"{len(classpath)}-{member.path.name}")
                classpath[-1].write_bytes(member.stream.read())
        content = compiling.jar(layer.sources, cache.file(layer.artifacts[0]), classpath, staging, log)
    path = PurePosixPath(layer.into or "", f"{layer.name}.jar")
    return _Member(path, len(content), False, io.BytesIO(content))


def _placed(layer: Layer, artifact: Artifact, file: Path) -> Iterator[_Member]:
    """Yield the members that an artifact contributes, at their place in the release."""
    if layer.into is not None:
        with file.open("rb") as stream:
            yield _Member(PurePosixPath(layer.into, file.name), artifact.size, False, stream)
    if not layer.unpack:
        return
    read = _read_zip if artifact.coordinate.type in {"jar", "zip", "whl"} else _read_tar
    for member in read(file):
        names = (member.path, *member.links)
        places = [place for name in names if (place := _destination(layer, name)) is not None]
        if not places:
            continue
        if not _any_match(str(member.path), layer.expand):
            yield member.at(*places)
            continue
        for inner in _read_zip(io.BytesIO(member.stream.read())):
            yield inner.at(places[0].parent / inner.path)


def _destination(layer: Layer, path: PurePosixPath) -> PurePosixPath | None:
    """Where the first `unpack` rule that covers `path` puts it; None if no rule does, or one drops it."""
    if _any_match(str(path), layer.drop):
        return None
    for source, target in layer.unpack.items():
        if path.is_relative_to(source):
            return PurePosixPath(target, path.relative_to(source))
    return None


def _read_tar(file: Path) -> Iterator[_Member]:
    """Yield the files of a compressed tarball in their order, without its top folder.

    A first pass collects the hard links: the content stands under the first name alone, and that is often
    one that the release does not keep.
    """
    links: dict[str, list[PurePosixPath]] = defaultdict(list)
    with tarfile.open(file, "r|*", bufsize=CHUNK) as tar:
        for info in tar:
            if info.islnk():
                links[info.linkname].append(_inner(info.name, file))
    with tarfile.open(file, "r|*", bufsize=CHUNK) as tar:
        for info in tar:
            if not info.isfile():
                continue
            stream = tar.extractfile(info)
            assert stream is not None  # noqa: S101 (it is a regular file)
            names = (_inner(info.name, file), *links[info.name])
            yield _Member(names[0], info.size, bool(info.mode & 0o100), stream, names[1:])


def _inner(name: str, file: Path) -> PurePosixPath:
    """The path of a tarball's member without the top folder."""
    return _safe(PurePosixPath(*PurePosixPath(name).parts[1:]), file.name)


def _read_zip(file: Path | IO[bytes]) -> Iterator[_Member]:
    """Yield the files of a zip or jar in their order."""
    with zipfile.ZipFile(file) as archive_:
        for info in archive_.infolist():
            if info.is_dir():
                continue
            with archive_.open(info) as stream:
                yield _Member(_safe(PurePosixPath(info.filename), "zip"), info.file_size, False, stream)


def _safe(path: PurePosixPath, origin: str) -> PurePosixPath:
    if path.is_absolute() or ".." in path.parts:
        raise LakehouseError(f"{origin}: member {path} points outside of the archive")
    return path


def _any_match(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)
