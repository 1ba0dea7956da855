"""What another machine says never runs here, leads nowhere else, and is refused in one line."""

from __future__ import annotations

import gzip
import io
import json
import os
import socket
import struct
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, cast

import pytest
from lakehouse_clients import delta, metastore
from lakehouse_clients import names as clients
from lakehouse_clients.errors import ClientError

from lakehouse import yamlfile
from lakehouse.artifacts import airgap, parts
from lakehouse.catalog import disk, exchange, filters, readable, source, text
from lakehouse.catalog import fsck as fsck_of_history
from lakehouse.catalog.names import Name
from lakehouse.catalog.overlay import Batch
from lakehouse.catalog.served.request import matching
from lakehouse.catalog.store import Store
from lakehouse.clients import Files
from lakehouse.cluster_catalog import pinning, sync
from lakehouse.commands import logs
from lakehouse.commands import support_bundle as verb
from lakehouse.console import view
from lakehouse.doctor.model import Snapshot
from lakehouse.errors import LakehouseError
from lakehouse.maybe import Answer, unknown
from lakehouse.model import inventory, placement
from lakehouse.model.inventory import Host
from lakehouse.model.placement import Cluster
from lakehouse.remote import hosts, openssh, output
from lakehouse.remote.openssh import Line
from lakehouse.remote.probing import Reply
from lakehouse.rolling import lock
from lakehouse.rolling.lock import Holder
from lakehouse.rolling.result import Ending, Stopped
from lakehouse.run import ROOT
from lakehouse.status import questions, reading
from lakehouse.support_bundle import archive, collector, items
from lakehouse.support_bundle.mask import Masker
from lakehouse.upgrade import hdfs, installed, postgresql
from plugins.module_utils.lakehouse import away, fsck, hdfs_gate, probes, webhdfs
from plugins.module_utils.lakehouse.webhdfs import NoPathError, WebHdfs, WebHdfsError

Collected = Callable[[bytes], tuple[Answer[int], list[str]]]
HOSTILE = (
    "$(touch pwned)",
    "`touch pwned`",
    "a;touch${IFS}pwned",
    "a'b",
    'a"b',
    "../../etc",
    "/etc/passwd",
    "-rf",
    "a\0b",
    "a\x1b[2J",
    "a\u202eb",
    "{{lookup('pipe','touch${IFS}pwned')}}",
    "",
    "x" * 10_000_000,
)


def short(value: object) -> str:
    """The name of a test has no 10 MB."""
    return ascii(value)[:24]


HOLDER = Holder("r17", "restart", "ops", "ops1", 4121, 0.0, "abc")
BILL = yamlfile.read(ROOT / "versions.yml")


def reply(text: str) -> Reply:
    return Reply(text, 0.0, 0.0)


def one_line(error: Exception) -> bool:
    """A person is told what is wrong, and the terminal is not steered."""
    return 0 < len(str(error)) < 300 and str(error).isprintable()


@pytest.fixture
def nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """A folder in which hostile text would leave a file."""
    monkeypatch.chdir(tmp_path)
    return lambda: not (tmp_path / "pwned").exists()


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return placement.read(inventory.load("tests/inventory"))


# The releases of hosts, which an upgrade hands to a playbook


@pytest.mark.parametrize("name", [*HOSTILE, "4.1.4 abc"], ids=short)
def test_a_release_that_a_host_names_is_no_template_and_no_path(name: str) -> None:
    """Ansible evaluates the variables of its command line: here, and as the user who runs it."""
    text = f"@@ spark {name}\njars/a.jar\n"
    found = Answer(reply(text)).then(lambda one: dict(installed.releases(one.text, parts.parts(BILL))))
    assert not found.known


# The lock, whose holder is broken by his mark on every host


@pytest.mark.parametrize("field", ["mark", "run", "verb"])
@pytest.mark.parametrize("value", [*HOSTILE, "abc\ntouch pwned", None, 7, ["abc"]], ids=short)
def test_a_lock_with_other_words_than_a_run_writes_names_nobody(field: str, value: Any) -> None:
    record = json.dumps({**asdict(HOLDER), field: value})
    assert lock.locks({"n1": Answer(reply(f"@@held 3\n{record}\n"))}) == {}


@pytest.mark.parametrize("text", ["[]", "7", "{}", '{"run": "r1"}', "[" * 100_000, '"\\ud800"'], ids=short)
def test_a_lock_that_is_no_document_names_nobody(text: str) -> None:
    assert lock.locks({"n1": Answer(reply(f"@@held 3\n{text}\n"))}) == {}


