"""A bundle: what is in it, what vouches for it, and that nothing else gets out of it."""

from __future__ import annotations

import hashlib
import io
import os
import platform
import shutil
import subprocess
import tarfile
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from lakehouse import artifacts, run, verbs
from lakehouse.artifacts import airgap, apt
from lakehouse.artifacts.airgap import debian, licences, writing
from lakehouse.artifacts.cache import Cache
from lakehouse.artifacts.coordinates import Coordinate
from lakehouse.artifacts.manifest import Artifact
from lakehouse.errors import LakehouseError
from lakehouse.local.nodes import image

JAR, WHEEL = b"the content of a jar", b"the content of a wheel"
JAR_PATH, WHEEL_PATH = "artifacts/maven/org/a/1/a-1.jar", "wheels/b-1-py3-none-any.whl"
RELEASE = "dists/{suite}/main/binary-{machine}/Packages"
COPY_AGAIN = "; next: copy the bundle again, or make bundle once more"
THIS_VERSION = "; next: make bundle, where there is a network, with this version of the kit"


class Kit:
    """A checkout of which there is the script and what is locked, and a bundle for it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.script = root / "kit" / "scripts" / "unpack-bundle"
        self.script.parent.mkdir(parents=True)
        shutil.copy(run.ROOT / "scripts" / "unpack-bundle", self.script)
        (root / "kit" / "requirements").mkdir()
        (root / "kit" / "versions.yml").write_text(f"sha256: {hashlib.sha256(JAR).hexdigest()}\n")
        lock = root / "kit" / "requirements" / "runtime.lock"
        lock.write_text(f"b==1 --hash=sha256:{hashlib.sha256(WHEEL).hexdigest()}\n")
        self.bundle = root / "it.bundle.tar"
        machine = subprocess.run(
            ["dpkg", "--print-architecture"], capture_output=True, text=True, check=True
        ).stdout
        suite = platform.freedesktop_os_release()["VERSION_CODENAME"]
        self.files = {
            JAR_PATH: JAR,
            WHEEL_PATH: WHEEL,
            f"debian/control/{RELEASE.format(suite=suite, machine=machine.strip())}": b"",
            f"debian/nodes/{RELEASE.format(suite='trixie', machine=machine.strip())}": b"",
        }

    def write(self, files: Mapping[str, bytes] | None = None) -> None:
        """Write the bundle, with other files where some are given."""
        paths = {}
        for name, content in {**self.files, **(files or {})}.items():
            paths[name] = self.root / "files" / name
            paths[name].parent.mkdir(parents=True, exist_ok=True)
            paths[name].write_bytes(content)
        writing.pack(paths, {"LICENCES": "", "bundle.json": "{}"}, self.bundle)

    def unpack(self) -> subprocess.CompletedProcess[str]:
        """Run the script on the bundle."""
        environment = {**os.environ, "LAKEHOUSE_CACHE": str(self.root / "cache")}
        return subprocess.run(
            [self.script, self.bundle], env=environment, capture_output=True, text=True, check=False
        )

    def refusal(self) -> str:
        """Return what the script says when it refuses the bundle; it has to."""
        done = self.unpack()
        assert done.returncode
        assert not done.stdout
        return done.stderr.splitlines()[-1].removeprefix("bundle: ").replace(f"{self.bundle}: ", "")


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    return Kit(tmp_path)


def test_a_changed_byte_is_named(kit: Kit) -> None:
    kit.write()
    content = kit.bundle.read_bytes().replace(JAR, JAR.replace(b"jar", b"ajr"))
    kit.bundle.write_bytes(content)
    assert kit.refusal() == f"{JAR_PATH}: not the file that was packed{COPY_AGAIN}"


@pytest.mark.parametrize("path", [JAR_PATH, WHEEL_PATH])
def test_its_own_checksums_do_not_vouch_for_a_file(kit: Kit, path: str) -> None:
    kit.write({path: b"another content"})
    reason = "its checksum is neither in versions.yml nor in requirements/runtime.lock"
    assert kit.refusal() == f"{path}: {reason}{THIS_VERSION}"


@pytest.mark.parametrize("way", [" *", "\t "])
def test_a_line_of_another_form_does_not_pass_for_one_that_vouches(kit: Kit, way: str) -> None:
    content = b"another content"
    kit.write({JAR_PATH: content})
    digest = hashlib.sha256(content).hexdigest()
    line, other = (f"{digest}{between}{JAR_PATH}".encode() for between in ("  ", way))
    packed = kit.bundle.read_bytes()
    assert packed.count(line) == 1
    kit.bundle.write_bytes(packed.replace(line, other))
    assert kit.refusal().startswith("SHA256SUMS, line 2: not a checksum, two spaces and a path; next: ")


def test_without_anything_locked_nothing_is_vouched_for(kit: Kit) -> None:
    (kit.root / "kit" / "versions.yml").write_text("")
    (kit.root / "kit" / "requirements" / "runtime.lock").write_text("")
    kit.write()
    assert "its checksum is neither" in kit.refusal()


def test_a_file_for_which_nothing_vouches_is_refused(kit: Kit) -> None:
    kit.write({"install.sh": b"true"})
    assert kit.refusal().startswith("install.sh: nothing vouches for it")


def added(kit: Kit, info: tarfile.TarInfo) -> None:
    with tarfile.open(kit.bundle, "a") as archive:
        archive.addfile(info, io.BytesIO(b"x" * info.size))


def test_a_file_that_is_not_in_the_list_is_refused(kit: Kit) -> None:
    kit.write()
    more = tarfile.TarInfo("debian/control/pool/more.deb")
    more.size = 1
    added(kit, more)
    assert kit.refusal().startswith(
        f"{more.name}: in the list of checksums or in the archive, but not in both"
    )


def test_a_link_is_refused(kit: Kit) -> None:
    kit.write()
    link = tarfile.TarInfo("wheels/link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    added(kit, link)
    assert kit.refusal().startswith("wheels/link: neither a file nor a folder")


def test_packages_that_nobody_has_signed_are_refused(kit: Kit) -> None:
    kit.write()
    assert kit.refusal().startswith("debian/control: apt does not trust it: E: ")


def test_a_bundle_for_another_release_of_debian_is_refused(kit: Kit) -> None:
    kit.files = {
        name.replace("control/dists/", "control/dists/not-"): text for name, text in kit.files.items()
    }
    kit.write()
    assert "was written on a machine with another release of Debian" in kit.refusal()


@pytest.mark.parametrize("content", [b"", b"no archive"])
def test_what_is_no_bundle_is_one_line(kit: Kit, content: bytes) -> None:
    kit.bundle.write_bytes(content)
    assert "is no bundle, or is damaged at its beginning; next: make bundle" in kit.refusal()


def test_a_bundle_that_was_cut_off_is_one_line(kit: Kit) -> None:
    kit.write({JAR_PATH: JAR * 10_000})
    kit.bundle.write_bytes(kit.bundle.read_bytes()[:100_000])
    assert "cannot be unpacked" in kit.refusal()


def left_behind(kit: Kit, name: str, *, hours: float | None) -> Path:
    """Return the folder of a bundle that was last asked for then; None is one that was refused."""
    folder = kit.root / "cache" / "bundles" / name
    folder.mkdir(parents=True)
    if hours is not None:
        (folder / "verified").touch()
        os.utime(folder / "verified", (asked := time.time() - hours * 3600, asked))
    return folder


def test_a_bundle_takes_the_place_of_those_that_nobody_reads(kit: Kit) -> None:
    """Another checkout may be installing out of its own."""
    others = [left_behind(kit, name, hours=hours) for name, hours in (("a", 23), ("b", 25), ("c", None))]
    kit.write()
    kit.refusal()
    assert [folder.is_dir() for folder in others] == [True, False, False]


def test_one_that_is_asked_for_again_is_one_that_somebody_reads(kit: Kit) -> None:
    kit.write()
    with tarfile.open(kit.bundle) as archive:
        listed = archive.extractfile("SHA256SUMS")
        assert listed
        folder = left_behind(kit, hashlib.sha256(listed.read()).hexdigest()[:12], hours=25)
    done = kit.unpack()
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{folder}\n", "")
    assert time.time() - (folder / "verified").stat().st_mtime < 3600


def test_a_bundle_that_is_not_there_is_one_line_for_every_verb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(airgap.VARIABLE, "/nowhere/it.tar")
    with pytest.raises(LakehouseError, match=r"^/nowhere/it\.tar: no such file; next: make bundle"):
        airgap.folder()


def test_without_a_bundle_nothing_is_asked_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(airgap.VARIABLE, "")
    assert airgap.folder() is None


def test_the_checksums_come_first_and_nobody_sees_half_of_it(kit: Kit) -> None:
    kit.write()
    with tarfile.open(kit.bundle) as archive:
        names = archive.getnames()
    assert names == ["SHA256SUMS", "LICENCES", "bundle.json", *sorted(kit.files)]
    assert [path.name for path in kit.root.glob("*bundle*")] == [kit.bundle.name]


def test_a_full_disk_is_said_before_anything_is_written(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    with pytest.raises(LakehouseError, match="disk full: the bundle needs"):
        kit.write()
    assert not kit.bundle.exists()


def cached(kit: Kit, monkeypatch: pytest.MonkeyPatch, content: bytes | None) -> tuple[Artifact, Cache]:
    """Return a file that is wanted, and a cache, where a bundle with that content is in use."""
    unpacked = kit.root / "cache" / "bundles" / "id"
    if content is not None:
        path = unpacked / "content" / JAR_PATH
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    monkeypatch.setattr(airgap, "folder", lambda: unpacked)
    digest = hashlib.sha256(JAR).hexdigest()
    return Artifact(Coordinate.parse("org:a:1"), digest, len(JAR), "MIT"), Cache(kit.root / "cache")


def test_the_cache_takes_files_out_of_a_bundle(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, cache = cached(kit, monkeypatch, JAR)
    artifacts._take([wanted], airgap.folder() or Path(), cache)
    assert cache.missing([wanted]) == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "1 file is not in the bundle, first org:a:1"), (JAR[::-1], "org:a:1 in .*: wrong checksum")],
)
def test_what_is_not_in_a_bundle_or_is_another_file_is_one_line(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, content: bytes | None, reason: str
) -> None:
    wanted, cache = cached(kit, monkeypatch, content)
    with pytest.raises(LakehouseError, match=reason):
        artifacts._take([wanted], airgap.folder() or Path(), cache)


def test_the_image_of_a_node_is_made_out_of_it_and_remembers_no_folder_of_this_computer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = tmp_path / "apt" / "nodes" / "sources.list"
    sources.parent.mkdir(parents=True)
    sources.write_text("deb [lang=none] file:/a/folder trixie main\n")
    monkeypatch.setattr(airgap, "folder", lambda: tmp_path)
    assert image.recipe("trixie").sources == ("deb [lang=none] copy:/a/folder trixie main",)
    listed = tmp_path / "root" / "etc" / "apt" / "sources.list"
    listed.parent.mkdir(parents=True)
    listed.write_text(
        "deb [lang=none] copy:/a/folder trixie main\ndeb http://mirror.example/debian trixie main\n"
    )
    hook = next(
        word for word in image.command(image.recipe("trixie")) if "sources.list" in word and "copy:" in word
    )
    subprocess.run(["sh", "-c", hook.removeprefix("--customize-hook="), "sh", tmp_path / "root"], check=True)
    assert listed.read_text() == "deb http://mirror.example/debian trixie main\n"


def test_a_package_lies_where_its_mirror_has_it() -> None:
    printed = (
        "Reading package lists...\n"
        "'http://mirror.example/debian/pool/main/l/lib/lib_1%2bd_amd64.deb' lib_1+d_amd64.deb 1 MD5Sum:a\n"
        "'http://mirror.example/debian-security/pool/updates/main/t/t_2_all.deb' t_1%3a2_all.deb 2 MD5Sum:b\n"
    )
    roots = ["http://mirror.example/debian/", "http://mirror.example/debian-security"]
    assert airgap.located(printed, roots) == {
        "lib_1+d_amd64.deb": Path("pool/main/l/lib/lib_1+d_amd64.deb"),
        "t_1%3a2_all.deb": Path("pool/updates/main/t/t_2_all.deb"),
    }


PLACE = "/var/lib/lakehouse-bundle/id/nodes"
PRINTED = (
    "Need to get 0 B/22 B of archives.\n"
    f"'file:{PLACE}/pool/main/l/lib/lib_1%2bd_amd64.deb' lib_1+d_amd64.deb 3 SHA256:a\n"
    f"'file:{PLACE}/pool/main/j/jre/jre_2_all.deb' jre_1%3a2_all.deb 3 SHA256:b\n"
)


@pytest.fixture
def unpacked(tmp_path: Path) -> Path:
    """A bundle with three packages for nodes."""
    for path in ("l/lib/lib_1+d_amd64.deb", "j/jre/jre_2_all.deb", "d/dpkg/dpkg_1_amd64.deb"):
        file = tmp_path / "content" / airgap.NODES / "pool" / "main" / path
        file.parent.mkdir(parents=True)
        file.write_bytes(b"deb")
    return tmp_path


def test_a_node_is_sent_what_its_apt_wants_and_no_other_package(unpacked: Path) -> None:
    archive = unpacked / "packages.tar"
    assert airgap.pack_packages(unpacked, PRINTED, PLACE, archive) == 2
    with tarfile.open(archive) as sent:
        assert sent.getnames() == ["pool/main/j/jre/jre_2_all.deb", "pool/main/l/lib/lib_1+d_amd64.deb"]
        assert {(each.uid, each.gid, each.mode) for each in sent} == {(0, 0, 0o644)}
    assert airgap.pack_packages(unpacked, "0 upgraded, 0 newly installed\n", PLACE, archive) == 0


def test_what_a_node_wants_and_a_bundle_lacks_is_one_line(unpacked: Path) -> None:
    (unpacked / "content" / airgap.NODES / "pool/main/j/jre/jre_2_all.deb").unlink()
    with pytest.raises(LakehouseError, match=r"^jre_2_all\.deb is not in the bundle; next: make bundle"):
        airgap.pack_packages(unpacked, PRINTED, PLACE, unpacked / "packages.tar")


def test_a_computer_without_a_mirror_of_debian_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apt, "sources", lambda _: [])
    with pytest.raises(
        LakehouseError, match="knows no mirror of Debian trixie; a bundle is written on Debian"
    ):
        debian.collect("trixie", [], tmp_path, print)


def test_what_apt_says_becomes_one_line() -> None:
    said = "Reading...\nE: Unable to locate package x\nE: other\n"
    assert debian.explain(said).message == "apt: Unable to locate package x"
    assert debian.explain("E: Failed to fetch it  404  Not Found\n").transient


def roles_packages(bill: dict[str, Any]) -> set[str]:
    """Return the packages that the roles install by a bill of materials."""
    variables = {
        "lakehouse_bom": bill,
        "java_versions": [bill["versions"]["java"], bill["versions"]["trino_java"]],
        "lakehouse_backup_enabled": True,
    }
    templar = Templar(loader=DataLoader(), variables=variables)
    found: set[str] = set()
    for path in (run.ROOT / "roles").glob("*/tasks/*.yml"):
        for task in yaml.safe_load(path.read_text()):
            if "lakehouse_packages" in task:
                names = task["lakehouse_packages"]["name"]
                found |= set(
                    templar.template(
                        trust_as_template(names)
                        if isinstance(names, str)
                        else [trust_as_template(name) for name in names]
                    )
                )
    return found


def test_every_package_that_a_role_installs_is_in_it() -> None:
    found = roles_packages(yaml.safe_load((run.ROOT / run.BILL).read_text()))
    assert {"pgbackrest", "openjdk-25-jre-headless"} < found
    assert found <= set(writing.node_packages(verbs.bill()))


def test_roles_take_the_names_of_packages_from_the_bill() -> None:
    bill = yaml.safe_load((run.ROOT / run.BILL).read_text())
    before, packages = roles_packages(bill), bill["debian"]["packages"]
    assert len(before) == len(packages)
    packages |= {key: f"other-{name}" for key, name in packages.items()}
    assert roles_packages(bill) == {f"other-{name}" for name in before}


def test_every_package_that_the_scripts_install_is_in_it() -> None:
    assert {"mmdebstrap", "python3-venv", "docker.io"} < set(writing.control_packages())


def wheel(path: Path, metadata: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("b-1.dist-info/METADATA", metadata)
    return path


@pytest.mark.parametrize(
    ("metadata", "licence"),
    [
        ("License-Expression: MIT\nLicense: other\n", "MIT"),
        ("Classifier: License :: OSI Approved :: BSD License\nClassifier: Topic :: X\n", "BSD License"),
        ("License: Apache-2.0\n", "Apache-2.0"),
        ("License: The whole\n  text of it\n", licences.UNKNOWN),
        ("Name: b\n", licences.UNKNOWN),
    ],
)
def test_a_wheel_says_its_licence(tmp_path: Path, metadata: str, licence: str) -> None:
    assert licences.of_python(wheel(tmp_path / "b-1-py3-none-any.whl", metadata)) == licence


def test_a_source_archive_says_its_licence(tmp_path: Path) -> None:
    path, text = tmp_path / "b-1.tar.gz", b"License-Expression: Apache-2.0\n"
    with tarfile.open(path, "w:gz") as archive:
        info = tarfile.TarInfo("b-1/PKG-INFO")
        info.size = len(text)
        archive.addfile(info, io.BytesIO(text))
    assert licences.of_python(path) == "Apache-2.0"
