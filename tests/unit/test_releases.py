"""Release archives: the tree that versions.yml describes, in the same bytes, complete or not there."""

from __future__ import annotations

import gzip
import hashlib
import io
import shutil
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from lakehouse.artifacts import manifest, releases
from lakehouse.artifacts.cache import Cache
from lakehouse.artifacts.manifest import Manifest
from lakehouse.artifacts.seals import Seal, look
from lakehouse.errors import LakehouseError

LAYERS = {
    "archive": """{from: ["dist==1"], unpack: {bin: sbin, src/lib: lib, NOTICE: NOTICE},
                   drop: ["*.cmd", "src/lib/driver-*.jar"]}""",
    "web": """{from: ["g:web:1"], unpack: {webapps: webapps}}""",
    "data": """{from: ["data==1"], unpack: {pkg/data: .}, expand: ["*.zip"]}""",
    "jars": """{from: ["g:one:1", "g:two:1"], into: lib}""",
}
EXECUTABLE = 0o755


def tarball(files: Mapping[str, bytes], *, executable: tuple[str, ...] = (), mtime: int = 1) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(f"top-1/{name}")
            info.size, info.mtime, info.uid, info.uname = len(content), mtime, 1000, "someone"
            info.mode = EXECUTABLE if name in executable else 0o600
            tar.addfile(info, io.BytesIO(content))
    return gzip.compress(raw.getvalue(), mtime=0)


def zipped(files: Mapping[str, bytes]) -> bytes:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return raw.getvalue()


FILES = {
    "dist==1": tarball(
        {
            "bin/start": b"#!/bin/sh\n",
            "bin/start.cmd": b"rem",
            "src/lib/a.jar": b"a",
            "src/lib/driver-9.jar": b"old",
            "src/other": b"not asked for",
            "NOTICE": b"notice",
        },
        executable=("bin/start",),
    ),
    "g:web:1": zipped({"webapps/": b"", "webapps/hdfs/dfs.js": b"js", "META-INF/MANIFEST.MF": b"m"}),
    "data==1": tarball({"pkg/data/small.csv": b"s", "pkg/data/big.csv.zip": zipped({"big.csv": b"big"})}),
    "g:one:1": b"one",
    "g:two:1": b"two",
}


def bill_of(tmp_path: Path, files: Mapping[str, bytes], layers: Mapping[str, str]) -> tuple[Manifest, Cache]:
    """A bill with one component `app` of these layers, and a cache that holds the files it asks for."""
    lines = ['versions: {app: "1"}', "debian: {suite: trixie, packages: {}}", "pairs: []", "licences: {}"]
    lines += ["components:", "  app:", "    layers:"]
    lines += [f"      {name}: {rule}" for name, rule in layers.items()]
    lines += ["lock:", "  app:"]
    for name, rule in layers.items():
        lines.append(f"    {name}:")
        for coordinate, content in files.items():
            if f'"{coordinate}"' in rule:
                sha256 = hashlib.sha256(content).hexdigest()
                pin = f'sha256: "{sha256}", bytes: {len(content)}'
                lines.append(f'      - {{coordinate: "{coordinate}", {pin}, licence: MIT}}')
    path = tmp_path / "versions.yml"
    path.write_text("\n".join(lines), encoding="utf-8")
    bill = manifest.load(path)
    cache = Cache(tmp_path / "cache")
    for artifact in bill.artifacts():
        target = cache.file(artifact)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(files[str(artifact.coordinate)])
    return bill, cache