def test_a_lock_tells_no_more_than_its_fields() -> None:
    record = json.dumps({**asdict(HOLDER), "more": 1})
    [found] = lock.locks({"n1": Answer(reply(f"@@held 3\n{record}\n"))}).values()
    assert found.holder == HOLDER


@pytest.mark.parametrize("script", [lock.beat, lock.release])
def test_a_mark_is_one_word_of_a_script(
    script: Callable[[str], str], nothing_runs: Callable[[], bool]
) -> None:
    for mark in ("$(touch pwned)", "x /dev/null; touch pwned #", "-f/etc/passwd", "'; touch pwned; '"):
        subprocess.run(["sh", "-c", script(mark)], check=True, capture_output=True)
    assert nothing_runs()


# PostgreSQL's packages, of which a host and its mirrors tell


@pytest.mark.parametrize("row", ["package postgresql-17 {}", "package {} 17.1-1", "candidate {}"])
@pytest.mark.parametrize("word", [word for word in HOSTILE if word], ids=short)
def test_a_package_or_version_that_is_none_is_refused(row: str, word: str) -> None:
    rows = ["package postgresql-17 17.1-1", "candidate 17.2-1", row.format(word)]
    with pytest.raises(ValueError, match="not allowed there") as refused:
        postgresql.parse_packages("postgresql-17", "\n".join(rows if "candidate" not in row else rows[::2]))
    assert one_line(refused.value)


@pytest.mark.parametrize("word", [word for word in HOSTILE if word], ids=short)
def test_what_else_lies_among_kept_packages_is_no_version(word: str) -> None:
    text = f"package postgresql-17 17.1-1\ncandidate 17.2-1\nknown 17.2-1\nknown {word}\n"
    assert postgresql.parse_packages("postgresql-17", text).available == ("17.2-1",)


def test_packages_are_words_of_the_scripts_that_keep_and_install_them(
    cluster: Cluster, nothing_runs: Callable[[], bool], tmp_path: Path
) -> None:
    [host, *_] = cluster.running("postgresql")
    script = postgresql.install_script(host, "postgresql$(touch pwned)", str(tmp_path), "17$(touch pwned)")
    stubs = "systemctl() { :; }; apt-get() { :; }; dpkg() { :; }; sleep() { exit; }; date() { :; }\n"
    subprocess.run(["sh", "-c", stubs + script], check=False, capture_output=True, timeout=60)
    assert nothing_runs()


def test_a_moment_that_is_none_is_not_counted() -> None:
    assert postgresql.gap("@@up 1.0\n@@up 1.2.3\n@@up ...\n@@up 2.0\n") == pytest.approx(1.0)


# Layouts of HDFS, which become a line of the NameNode's unit


class DataNodes:
    """As `Living`: every host answers one text."""

    def __init__(self, cluster: Cluster, text: str) -> None:
        self.cluster, self.text = cluster, text

    def having(self, service: str) -> Any:
        return self.cluster.running({"namenode": "namenode", "datanode": "datanodes"}[service])

    def do(self, *_: Any) -> Answer[str]:
        return Answer(self.text)


@pytest.mark.parametrize("word", [*HOSTILE, "-57\\", "-57\nEnvironment=X=1", "-57, namenode -1"], ids=short)
def test_a_layout_is_a_number(cluster: Cluster, word: str) -> None:
    with pytest.raises(Stopped) as stopped:
        hdfs.layouts(DataNodes(cluster, f"datanode {word}"))  # type: ignore[arg-type] # as the tests' own
    assert stopped.value.ending is Ending.REFUSED
    assert stopped.value.fact.isprintable()
    assert hdfs.layouts(DataNodes(cluster, "datanode -57")) == {"datanode -57"}  # type: ignore[arg-type] # as above


def test_the_holder_of_a_lock_is_as_it_was_written() -> None:
    text = f"@@held 3\n{json.dumps(asdict(replace(HOLDER, started='boot 7')))}\n"
    [found] = lock.locks({"n1": Answer(reply(text))}).values()
    assert found.holder.started == "boot 7"


# What apt of a node prints, by which packages of a bundle are sent there


