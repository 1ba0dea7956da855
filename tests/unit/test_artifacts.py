"""Fetching: what is verified, what each failure says, and that nothing half done stays behind.

Pip is the real one, with an index on 127.0.0.1. Maven is a stand-in that does what the generated POM says;
the tests marked `network` run the real one, with a repository on 127.0.0.1, and need its plugins.
"""

from __future__ import annotations

import functools
import hashlib
import http.server
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from lakehouse import artifacts
from lakehouse.artifacts import manifest, maven, pypi, tools
from lakehouse.artifacts.cache import Cache
from lakehouse.artifacts.coordinates import Coordinate
from lakehouse.artifacts.manifest import Manifest
from lakehouse.errors import LakehouseError
from tests.unit import patience

# Does what the generated POM asks for with files of MIRROR; writes one line per run to RUNS.
STAND_IN = f"""#!{sys.executable}
import os, pathlib, shutil, sys, time
import xml.etree.ElementTree as ET
mirror, space = pathlib.Path(os.environ["MIRROR"]), "{{{maven.NAMESPACE}}}"
with open(os.environ["RUNS"], "a") as runs:
    runs.write(f"{{os.getpid()}} {{sys.argv[-1].rpartition(':')[2]}}\\n")
time.sleep(float(os.environ.get("MAVEN_SECONDS", 0)))
pom = ET.parse(next(a for a in sys.argv if a.startswith("--file=")).partition("=")[2])
for item in pom.iter(space + "artifactItem"):
    text = lambda tag: item.findtext(space + tag)
    source = mirror / text("destFileName")
    if not source.exists():
        name = f"{{text('groupId')}}:{{text('artifactId')}}:jar:{{text('version')}}"
        print(f"[ERROR] Failed to copy: Could not find artifact {{name}} in central (file:/m) -> [Help 1]")
        sys.exit(1)
    target = pathlib.Path(text("outputDirectory"))
    target.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target / source.name)
"""
JAR = b"the content of a jar" * 50