def tree(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:
        return {info.name: stream.read() for info in tar if (stream := tar.extractfile(info))}


def test_the_tree_is_what_the_layers_say(tmp_path: Path) -> None:
    archive = releases.ensure(*_app(tmp_path))
    assert tree(archive) == {
        "sbin/start": b"#!/bin/sh\n",
        "lib/a.jar": b"a",
        "NOTICE": b"notice",
        "webapps/hdfs/dfs.js": b"js",
        "small.csv": b"s",
        "big.csv": b"big",
        "lib/one-1.jar": b"one",
        "lib/two-1.jar": b"two",
    }


def test_a_file_may_lie_in_the_release_and_be_unpacked_too(tmp_path: Path) -> None:
    layer = """{from: ["g:engine:1"], into: jars, unpack: {pkg: python/pkg}, drop: [pkg/tests/*]}"""
    jar = zipped({"pkg/tables.py": b"t", "pkg/tests/test.py": b"x", "Engine.class": b"c"})
    bill, cache = bill_of(tmp_path, {"g:engine:1": jar}, {"both": layer})
    assert tree(releases.ensure(bill, "app", cache)) == {
        "jars/engine-1.jar": jar,
        "python/pkg/tables.py": b"t",
    }


def test_members_belong_to_root_and_have_no_time(tmp_path: Path) -> None:
    with tarfile.open(releases.ensure(*_app(tmp_path))) as tar:
        members = {info.name: info for info in tar}
    assert {(info.uid, info.gid, info.uname, info.gname, info.mtime) for info in members.values()} == {
        (0, 0, "root", "root", 0)
    }
    assert {name for name, info in members.items() if info.isdir()} == {
        "sbin",
        "lib",
        "webapps",
        "webapps/hdfs",
    }
    modes = {name: info.mode for name, info in members.items() if info.isfile()}
    assert modes.pop("sbin/start") == EXECUTABLE
    assert set(modes.values()) == {0o644}


def test_a_rebuild_gives_the_same_bytes(tmp_path: Path) -> None:
    bill, name, cache = _app(tmp_path)
    archive = releases.ensure(bill, name, cache)
    first = archive.read_bytes()
    archive.unlink()
    assert releases.ensure(bill, name, cache).read_bytes() == first


def test_an_archive_that_exists_is_not_built_again(tmp_path: Path) -> None:
    bill, name, cache = _app(tmp_path)
    archive = releases.ensure(bill, name, cache)
    for artifact in bill.artifacts():
        cache.file(artifact).unlink()
    assert releases.ensure(bill, name, cache) == archive


def test_what_lies_there_and_was_not_built_here_is_built(tmp_path: Path) -> None:
    bill, name, cache = _app(tmp_path)
    component = bill.component(name)
    stranger = releases.archive(component, cache)
    stranger.parent.mkdir(parents=True)
    stranger.write_bytes(b"not a tar at all")
    assert releases.digest(component, cache) is None
    archive = releases.ensure(bill, name, cache)
    assert archive == stranger
    assert "sbin/start" in tree(archive)
    assert releases.digest(component, cache) == hashlib.sha256(archive.read_bytes()).hexdigest()


def test_a_copied_cache_has_no_releases(tmp_path: Path) -> None:
    bill, name, cache = _app(tmp_path)
    releases.ensure(bill, name, cache)
    copy = Cache(tmp_path / "copy")
    shutil.copytree(cache.root, copy.root)
    assert releases.digest(bill.component(name), copy) is None


def test_an_archive_is_read_before_its_use_and_a_bad_one_is_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk may give other bytes than it took, and no time of the file tells."""
    bill, name, cache = _app(tmp_path)
    archive = releases.ensure(bill, name, cache)
    good = archive.read_bytes()
    seal = cache.seals.known()[cache.seals.key(archive)]
    archive.write_bytes(good[:-1] + b"X")
    cache.seals.add({cache.seals.key(archive): Seal(look(archive), seal.sha256)})
    assert releases.ensure(bill, name, cache).read_bytes() != good
    said: list[str] = []
    assert releases.verified(bill, name, cache, said.append).read_bytes() == good
    assert said[0] == f"{archive.name} is not what was built"
    monkeypatch.setattr(releases, "_build", lambda *_: pytest.fail("a good archive was built again"))
    releases.verified(bill, name, cache)


def test_the_release_id_needs_no_file_and_names_the_archive(tmp_path: Path) -> None:
    bill, _, cache = _app(tmp_path)
    component = bill.component("app")
    identity = releases.release_id(component)
    assert identity == f"1-{component.digest[:12]}"
    assert releases.archive(component, cache).name == f"app-{identity}.tar"


def test_a_missing_or_damaged_file_says_what_to_run_and_leaves_nothing(tmp_path: Path) -> None:
    bill, name, cache = _app(tmp_path)
    damaged = cache.file(bill.component("app").artifacts[0])
    damaged.write_bytes(damaged.read_bytes()[:-5])
    with pytest.raises(
        LakehouseError, match=r"app: 1 of 5 files are not in .*, first dist==1; next: .* fetch"
    ):
        releases.ensure(bill, name, cache)
    assert not damaged.exists()
    assert not cache.releases.exists()


def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bill, name, cache = _app(tmp_path)

    def no_space(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tarfile.TarFile, "addfile", no_space)
    with pytest.raises(LakehouseError, match=r"disk full: cannot write to .*; next: free some space"):
        releases.ensure(bill, name, cache)
    assert list(cache.releases.iterdir()) == []


def test_two_files_with_one_name_are_refused(tmp_path: Path) -> None:
    layers = {"a": '{from: ["g:one:1"], into: lib}', "b": '{from: ["twin==1"], unpack: {lib: lib}}'}
    files = {"g:one:1": b"one", "twin==1": tarball({"lib/one-1.jar": b"other"})}
    bill, cache = bill_of(tmp_path, files, layers)
    with pytest.raises(LakehouseError, match=r"two files of the release are named lib/one-1\.jar"):
        releases.ensure(bill, "app", cache)
    assert list(cache.releases.iterdir()) == []


def test_a_member_outside_of_the_archive_is_refused(tmp_path: Path) -> None:
    files = {"evil==1": tarball({"../../etc/passwd": b"x"})}
    bill, cache = bill_of(tmp_path, files, {"a": '{from: ["evil==1"], unpack: {.: .}}'})
    with pytest.raises(LakehouseError, match="points outside"):
        releases.ensure(bill, "app", cache)


def linked() -> bytes:
    """A tarball in which the plugins share files; the first name of each belongs to one that is left out."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for name, content in {"plugin/far/shared.jar": b"shared", "plugin/far/own.jar": b"own"}.items():
            info = tarfile.TarInfo(f"top-1/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        for name, target in (("near", "shared"), ("next", "shared")):
            info = tarfile.TarInfo(f"top-1/plugin/{name}/{target}.jar")
            info.type, info.linkname = tarfile.LNKTYPE, f"top-1/plugin/far/{target}.jar"
            tar.addfile(info)
    return gzip.compress(raw.getvalue(), mtime=0)


def test_hard_links_stay_even_without_their_first_name(tmp_path: Path) -> None:
    layer = """{from: ["dist==1"], unpack: {plugin/near: plugin/near, plugin/next: plugin/next}}"""
    bill, cache = bill_of(tmp_path, {"dist==1": linked()}, {"server": layer})
    archive = releases.ensure(bill, "app", cache)
    assert tree(archive) == {"plugin/near/shared.jar": b"shared", "plugin/next/shared.jar": b"shared"}
    with tarfile.open(archive) as tar:
        assert [info.linkname for info in tar if info.islnk()] == ["plugin/near/shared.jar"]


def _app(tmp_path: Path) -> tuple[Manifest, str, Cache]:
    bill, cache = bill_of(tmp_path, FILES, LAYERS)
    return bill, "app", cache
