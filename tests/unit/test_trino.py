"""What Trino would refuse at its start is found in the inventory: a line each, and nothing that it takes."""

from __future__ import annotations

import io
import runpy
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lakehouse import artifacts
from lakehouse.artifacts import manifest, releases
from lakehouse.dev import keyfiles, trinokeys
from lakehouse.model import defaults
from lakehouse.model.inventory import Host, Inventory
from lakehouse.run import ROOT
from lakehouse.validation import keylists, trino
from lakehouse.validation.finding import Finding
from plugins.module_utils.lakehouse import probes
from tests.render import golden_files
from tests.unit import patience

Finder = Callable[[Host], list[Finding]]
POSTGRESQL = {"connector.name": "postgresql", "connection-url": "jdbc:postgresql://db/x"}


def a_host(name: str = "n1", groups: set[str] | None = None, **variables: Any) -> Host:
    return Host(name, "10.0.0.1", frozenset(groups or set()), variables)


def found(finder: Finder, **variables: Any) -> list[str]:
    return [str(one) for one in finder(a_host(**variables))]


@pytest.mark.parametrize(
    ("placement", "line"),
    [
        (
            {"n1": {"trino_workers"}},
            "FAIL trino.groups n1: group trino_workers has hosts, but trino_",
        ),
        ({"n1": {"trino_coordinator"}}, "FAIL trino.groups n1: group trino_coordinator has a host, but"),
    ],
)
def test_groups_that_make_no_cluster(placement: dict[str, set[str]], line: str) -> None:
    hosts = tuple(a_host(name, groups) for name, groups in placement.items())
    [finding] = trino.groups(Inventory(Path(), hosts))
    assert str(finding).startswith(line)


@pytest.mark.parametrize("groups", [set(), {"trino_coordinator", "trino_workers"}])
def test_groups_that_do(groups: set[str]) -> None:
    assert trino.groups(Inventory(Path(), (a_host(groups=groups),))) == []


def test_hosts_of_trino_need_the_secret_of_its_nodes() -> None:
    [finding] = trino.shared_secret(a_host(groups={"trino_workers"}))
    assert str(finding).startswith("FAIL secrets.missing n1: trino_shared_secret is not set: copy it from ")
    assert trino.shared_secret(a_host(groups={"trino_workers"}, trino_shared_secret="")) == []
    assert trino.shared_secret(a_host(groups={"datanodes"})) == []


def test_a_query_that_leaves_no_room_in_the_heap() -> None:
    assert found(trino.query, trino_query_max_memory_per_node_mb=800, trino_heap_mb=1024) == [
        "FAIL trino.heap n1: trino_query_max_memory_per_node_mb is 800, and the heap is 1024 MiB, of which "
        "307 are kept (expected at most 717): lower it, or leave it out: Trino would not start"
    ]
    assert found(trino.query, trino_query_max_memory_per_node_mb=717, trino_heap_mb=1024) == []
    # The heap follows from the machine, which was not looked at yet.
    assert found(trino.query, trino_query_max_memory_per_node_mb=800) == []
    assert found(trino.query, trino_query_max_memory_per_node_mb=8000, node_memory_mb=8192)[0].startswith(
        "FAIL"
    )
    assert found(trino.query, trino_query_max_memory_per_node_mb=-5, trino_heap_mb=1024) == []


def test_a_catalog_that_is_like_one_of_the_role_needs_nothing_of_its_own() -> None:
    open_to_all = {"name": "more", "like": "delta", "properties": {"delta.security": None}}
    assert found(trino.catalogs, trino_catalogs=[open_to_all]) == []
    [line] = found(trino.catalogs, trino_catalogs=[{**open_to_all, "like": "oracle"}])
    assert "trino_catalogs[0] (more) is like oracle, which is no catalog of the role" in line
    [line] = found(trino.keys, trino_catalogs=[{**open_to_all, "properties": {"delta.securty": "x"}}])
    assert "did you mean delta.security?" in line