class Bench:
    """A mirror with files, a bill that asks for them, and a cache."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.mirror = root / "mirror"
        self.mirror.mkdir()
        self.runs = root / "runs"
        self.cache = Cache(root / "cache")
        self.said: list[str] = []
        self.wanted: dict[str, bytes] = {}
        binaries = root / "bin"
        binaries.mkdir()
        (binaries / "mvn").write_text(STAND_IN, encoding="utf-8")
        (binaries / "mvn").chmod(0o755)
        monkeypatch.setenv("PATH", f"{binaries}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setenv("MIRROR", str(self.mirror))
        monkeypatch.setenv("RUNS", str(self.runs))

    def offer(self, coordinate: str, content: bytes) -> None:
        (self.mirror / Coordinate.parse(coordinate).file_name).write_bytes(content)

    def want(self, coordinate: str, content: bytes) -> None:
        self.wanted[coordinate] = content

    def bill(self) -> Manifest:
        listed = [
            {
                "coordinate": coordinate,
                "sha256": hashlib.sha256(content).hexdigest(),
                "bytes": len(content),
                "licence": "MIT",
            }
            for coordinate, content in self.wanted.items()
        ]
        path = self.root / "versions.yml"
        data = {
            "versions": {"app": "1"},
            "debian": {"suite": "trixie", "packages": {}},
            "components": {"app": {"layers": {"files": {"from": list(self.wanted), "into": "lib"}}}},
            "pairs": [],
            "licences": {},
            "lock": {"app": {"files": listed}},
        }
        path.write_text(json.dumps(data), encoding="utf-8")  # JSON is YAML
        return manifest.load(path)

    def fetch(self) -> None:
        artifacts.fetch(self.bill(), ["app"], self.cache, self.said.append)

    def fails(self) -> str:
        with pytest.raises(LakehouseError) as raised:
            self.fetch()
        assert "\n" not in str(raised.value)
        return str(raised.value)

    def cached(self) -> dict[str, bytes]:
        folder = self.cache.root / "artifacts"
        return {file.name: file.read_bytes() for file in folder.rglob("*") if file.is_file()}

    def maven_runs(self) -> list[str]:
        return [line.split()[1] for line in self.runs.read_text().splitlines()] if self.runs.exists() else []


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(tools, "PAUSE_SECONDS", 0.0)
    return Bench(tmp_path, monkeypatch)


@pytest.fixture
def jars(bench: Bench) -> Bench:
    """A bench with two jars that are wanted and offered."""
    for coordinate in ("org.example:one:1", "org.example:two:1"):
        bench.want(coordinate, JAR + coordinate.encode())
        bench.offer(coordinate, JAR + coordinate.encode())
    return bench


def test_files_arrive_verified_and_the_staging_folder_goes(jars: Bench) -> None:
    jars.fetch()
    assert jars.cached() == {"one-1.jar": JAR + b"org.example:one:1", "two-1.jar": JAR + b"org.example:two:1"}
    assert not (jars.cache.root / "staging").exists()
    assert jars.maven_runs() == ["copy"]
    assert jars.said[-1].startswith("2 files (0 MB) verified")


def test_a_warm_cache_starts_no_process(jars: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    jars.fetch()
    monkeypatch.setattr(tools, "run", lambda *_: pytest.fail("a tool was started"))
    monkeypatch.setattr(hashlib, "file_digest", lambda *_: pytest.fail("a file was read"))
    jars.fetch()


@pytest.mark.parametrize("damage", [lambda content: content[:-1], lambda content: b"X" + content[1:]])
def test_a_damaged_file_in_the_cache_is_fetched_again(jars: Bench, damage: Callable[[bytes], bytes]) -> None:
    jars.fetch()
    before = jars.cached()
    file = next(jars.cache.root.rglob("one-1.jar"))
    file.write_bytes(damage(file.read_bytes()))
    jars.fetch()
    assert jars.cached() == before
    assert jars.maven_runs() == ["copy", "copy"]


def seals_of(bench: Bench) -> list[Path]:
    """The state files that hold what was read of the bench's cache."""
    name = str(bench.cache.root)
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    return list(Path(os.environ["XDG_STATE_HOME"]).rglob(f"*{digest}.json"))


def test_lost_seals_cost_one_reading_and_no_download(jars: Bench) -> None:
    jars.fetch()
    [file] = seals_of(jars)
    file.write_text("{broken", encoding="utf-8")
    jars.fetch()
    assert jars.maven_runs() == ["copy"]


def test_nothing_in_the_cache_vouches_for_a_file_of_it(jars: Bench) -> None:
    """An index beside the files said of a file of ten bytes that it was verified."""
    jars.fetch()
    before = jars.cached()
    file = next(jars.cache.root.rglob("one-1.jar"))
    file.write_bytes(b"ten bytes.")
    entry = [file.stat().st_size, file.stat().st_mtime_ns, hashlib.sha256(before[file.name]).hexdigest()]
    index = jars.cache.root / "artifacts" / "index.json"
    index.write_text(json.dumps({str(file.relative_to(index.parent)): entry}), encoding="utf-8")
    jars.fetch()
    index.unlink()
    assert jars.cached() == before


def test_an_altered_file_is_found_whatever_its_time_says(jars: Bench) -> None:
    jars.fetch()
    before = jars.cached()
    file = next(jars.cache.root.rglob("one-1.jar"))
    times = file.stat()
    file.write_bytes(b"X" + file.read_bytes()[1:])
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    jars.fetch()
    assert jars.cached() == before


def test_a_copied_cache_is_read_in_full(jars: Bench) -> None:
    """With everything that `cp --archive` keeps, and at the place of the old one."""
    jars.fetch()
    before = jars.cached()
    copy = jars.root / "copy"
    shutil.copytree(jars.cache.root, copy)
    altered = next(copy.rglob("two-1.jar"))
    times = altered.stat()
    altered.write_bytes(b"X" + altered.read_bytes()[1:])
    os.utime(altered, ns=(times.st_atime_ns, times.st_mtime_ns))
    shutil.rmtree(jars.cache.root)
    copy.rename(jars.cache.root)
    jars.fetch()
    assert jars.cached() == before
    assert jars.maven_runs() == ["copy", "copy"]
    assert "fetching 1 file" in " ".join(jars.said)