@pytest.mark.parametrize(
    "line",
    [
        "'file:/b/nodes/../../../etc/shadow' a.deb 1 x",
        "'file:/b/nodes/%2e%2e/%2e%2e/etc/shadow' a.deb 1 x",
        "'file:/b/nodes//etc/shadow' a.deb 1 x",
        "'file:/elsewhere/a.deb' a.deb 1 x",
        "'file:/b/nodes/pool/a.deb' ../../a.deb 1 x",
        "'file:/b/nodes/pool/a.deb' /etc/a.deb 1 x",
        "'file:/b/nodes/pool/a%00.deb' a.deb 1 x",
        "'file:/b/nodes/pool/a.deb'",
        "'",
    ],
)
def test_no_path_of_apt_leads_out_of_a_bundle(line: str) -> None:
    with pytest.raises(LakehouseError, match="a package of apt") as refused:
        airgap.located(line, ["file:/b/nodes"])
    assert one_line(refused.value)


# What a host sends for a support bundle


def sent(*members: tuple[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w|gz") as archive:
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return stream.getvalue()


@pytest.fixture
def collected(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Collected:
    """What becomes of an archive that a host sends: how the host ended, and the names in the bundle."""

    def collect(stream: bytes) -> tuple[Answer[int], list[str]]:
        @contextmanager
        def output(*_: object) -> Iterator[tuple[IO[bytes], Callable[[], Answer[int]]]]:
            yield io.BytesIO(stream), lambda: Answer(0)

        monkeypatch.setattr(openssh, "output", output)
        monkeypatch.setattr(items, "request", lambda *_: {})
        host, seen = cluster.hosts[0], cast("Snapshot", SimpleNamespace(cluster=cluster))
        with archive.create(tmp_path / "bundle.tar.gz", 1 << 20) as bundle:
            ended = verb._host(bundle, Masker(), seen, host, 5.0)
            bundle.close({})
        with tarfile.open(tmp_path / "bundle.tar.gz") as made:
            return ended, [name.removeprefix("bundle/") for name in made.getnames()]

    return collect


@pytest.mark.parametrize("name", ["../../.ssh/authorized_keys", "/etc/passwd", "a/../../b", "a//b"])
def test_no_name_of_a_host_leads_out_of_a_bundle(collected: Collected, name: str) -> None:
    ended, names = collected(sent(("journal/a.txt", b"a"), (name, b"x"), ("index.json", b"{}")))
    assert ended.why.startswith("it sent a part only")
    assert names == ["alpha1/journal/a.txt", "contents.json"]


def test_a_name_that_steers_a_terminal_does_not_keep_the_rest_out(collected: Collected) -> None:
    ended, names = collected(sent(("log/a\x1b[2J\nb", b"x"), ("log/c", b"y"), ("index.json", b"{}")))
    assert ended.known
    assert [name.isprintable() for name in names] == [True] * 3


@pytest.mark.parametrize("index", [b"[]", b"7", b'{"a": "b"}', b'{"a": -1}', b"\xff", b"[" * 100_000])
def test_a_list_that_is_none_is_a_part_only(collected: Collected, index: bytes) -> None:
    assert collected(sent(("a", b"a"), ("index.json", index)))[0].why.startswith("it sent a part only")


def test_a_host_sends_no_more_than_its_share(collected: Collected, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verb, "_MOST_BYTES", 1 << 20)
    large = sent(("a", b"a"), ("b", bytes(2 << 20)), ("index.json", b"{}"))
    ended, names = collected(large)
    assert ended.why.startswith("it sent a part only")
    assert names == ["alpha1/a", "contents.json"]
    # A field of a header has a length of its own.
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 8 << 30
    assert not collected(gzip.compress(header.tobuf() + bytes(1 << 20)))[0].known


@pytest.mark.parametrize(
    "stream",
    [b"", b"\x1f\x8b\x08" + bytes(100), b"no archive", sent(("a", b"a"))[:40]],
    ids=["nothing", "zeros", "words", "half"],
)
def test_what_is_no_archive_is_a_part_only(collected: Collected, stream: bytes) -> None:
    assert collected(stream)[0].why.startswith("it sent a part only")


# What a script on a host prints


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Host:
    """A shell of this computer in place of a host's."""
    monkeypatch.setattr(hosts, "ssh", lambda _: ["sh", "-c"])
    monkeypatch.setattr(hosts, "as_root", lambda script: script)
    return Host("n1", "10.0.0.1", frozenset(), {})


def test_a_line_without_end_comes_in_pieces(here: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openssh, "_LINE_BYTES", 1000)
    said: list[Line] = []
    openssh.run({"n1": "head -c 2500 /dev/zero"}, [here], said.append, 10)
    assert [len(line.text) for line in said] == [1000, 1000, 500]


@pytest.mark.parametrize("code", ["", " x", " -1", " 1_0", " 99999999999", " \u0663"])
def test_a_host_that_ends_with_no_code_is_unknown(
    here: Host, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    monkeypatch.setattr(openssh, "guarded", lambda _, mark, *__: f"echo '{mark}{code}' >&2")
    assert not openssh.run({"n1": ""}, [here], lambda _: None, 10)["n1"].known
    with openssh.output(here, "", 10) as (_, ended):
        assert not ended().known


def test_what_a_host_says_beyond_what_is_kept_ends_the_verb() -> None:
    kept = output.CapturedLines(["n1"], most=1000)
    for _ in range(500):
        kept(Line("n1", ""))
    with pytest.raises(LakehouseError, match="n1 says more than"):
        kept(Line("n1", "x" * 500))


# What services answer


@pytest.fixture
def pages() -> Iterator[Callable[[bytes], str]]:
    """The address of a server that answers one text to every client."""
    body = [b""]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body[0])))
            self.end_headers()
            # Who has enough goes away.
            with suppress(OSError):
                self.wfile.write(body[0])

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    def answering(text: bytes) -> str:
        body[0] = text
        return f"http://127.0.0.1:{server.server_port}"

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield answering
        server.shutdown()


def test_an_answer_has_a_limit(pages: Callable[[bytes], str]) -> None:
    assert probes.fetch(pages(b"x" * 1000), most=1000) == b"x" * 1000
    with pytest.raises(OSError, match="an answer of more than"):
        probes.fetch(pages(b"x" * 1001), most=1000)


@pytest.mark.parametrize("body", [b"[7]", b"7", b"null", b'{"error": 7}', b'{"data": 7}', b"[" * 100_000])
def test_an_answer_of_trino_that_is_none_is_one_line(pages: Callable[[bytes], str], body: bytes) -> None:
    with pytest.raises(OSError, match="127") as refused:
        probes.trino_rows(pages(body), "trino", "select 1")
    assert one_line(refused.value)
    assert probes.http({"url": pages(body), "path": "a.b"})


def test_pages_of_trino_have_a_limit_together(
    pages: Callable[[bytes], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "MOST_BYTES", 10_000)
    url = pages(b"")
    pages(json.dumps({"data": [["x" * 100]], "nextUri": url}).encode())
    with pytest.raises(OSError, match="an answer of more than"):
        probes.trino_rows(url, "trino", "select 1")


def test_a_frame_that_announces_gigabytes_is_not_read() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def talk() -> None:
            with server.accept()[0] as client:
                client.sendall(struct.pack(">Ii", 0x80010002, 0x7FFFFFF0))
                client.recv(1000)

        threading.Thread(target=talk, daemon=True).start()
        with pytest.raises(OSError, match="announces 2047 MiB"):
            probes.thrift_call("127.0.0.1", server.getsockname()[1], "get_all_databases")


# HDFS, whose names come from the metastore, and whose files from the writers of tables


@pytest.mark.parametrize(
    "path",
    ["/a/../b", "/a/./b", "/a:b", "/a\0b", "/..", "a", "", "/\ud800", f"/{'x' * 10_000_000}"],
    ids=short,
)
def test_nobody_is_asked_for_what_hdfs_cannot_have(path: str) -> None:
    assert not webhdfs.is_path(path)
    with pytest.raises(NoPathError) as refused:
        WebHdfs("http://127.0.0.1:1", "hdfs").status(path)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("path", ["/", "/a", "/a/", "/a b/$(id)/'", "/a\nb", "/ä", "/.snapshot/s1"])
def test_what_hdfs_can_have_is_asked_for(path: str) -> None:
    assert webhdfs.is_path(path)


def test_a_table_at_no_place_keeps_no_other_out_of_the_history() -> None:
    """No server answers there: neither is asked."""
    names = Files(WebHdfs("http://127.0.0.1:1", "hdfs"), "lakehouse status").names
    assert source.listed_versions(names)(["hdfs://c/a/../b", "hdfs://c/a:b", "s3://c/a"]) == {}
    with pytest.raises(LakehouseError):
        source.listed_versions(names)(["hdfs://c//a"])


@pytest.mark.parametrize("body", [b"[]", b"7", b"<html>", b"[" * 100_000, b"{"])
def test_an_answer_of_webhdfs_that_is_none_is_one_line(pages: Callable[[bytes], str], body: bytes) -> None:
    hdfs_of = WebHdfs(pages(body), "hdfs")
    for ask in (hdfs_of.read, lambda path: hdfs_of.call("GET", "OPEN", path)):
        if body != b"[]" or ask == hdfs_of.read:
            with pytest.raises(WebHdfsError) as refused:
                ask("/a")
            assert one_line(refused.value)


@pytest.mark.parametrize("location", ["file:///etc/passwd", "http://[", "http://a:port/", "", 7, None])
def test_a_place_that_is_no_datanode_is_not_opened(pages: Callable[[bytes], str], location: Any) -> None:
    with pytest.raises(WebHdfsError):
        WebHdfs(pages(json.dumps({"Location": location}).encode()), "hdfs").read("/a")


def test_a_file_of_hdfs_has_a_limit(pages: Callable[[bytes], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhdfs, "MOST_BYTES", 1000)
    with pytest.raises(WebHdfsError, match="more than"):
        WebHdfs(pages(b'{"a": "%s"}' % (b"x" * 2000)), "hdfs").status("/a")


ICEBERG = {"parameters": {"table_type": "ICEBERG", "metadata_location": "hdfs://c/a.metadata.json"}}
METADATA = (
    b"[7]", b"7", b"\xff", b"[" * 100_000, b'{"snapshots": 7, "current-snapshot-id": 1}',
    b'{"snapshots": [7], "current-snapshot-id": 1}', b'{"snapshots": [{}], "current-snapshot-id": 1}',
    b'{"snapshots": [{"snapshot-id": 1, "timestamp-ms": "x"}], "current-snapshot-id": 1}',
    b'{"snapshots": [{"snapshot-id": 1, "timestamp-ms": 1e999}], "current-snapshot-id": 1}',
)  # fmt: skip


class OneFile:
    """Files by URI, of which each holds the same."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def holds(self, _: str) -> bool:
        return True

    def size(self, _: str) -> int:
        return len(self.content)

    def exists(self, _: str) -> bool:
        return True

    def read(self, _: str) -> bytes:
        return self.content

    def names(self, _: str) -> list[str]:
        return []


@pytest.mark.parametrize("content", METADATA, ids=short)
def test_metadata_that_is_none_is_said_of_its_table_alone(content: bytes) -> None:
    found = readable.why_unreadable(ICEBERG, OneFile(content))
    assert found.startswith("hdfs://c/a.metadata.json is damaged: ")
    assert len(found) < 300


def test_metadata_that_unpacks_to_gigabytes_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readable, "_MOST_BYTES", 1 << 20)
    place = ICEBERG["parameters"] | {"metadata_location": "hdfs://c/a.gz.metadata.json"}
    for content in (gzip.compress(bytes(10 << 20)), gzip.compress(b"{}")[:-4], b"\x1f\x8bno gzip"):
        assert " is damaged: " in readable.why_unreadable({"parameters": place}, OneFile(content))


@pytest.mark.parametrize("version", [word for word in HOSTILE if word] + ["1e9", "\u0663", "-1"], ids=short)
def test_a_version_that_is_no_number_is_said_of_its_table_alone(version: str) -> None:
    said = {
        "parameters": {"spark.sql.sources.provider": "delta"},
        "storage": {"location": "hdfs://c/a"},
        "data": {"format": "delta", "version": version},
    }
    assert readable.why_unreadable(said, OneFile(b"")).startswith("its version is ")


def test_a_name_that_the_metastore_has_is_one_name_of_a_statement() -> None:
    metadata = {"current-snapshot-id": 7, "snapshots": [{"snapshot-id": 7, "timestamp-ms": 1}]}
    name = Name("hive", "a`; DROP TABLE x; --", "b`c")
    made = pinning.needed_tag(name, metadata, 10, 1)
    assert made is not None
    assert made.statement.startswith(
        "ALTER TABLE iceberg.`a``; DROP TABLE x; --`.`b``c` CREATE OR REPLACE TAG"
    )


# The cluster's history, which an account of another machine keeps


COMMIT = "a" * 40
NO_NAMES = ("remotes/x", "heads/../x", "hooks/x", "heads/", *HOSTILE)
GIVEN: dict[str, Any] = {"id": "0" * 32, "names": {"heads/main": COMMIT}, "ends": [], "marks": None}


def answering(document: Any) -> sync.Node:
    """A history whose programs answer a document, and no pack."""

    @contextmanager
    def node(*_: Any) -> Iterator[tuple[bytes, IO[bytes]]]:
        line = document if isinstance(document, bytes) else f"{json.dumps(document)}\n".encode()
        yield line, io.BytesIO()

    return node


@pytest.mark.parametrize(
    "document",
    [
        *({**GIVEN, "names": {name: COMMIT}} for name in NO_NAMES),
        *({**GIVEN, "names": {"heads/a": number}} for number in (*HOSTILE, None, 7, "A" * 40)),
        *({**GIVEN, key: "../../x"} for key in GIVEN),
        {key: value for key, value in GIVEN.items() if key != "names"},
        [], 7, b"", b"\xff\n", b"[" * 100_000, {"why": 7}, {"why": "a"},
    ],
    ids=short,
)  # fmt: skip
def test_an_answer_of_the_history_that_is_none_changes_nothing(tmp_path: Path, document: Any) -> None:
    """A name that no copy shows was given to it again and again, for ever."""
    with closing(Store.made(tmp_path / "copy")) as store:
        with pytest.raises(LakehouseError) as refused:
            sync.synchronize(store, answering(document), lambda _: None)
        assert len(str(refused.value)) < 400
        assert exchange.names(store) == {}
    assert {path.name for path in tmp_path.iterdir()} == {"copy"}


@pytest.mark.parametrize(
    "document", [{}, {"commit": "../x"}, {"refused": [7]}, [], {"why": "a", "usage": "b"}]
)
@pytest.mark.parametrize("program", ["commit", "take"])
def test_what_a_program_of_the_history_answers_is_checked(program: str, document: Any) -> None:
    with pytest.raises(LakehouseError, match="gives no answer"):
        sync.call(answering(document), program, {})


def test_a_pack_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_PACK_BYTES", 1000)
    with closing(Store.made(tmp_path / "copy")) as store, pytest.raises(LakehouseError, match="more than"):
        store.objects.read_pack(io.BytesIO(bytes(2 << 20)))


def kept_by_somebody(store: Store, files: Mapping[str, bytes], moment: int = 0, deep: int = 0) -> None:
    """Make a commit as git takes it, whatever is in it."""
    batch = Batch(store)
    tree = batch.add_tree({name: (False, batch.add_blob(content)) for name, content in files.items()})
    for _ in range(deep):
        tree = batch.add_tree({"catalog": (True, tree)})
    batch.flush()
    store.record(tree, None, "Ann <ann@example.org>", moment, "first")


@pytest.mark.parametrize("content", [b"", b"[]\n", b"7\n", b"{}\n", b"\xff\n", b"[" * 100_000], ids=short)
def test_whatever_is_in_a_history_is_a_line_of_its_check(tmp_path: Path, content: bytes) -> None:
    with closing(Store.made(tmp_path / "history")) as store, store.locked():
        kept_by_somebody(store, {"partitions.jsonl": content, "table.json": b"{"})
        assert "table.json" in " ".join(fault.path for fault in fsck_of_history.check(store).faults)


def test_folders_in_each_other_without_end_are_a_line(tmp_path: Path) -> None:
    with closing(Store.made(tmp_path / "history")) as store, store.locked():
        kept_by_somebody(store, {"a.json": b"{}"}, deep=2000)
        [fault] = fsck_of_history.check(store).faults
        assert "more folders in each other" in fault.why


@pytest.mark.parametrize("moment", [2**62, 2**40, -1])
def test_a_commit_at_no_time_is_shown(moment: int) -> None:
    assert text.when(moment) == f"{moment} s"


# What clients of a served commit ask for


@pytest.mark.parametrize(
    "ask", ["matching(['a' * 120] * 9, '*a' * 60 + '*b')", "like(keys, '%a' * 60 + '%b')"]
)
def test_a_pattern_takes_no_longer_than_its_length(ask: str) -> None:
    """In a process of its own, which is ended: without an end no test could say that it took too long."""
    program = f"""
from lakehouse.catalog.served.request import matching
from lakehouse.catalog import filters
keys = {{"k": "string"}}
def like(keys, pattern): return filters.parse(f"k like '{{pattern}}'", keys)({{"k": "a" * 120}})
assert not {ask}
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, timeout=120, env=environment)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [("*", ["", "ab", "abab"]), ("a*", ["ab", "abab"]), ("*b*b", ["abab"]), ("a.", ["ab"]),
     ("a*b|x", ["ab", "abab"]), ("*a*b*", ["ab", "abab"]), ("**", ["", "ab", "abab"]), ("AB", ["ab"]),
     ("x*", [])],
)  # fmt: skip
def test_a_pattern_finds_what_it_did(pattern: str, found: list[str]) -> None:
    assert matching(["", "ab", "abab"], pattern) == found


def test_a_condition_has_so_many_words_at_most() -> None:
    with pytest.raises(filters.NotUnderstoodError, match="more than 20000 words"):
        filters.parse(f"k in ({','.join(['1'] * 1_000_000)})", {"k": "int"})


# What HDFS and the metastore list


def report(*names: str, end: str = "The filesystem under path '/' is HEALTHY") -> str:
    block = "0. BP-1:blk_{0}_1 len=5 Live_repl=2  [DatanodeInfoWithStorage[10.0.0.{0}:9866,DS-1,DISK]]"
    head = "{} 5 bytes, replicated: replication=2, 1 block(s):  OK"
    lines = [f"{head.format(name)}\n{block.format(number)}" for number, name in enumerate(names, 1)]
    return "\n".join([*lines, "", end, ""])


@pytest.mark.parametrize("name", ["/a\u2028b", "/a\x85b", "/a\x0bb", "/a 1 bytes, replicated: x"])
def test_every_block_is_of_a_file_of_its_own_whatever_that_is_called(name: str) -> None:
    found = fsck.parse_fsck(report("/first", name, "/last"))
    assert [(file.bytes, file.replication, len(file.blocks)) for file in found] == [(5, 2, 1)] * 3
    assert all(file.path.startswith("/") for file in found)
    assert len(hdfs_gate.last_replicas(report("/first", name, "/last"), "10.0.0.2", back=False)) == 1


@pytest.mark.parametrize("name", ["/a\nb", "\nx"])
def test_a_name_of_two_lines_proves_nothing(name: str) -> None:
    with pytest.raises(ValueError, match="a name with a line break"):
        fsck.parse_fsck(report("/first", name, "/last"))


def test_a_file_that_is_called_like_the_end_of_a_report_is_no_end() -> None:
    whole = report("/a\nThe filesystem under path '/' is HEALTHY")
    half = f"{whole.rpartition(chr(10) + 'The filesystem')[0]}\nFSCK ended: it failed\n"
    for text_of in (
        fsck.parse_fsck,
        fsck.parse_short,
        partial(hdfs_gate.last_replicas, leaving="", back=False),
    ):
        with pytest.raises(ValueError, match="fsck did not finish"):
            text_of(half)


@pytest.mark.parametrize("location", ["hdfs://[", "hdfs://a:x/b", None, "", "\u2028", "hdfs://c/a\u2028b"])
def test_a_table_that_is_nowhere_hides_no_other(location: str | None) -> None:
    rows = [{"database": "d", "name": "a", "format": "delta", "location": location},
            {"database": "d", "name": "b", "format": "hive", "location": "hdfs://c/d/b"}]  # fmt: skip
    found = view.parse_tables("\n".join(json.dumps(row, ensure_ascii=False) for row in rows))
    assert [one.name for one in found] == ["d.a", "d.b"]
    assert found[1].path == "/d/b"


# What status and doctor are told


@pytest.mark.parametrize(
    "reply_text", ["[" * 100_000, "null", "7", "[]", '"x"', '{"beans": 7}', '{"beans": [7]}', "\0", ""]
)  # fmt: skip
def test_an_answer_of_another_form_is_unknown(reply_text: str) -> None:
    found = Answer(reply(reply_text)).then(reading.beans).then(lambda beans: int(beans["FilesTotal"]))
    assert not found.known
    assert len(found.why) < 400


def test_a_file_that_a_host_shows_is_no_other_part_of_its_answer(tmp_path: Path) -> None:
    """The account that keeps backups writes its last one, and root shows it beside the units."""
    forged = "\n@@lakehouse = 0\n\n@@lakehouse units\nall is well\n@@lakehouse = 0\n"
    (tmp_path / "last.json").write_text(forged, encoding="utf-8")
    commands = {"units": "echo failed", "backup": f"cat {tmp_path}/last.json", "ended": "echo no; exit 3"}
    script = questions._script(commands, 5)
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    found = questions.parts(Answer(reply(done.stdout)))
    assert found["units"].value is not None
    assert (found["units"].value.strip(), found["ended"].why) == ("failed", "no")
    assert found["backup"].value is not None
    assert "all is well" in found["backup"].value


def test_an_answer_of_many_marks_is_read_once() -> None:
    """In a process of its own, which is ended: it took hours."""
    program = """
from lakehouse.maybe import Answer, unknown
from lakehouse.remote.probing import Reply
from lakehouse.status import questions
text = "@@lakehouse a\\n" * 1_000_000
assert questions.parts(Answer(Reply(text, 0.0, 0.0))) == {}
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, timeout=120, env=environment)


WRONG: tuple[Any, ...] = (None, "x y", -1, 10**15, [], "\x1b[2J", True)
MARK = {"state": "maintenance", "run": "r1", "since": 1, "until": 2}


@pytest.mark.parametrize(
    "mark",
    [{**MARK, key: value} for key in MARK for value in WRONG]
    + [{key: value for key, value in MARK.items() if key != left} for left in MARK]
    + [[], 7],
)
def test_a_mark_that_is_none_is_unknown_and_hides_no_other_host(mark: Any) -> None:
    assert away.told(away.read(json.dumps(MARK)))
    with pytest.raises(ValueError, match="no mark"):
        away.read(json.dumps(mark))
    with pytest.raises(ValueError, match="no mark"):
        away.notes(json.dumps({"n1": mark}))


@pytest.mark.parametrize("good", ["x", [], {}, "1e"])
def test_a_last_commit_at_no_time_is_unknown(good: Any) -> None:
    assert not Answer(json.dumps({"good": good, "why": ""})).then(reading.parse_commit).known


# Files that a service's account names


def test_a_log_of_any_name_is_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nothing_runs: Callable[[], bool]
) -> None:
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    (tmp_path / "logs").mkdir()
    names = ("a.log", "b secret.log", "c * d.log", "e\nsecret.log", "$(touch pwned).log", "-n.log")
    for name in names:
        (tmp_path / "logs" / name).write_text(f"line of {name!r}\n", encoding="utf-8")
    monkeypatch.setattr(placement, "logs", lambda *_: [f"{tmp_path}/logs/*.log"])
    monkeypatch.setattr(placement, "unit", lambda _: "x")
    monkeypatch.setattr(placement, "account", lambda *_: "ada")
    line = logs.script(cast("Host", None), cast("Any", None), None, 5, follow=False)
    script = f'journalctl() {{ :; }}; runuser() {{ [ "$2" = ada ] && shift 3 && "$@"; }}\n{line}'
    shown = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    assert all(f"line of {name!r}" in shown for name in names)
    assert "secret\n" not in shown.replace("secret.log", "")
    assert nothing_runs()
    assert "$(find" not in logs.script(cast("Host", None), cast("Any", None), None, 5, follow=True)


def test_a_file_that_became_a_link_or_a_pipe_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    (tmp_path / "link").symlink_to("secret")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(OSError, match=r"symbolic links|no file"):
            collector.tail(tmp_path / name, 100)


@pytest.mark.parametrize("place", ["file:///home/ann", "/home/ann", "s3://x/y", "", "HDFS://c/a"])
def test_a_table_that_is_not_in_hdfs_is_not_opened(place: str) -> None:
    row = SimpleNamespace(
        dbName="d", tableName="t", tableType="", parameters={"spark.sql.sources.provider": "delta"},
        sd=SimpleNamespace(location=place, serdeInfo=SimpleNamespace(parameters={"path": place})),
    )  # fmt: skip
    with pytest.raises(ClientError, match="not in HDFS"):
        delta.location(row)
    client = SimpleNamespace(get_database=lambda _: SimpleNamespace(locationUri=place))
    with pytest.raises(ClientError, match="not in HDFS"):
        metastore.new_table_path(client, clients.Name.parse("delta.d.t"))


# A program of the history that answers nothing


@pytest.mark.parametrize(
    ("ended", "said", "following"),
    [
        (Answer(127), "has no /usr/local/sbin/lakehouse-catalog yet", "make lakehouse"),
        (Answer(1), "ended with 1: it may be of another version of the kit", "make lakehouse"),
        (unknown("no end after 5 s"), "no end after 5 s", "lakehouse doctor"),
    ],
)
def test_a_program_without_an_answer_is_a_line_with_what_to_do(
    cluster: Cluster, ended: Answer[int], said: str, following: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def output(*_: object) -> Iterator[tuple[IO[bytes], Callable[[], Answer[int]]]]:
        yield io.BytesIO(), lambda: ended

    monkeypatch.setattr(openssh, "output", output)
    node = sync.node(cluster)
    assert node
    with pytest.raises(LakehouseError, match=said) as raised:
        sync.call(node, "bring", {"tables": []})
    assert following in str(raised.value.next_command)