def test_a_catalog_named_twice() -> None:
    both = [{"name": "sales", "properties": POSTGRESQL}] * 2
    assert found(trino.catalogs, trino_catalogs=both) == [
        "FAIL trino.catalogs n1: trino_catalogs[1]: catalog sales is there already "
        "(expected every name once): give one of them another name"
    ]


def test_a_catalog_named_like_one_of_the_role() -> None:
    [line] = found(trino.catalogs, trino_catalogs=[{"name": "hive", "properties": POSTGRESQL}])
    assert line.endswith("change it by trino_catalog_properties.hive")


@pytest.mark.parametrize(
    ("properties", "fact"),
    [
        ({}, "trino_catalogs[0] (more) lacks connector.name"),
        ({"connector.name": "postgresql"}, "trino_catalogs[0] (more) lacks connection-url"),
        ({"connector.name": "iceberg"}, "trino_catalogs[0] (more) lacks hive.metastore.uri"),
        ({"connector.name": "memory"}, "wants the connector memory, which no loaded plugin brings"),
    ],
)
def test_a_catalog_that_lacks_something(properties: dict[str, Any], fact: str) -> None:
    [line] = found(trino.catalogs, trino_catalogs=[{"name": "more", "properties": properties}])
    assert fact in line


PASSWORD = {**POSTGRESQL, "connection-password": "pearl"}


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({"trino_catalogs": [{"name": "shop", "properties": PASSWORD}]}, "trino_catalogs[0].properties"),
        (
            {"trino_catalog_properties": {"postgresql": {"connection-password": "pearl"}}},
            "trino_catalog_properties.postgresql",
        ),
    ],
)
def test_a_password_in_a_file_that_all_may_read(variables: dict[str, Any], place: str) -> None:
    assert found(trino.secrets, **variables) == [
        f"FAIL trino.secrets n1: {place} has connection-password in plain text, in a file that all may read: "
        "put it into trino_secrets under a NAME, and write connection-password: ${ENV:NAME}"
    ]


@pytest.mark.parametrize(
    "properties",
    [
        {"connection-password": "${ENV:SHOP_PASSWORD}"},
        {"connection-password": None},
        {"s3.aws-access-key": "AKIA", "gcs.use-access-token": True},
    ],
)
def test_what_is_no_password(properties: dict[str, Any]) -> None:
    assert found(trino.secrets, trino_catalog_properties={"postgresql": properties}) == []


@pytest.mark.parametrize(
    ("key", "secret"),
    [
        ("s3.aws-secret-key", True),
        ("iceberg.rest-catalog.oauth2.credential", True),
        ("azure.access-key", True),
        ("keystore-type", False),
    ],
)
def test_which_keys_hold_secrets(key: str, secret: bool) -> None:
    assert bool(found(trino.secrets, trino_catalog_properties={"iceberg": {key: "pearl"}})) is secret


def test_a_catalog_whose_plugin_is_loaded_too() -> None:
    more = [{"name": "more", "properties": {"connector.name": "memory"}}]
    assert found(trino.catalogs, trino_catalogs=more, trino_plugins=["memory"]) == []


@pytest.mark.parametrize(
    ("variables", "line"),
    [
        (
            {"trino_config": {"query.max-memroy": "1GB"}},
            "Trino 476 has no key query.max-memroy (trino_config): did you mean query.max-memory?",
        ),
        (
            {"trino_catalog_properties": {"iceberg": {"iceberg.file-fromat": "ORC"}}},
            "key iceberg.file-fromat (trino_catalog_properties.iceberg): did you mean iceberg.file-format?",
        ),
        (
            {"trino_catalogs": [{"name": "s", "properties": {**POSTGRESQL, "conection-user": "x"}}]},
            "has no key conection-user (trino_catalogs[0].properties): did you mean connection-user?",
        ),
        (
            {"trino_catalog_properties": {"icberg": {}}},
            "trino_catalog_properties.icberg: there is no catalog icberg: the catalogs are iceberg, delta,",
        ),
        ({"trino_node": {"node.nonsense": 1}}, "has no key node.nonsense (trino_node)"),
    ],
)
def test_keys_that_trino_does_not_know(variables: dict[str, Any], line: str) -> None:
    [got] = found(trino.keys, **variables)
    assert line in got