def test_a_state_that_cannot_be_kept_costs_a_reading(jars: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nowhere")
    jars.cache = Cache(jars.cache.root)
    jars.fetch()
    jars.fetch()
    assert jars.maven_runs() == ["copy"]


def test_a_new_checksum_in_the_bill_replaces_the_file(jars: Bench) -> None:
    jars.fetch()
    jars.want("org.example:one:1", b"new")
    jars.offer("org.example:one:1", b"new")
    jars.fetch()
    assert jars.cached()["one-1.jar"] == b"new"


@pytest.mark.parametrize(
    ("served", "words"),
    [
        (b"y" * 1017, "org.example:one:1: wrong checksum: expected sha256 "),
        (JAR, "org.example:one:1: truncated: 1000 of 1017 bytes"),
    ],
)
def test_other_content_is_thrown_away_here_and_in_maven(jars: Bench, served: bytes, words: str) -> None:
    jars.offer("org.example:one:1", served)
    message = jars.fails()
    assert message.startswith(words)
    assert "; the file was thrown away; next: .venv/bin/lakehouse artifacts fetch" in message
    assert list(jars.cached()) == ["two-1.jar"], "the good file stays"
    assert jars.maven_runs() == ["copy", "purge-local-repository"]
    jars.offer("org.example:one:1", jars.wanted["org.example:one:1"])
    jars.fetch()
    assert len(jars.cached()) == 2


def test_a_file_that_no_mirror_has_is_one_line(jars: Bench) -> None:
    jars.want("org.example:gone:1", b"gone")
    assert (
        jars.fails()
        == "Maven: org.example:gone:jar:1 is not at file:/m; next: check versions.yml and the mirror"
    )
    assert jars.maven_runs() == ["copy"], "asking again would not help"


def test_the_cache_is_where_the_user_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHOUSE_CACHE", str(tmp_path / "elsewhere"))
    assert artifacts.cache_dir().root == tmp_path / "elsewhere"
    monkeypatch.delenv("LAKEHOUSE_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert artifacts.cache_dir().root == tmp_path / ".cache" / "lakehouse"


def test_missing_maven_is_one_line(jars: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(jars.root))
    assert jars.fails() == "Maven is missing: no mvn on PATH; next: apt-get install maven"
    assert jars.cached() == {}


def test_too_little_space_is_said_before_the_download(jars: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(jars.root)._replace(free=100)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    assert jars.fails().startswith("disk full: the download needs 0 MB under ")
    assert jars.maven_runs() == []


def test_a_disk_that_fills_up_is_one_line(jars: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", no_space)
    assert jars.fails().startswith("disk full: cannot write to ")
    assert jars.cached() == {}
    assert not (jars.cache.root / "staging").exists()


def test_a_cache_that_cannot_be_written_is_one_line(jars: Bench) -> None:
    jars.cache = Cache(jars.root / "versions.yml" / "cache")
    assert jars.fails().startswith(
        f"cannot write to {jars.cache.root}: Not a directory; next: point LAKEHOUSE_CACHE"
    )


def test_an_interrupted_fetch_leaves_nothing(jars: Bench) -> None:
    with child(jars, MAVEN_SECONDS="60") as process:
        wait_for(lambda: jars.maven_runs() == ["copy"])
        process.send_signal(signal.SIGINT)
        process.wait(patience.SECONDS)
    maven_pid = int(jars.runs.read_text().split()[0])
    with pytest.raises(ProcessLookupError):
        os.kill(maven_pid, 0)
    assert jars.cached() == {}
    assert not (jars.cache.root / "staging").exists()


def test_the_leftover_of_a_killed_fetch_does_not_disturb(jars: Bench) -> None:
    leftover = jars.cache.root / "staging" / "maven" / "half.jar"
    leftover.parent.mkdir(parents=True)
    leftover.write_bytes(b"half")
    jars.fetch()
    assert len(jars.cached()) == 2
    assert not leftover.exists()


def test_two_processes_fetch_once(jars: Bench) -> None:
    with child(jars, MAVEN_SECONDS="0.5") as one, child(jars, MAVEN_SECONDS="0.5") as two:
        assert (one.wait(patience.SECONDS), two.wait(patience.SECONDS)) == (0, 0)
    assert jars.maven_runs() == ["copy"]


def test_a_bad_network_is_tried_a_bounded_number_of_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "PAUSE_SECONDS", 0.0)
    counter = tmp_path / "count"
    said: list[str] = []
    tool = tools.Tool(
        name="Tool",
        command=("sh", "-c", f"echo x >> {counter}; exit 1"),
        environment={},
        log=tmp_path / "tool.log",
        explain=lambda _: tools.Failure("no route", "ask the network", transient=True),
        hint="",
    )
    assert [failure.message for failure in tools.run([tool], said.append)] == ["no route"]
    assert counter.read_text().count("x") == tools.ATTEMPTS
    assert said == [f"no route; attempt {n} of 3, trying again" for n in (1, 2)]


@pytest.mark.parametrize(
    ("output", "message", "transient"),
    [
        (
            "[ERROR] Could not transfer artifact g:a:jar:1 from/to central (http://h/r): transfer failed for "
            "http://h/r/a.jar: Connect to h:80 failed: Connection refused -> [Help 1]",
            "Maven: http://h/r did not deliver g:a:jar:1: Connect to h:80 failed: Connection refused",
            True,
        ),
        (
            "[ERROR] Could not transfer artifact g:a:jar:1 from/to m (http://h/r): authorization failed for "
            "http://h/r/a.jar, status: 403 Forbidden -> [Help 1]",
            "Maven: http://h/r did not deliver g:a:jar:1: status: 403 Forbidden",
            False,
        ),
        (
            "[ERROR] Could not find artifact g:a:jar:1 in m (http://h/r) -> [Help 1]",
            "g:a:jar:1 is not at http",
            False,
        ),
        ("java.io.IOException: No space left on device", "disk full: Maven could not write a file", False),
        (
            "[ERROR] The settings file does not exist: /x\n[ERROR] ",
            "Maven failed: The settings file does",
            False,
        ),
        ("The JAVA_HOME environment variable is wrong\n", "Maven failed: The JAVA_HOME environment", False),
        ("", "Maven failed: no output", False),
    ],
)
def test_mavens_output_becomes_one_line(output: str, message: str, transient: bool) -> None:
    failure = maven.explain(output)
    assert message in failure.message
    assert failure.transient is transient


# Pip


def source_archive(name: str) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as tar:
        for path, text in {
            "setup.py": f"from setuptools import setup; setup(name={name!r}, version='1')",
            "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n",
            "padding": "x" * 2000,
        }.items():
            info = tarfile.TarInfo(f"{name}-1/{path}")
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return raw.getvalue()


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves `files` by path; a file named in `cut` ends before its announced length."""

    def __init__(self, files: Mapping[str, bytes], cut: set[str], *args: object) -> None:
        self.files, self.cut = files, cut
        super().__init__(*args)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        content = self.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[:100] if self.path in self.cut else content)

    def log_message(self, *_: object) -> None:
        pass


class Server:
    """An HTTP server on 127.0.0.1 whose files a test sets."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.cut: set[str] = set()
        handler = functools.partial(Handler, self.files, self.cut)
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_RETRIES", "1")
    running = Server()
    monkeypatch.setenv("PIP_INDEX_URL", f"{running.url}/simple")
    yield running
    running.close()


def test_pip_and_maven_fetch_side_by_side(jars: Bench, server: Server) -> None:
    archive = source_archive("parcel")
    jars.want("parcel==1", archive)
    server.files["/simple/parcel/"] = b'<a href="/parcel-1.tar.gz">parcel-1.tar.gz</a>'
    server.files["/parcel-1.tar.gz"] = archive
    jars.fetch()
    assert sorted(jars.cached()) == ["one-1.jar", "parcel-1.tar.gz", "two-1.jar"]


def test_pip_failures_are_one_line_each(
    bench: Bench, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = source_archive("parcel")
    bench.want("parcel==1", archive)
    server.files["/simple/parcel/"] = b'<a href="/parcel-1.tar.gz">parcel-1.tar.gz</a>'

    server.files["/parcel-1.tar.gz"] = source_archive("forged")
    assert bench.fails().startswith("parcel==1: wrong checksum: expected sha256 ")

    server.files["/parcel-1.tar.gz"] = archive
    server.cut.add("/parcel-1.tar.gz")
    monkeypatch.setenv("PIP_RESUME_RETRIES", "0")
    assert "not enough bytes were received" in bench.fails()

    server.close()
    assert bench.fails().startswith("pip could not reach its index for /simple/parcel/: ")
    assert bench.cached() == {}
    assert not (bench.cache.root / "staging").exists()


def test_an_index_without_the_version_is_one_line() -> None:
    failure = pypi.explain("ERROR: No matching distribution found for parcel==1\n")
    assert failure.message == "pip failed: No matching distribution found for parcel==1"


# The real Maven


@pytest.mark.network
def test_real_maven_forgets_a_bad_file_and_fetches_the_good_one(
    bench: Bench, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_real_maven(bench, server, tmp_path, monkeypatch)
    path = "/repository/org/example/one/1/one-1.jar"
    bench.want("org.example:one:1", JAR)
    server.files[path] = b"forged" * 200
    assert bench.fails().startswith("org.example:one:1: wrong checksum: expected sha256 ")
    server.files[path] = JAR
    bench.fetch()
    assert bench.cached() == {"one-1.jar": JAR}


@pytest.mark.network
def test_real_maven_names_the_repository_that_cut_a_file(
    bench: Bench, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_real_maven(bench, server, tmp_path, monkeypatch)
    monkeypatch.setattr(tools, "ATTEMPTS", 1)
    bench.want("org.example:one:1", JAR)
    server.files["/repository/org/example/one/1/one-1.jar"] = JAR
    server.cut.add("/repository/org/example/one/1/one-1.jar")
    message = bench.fails()
    assert message.startswith(f"Maven: {server.url}/repository did not deliver org.example:one:jar:1: ")
    assert "check the network" in message
    assert bench.cached() == {}


def use_real_maven(bench: Bench, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give Maven one repository more to read; the user's own settings (mirrors, proxies) stay in force."""
    (bench.root / "bin" / "mvn").unlink()
    if shutil.which("mvn") is None:
        pytest.skip("no Maven on this machine")
    settings = tmp_path / "settings.xml"
    settings.write_text(
        "<settings><profiles><profile><id>test</id><repositories><repository><id>test</id>"
        f"<url>{server.url}/repository</url></repository></repositories></profile></profiles>"
        "<activeProfiles><activeProfile>test</activeProfile></activeProfiles></settings>",
        encoding="utf-8",
    )
    monkeypatch.setenv(
        "MAVEN_ARGS", f"--global-settings {settings} -Dmaven.repo.local={tmp_path / 'repository'}"
    )


# Helpers


def child(bench: Bench, **environment: str) -> subprocess.Popen[bytes]:
    """The same fetch in a process of its own."""
    bench.bill()
    program = (
        "import pathlib, sys; from lakehouse import artifacts;"
        "from lakehouse.artifacts import cache, manifest;"
        "root = pathlib.Path(sys.argv[1]); bill = manifest.load(root / 'versions.yml');"
        "artifacts.fetch(bill, ['app'], cache.Cache(root / 'cache'), print)"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program, str(bench.root)],
        env=os.environ | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def wait_for(condition: Callable[[], bool], seconds: float = patience.SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