@pytest.mark.parametrize(
    "variables",
    [
        {"trino_config": {"query.max-memory": "1GB", "exchange.http-client.request-timeout": "10s"}},
        {"trino_config": {"no.such.key": None}},
        {"trino_catalog_properties": {"tpch": None, "hive": {"hive.max-partitions-per-scan": 5}}},
        {
            "trino_catalogs": [
                {"name": "s", "properties": POSTGRESQL | {"case-insensitive-name-matching": True}}
            ]
        },
        {"trino_catalogs": [{"name": "s", "properties": {"connector.name": "of_a_stranger", "x": 1}}]},
        {"trino_node": {"node.data-dir": "/srv"}},
    ],
)
def test_keys_that_it_knows_or_never_sees(variables: dict[str, Any]) -> None:
    assert found(trino.keys, **variables) == []


def test_the_keys_are_those_of_the_version_that_is_installed() -> None:
    assert trino.known_keys().version == manifest.load(ROOT / "versions.yml", locked=False).versions["trino"]


def test_a_java_too_old_is_refused() -> None:
    bill = manifest.load(ROOT / "versions.yml", locked=False)
    lines = manifest.pair_findings(bill.pairs, {**bill.versions, "trino_java": "21"})
    assert lines == [
        "trino_java 21 with trino 476: Trino 476 does not start on a Java older than 24; allowed: 25"
    ]


def test_the_keys_are_those_of_the_release() -> None:
    bill = manifest.load(ROOT / "versions.yml")
    archive = releases.archive(bill.component("trino"), artifacts.cache_dir())
    if not archive.exists():
        pytest.skip(f"no {archive.name} in the cache")
    text = keyfiles.formatted(trinokeys.extracted(bill, archive), trinokeys.PROGRAM)
    assert text == keylists.path("trino").read_text(encoding="utf-8")


def test_every_catalog_of_the_role_has_its_connector() -> None:
    assert [one["name"] for one in defaults.role("trino")["_trino_catalogs"]] == list(trino.own_catalogs())


def test_every_key_of_the_role_is_known(rendered_properties: dict[str, set[str]]) -> None:
    known = trino.known_keys()
    own = {"connector.name"} | known.catalogs
    for name, connector in trino.own_catalogs().items():
        assert rendered_properties.get(f"catalog/{name}", set()) <= own | known.connectors[connector]
    assert rendered_properties["config"] <= known.server
    assert rendered_properties["node"] <= known.server | trino.NODE_KEYS


@pytest.fixture
def rendered_properties() -> dict[str, set[str]]:
    """The keys of every properties file of the coordinator in a container, as the golden files have them."""
    folder, suffix = "trino/etc/trino/", ".properties"
    return {
        path.removeprefix(folder).removesuffix(suffix): {
            line.partition("=")[0] for line in text.splitlines() if line[:1] != "#"
        }
        for path, text in golden_files.expected()["compose"].items()
        if path.startswith(folder) and path.endswith(suffix)
    }


def a_class(annotation: bytes, key: bytes) -> bytes:
    """Assemble a class file with one method that carries an annotation with one text."""
    texts = [b"RuntimeVisibleAnnotations", annotation, b"value", key]
    pool = b"".join(b"\x01" + struct.pack(">H", len(text)) + text for text in texts)
    # A number of eight bytes counts twice in the pool.
    pool += b"\x05" + bytes(8)
    body = struct.pack(">HHHHcH", 1, 2, 1, 3, b"s", 4)
    method = bytes(6) + struct.pack(">HHI", 1, 1, len(body)) + body
    head = b"\xca\xfe\xba\xbe" + bytes(4) + struct.pack(">H", len(texts) + 3)
    return head + pool + bytes(6) + bytes(2) + bytes(2) + struct.pack(">H", 1) + method


def test_keys_are_read_from_classes() -> None:
    config = b"Lio/airlift/configuration/Config;"
    assert trinokeys.keys_of_class(a_class(config, b"a.key")) == {"a.key"}
    assert trinokeys.keys_of_class(a_class(b"Lorg/other/Config;", b"a.key")) == set()
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as jar:
        jar.writestr("x/OneConfig.class", a_class(config, b"one"))
        jar.writestr("x/Two.class", a_class(config, b"two"))
    assert trinokeys.keys_of_jar(raw.getvalue()) == {"one"}


def drain(tmp_path: Path) -> str:
    script = tmp_path / "drain"
    script.write_text((ROOT / "templates/trino-drain.j2").read_text(encoding="utf-8"), encoding="utf-8")
    nobody = "http://127.0.0.1:9"
    done = subprocess.run(
        [sys.executable, str(script), "--worker", nobody, "--coordinator", nobody, "--user", "t",
         "--pid", "1", "--seconds", "60"],
        capture_output=True, text=True, check=True, timeout=patience.SECONDS,
    )  # fmt: skip
    return done.stdout


def test_a_worker_without_coordinator_is_stopped_at_once(tmp_path: Path) -> None:
    assert drain(tmp_path).startswith("not drained: ")


def ago(seconds: float) -> str:
    return datetime.fromtimestamp(1_800_000_000 - seconds, UTC).isoformat(timespec="milliseconds")


@pytest.mark.parametrize(
    ("query", "counts"),
    [
        ({"state": "RUNNING", "queryStats": {}}, True),
        ({"state": "FINISHED", "queryStats": {"endTime": ago(3)}}, True),
        ({"state": "FAILED", "queryStats": {"endTime": ago(3)}, "session": {"source": "trino-cli"}}, True),
        ({"state": "FINISHED", "queryStats": {"endTime": ago(30)}}, False),
        ({"state": "FINISHED"}, False),
        ({"state": "RUNNING", "session": {"source": "readiness"}}, False),
    ],
)
def test_a_worker_is_drained_for_who_asks_and_who_may_ask_again(
    query: Mapping[str, Any], *, counts: bool
) -> None:
    program = runpy.run_path(str(ROOT / "templates/trino-drain.j2"))
    assert program["counts"](query, ago(10)) is counts


class Answers:
    """A coordinator that gives these answers, one after the other, and keeps what it was asked."""

    def __init__(self, *bodies: str) -> None:
        self.bodies = list(bodies)
        self.asked: list[bytes | None] = []

    def __call__(self, _address: str, body: bytes | None, _headers: object, *, most: int) -> bytes:
        assert most
        self.asked.append(body)
        return self.bodies.pop(0).encode()


PROBE = {"kind": "trino", "url": "http://c:1", "user": "t", "nodes": 3, "tpch": False}


@pytest.mark.parametrize(
    ("bodies", "answer"),
    [
        (['{"nextUri": "http://c:1/2"}', '{"data": [[3]], "nextUri": "http://c:1/3"}', "{}"], None),
        (['{"data": [[2]]}'], f"http://c:1: {probes.ACTIVE_NODES}: [[2]] (expected 3)"),
        (['{"error": {"message": "no nodes"}}'], "http://c:1: no nodes"),
    ],
)
def test_the_gate_asks_a_query(
    monkeypatch: pytest.MonkeyPatch, bodies: list[str], answer: str | None
) -> None:
    monkeypatch.setattr(probes, "fetch", Answers(*bodies))
    assert probes.ask(PROBE) == answer


@pytest.mark.parametrize("tpch", [True, False])
def test_the_gate_scans_generated_data_where_there_is_the_catalog(
    monkeypatch: pytest.MonkeyPatch, tpch: bool
) -> None:
    coordinator = Answers('{"data": [[3]]}')
    monkeypatch.setattr(probes, "fetch", coordinator)
    assert probes.ask(PROBE | {"tpch": tpch}) is None
    [query] = coordinator.asked
    assert query is not None
    assert (probes.TPCH_SCAN.encode() in query) is tpch
