"""What each inventory becomes: its golden files to the letter, well-formed, without secrets or chance."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from lakehouse import yamlfile
from lakehouse.model import inventory, services
from tests.render import golden_files, rendering

Rendered = dict[str, dict[str, str]]
READS = re.compile(r"^X-Reads=(.+)$", re.MULTILINE)
each_inventory = pytest.mark.parametrize("name", rendering.INVENTORIES)


@pytest.mark.parametrize("name", rendering.GOLDEN)
def test_it_is_rendered_as_the_golden_files_say(rendered: Rendered, name: str) -> None:
    difference = golden_files.changes(name, rendered[name])
    assert not difference, "next: make golden, then read git diff\n" + "\n".join(difference)


@each_inventory
def test_every_host_has_the_units_of_its_groups_alone(rendered: Rendered, name: str) -> None:
    for host in inventory.load(rendering.REPOSITORY / rendering.INVENTORIES[name]).hosts:
        units = {Path(path).stem for path in rendered[name] if path.startswith(f"{host.name}/etc/systemd/")}
        rows = [service for service in services.load().services.values() if service.user]
        own = [service for service in rows if host.groups.intersection(service.groups)]
        assert {service.unit for service in own if not service.switch} <= units, host.name
        assert units & {service.unit for service in rows} <= {service.unit for service in own}, host.name


@cache
def _secret_files() -> tuple[str, ...]:
    """Return the end of the path of each secret file, behind the last variable in it."""
    ends = []
    for path in sorted((rendering.REPOSITORY / "roles").glob("*/vars/main.yml")):
        document = yamlfile.read(path)
        for entry in _mappings(document):
            if entry.get("secret"):
                dest = str(entry["dest"])
                while name := re.fullmatch(r"{{ (\w+) }}", dest):
                    dest = str(document[name[1]])
                ends.append(dest.rpartition("}}")[2])
    assert all(ends)
    return tuple(ends)


def _mappings(value: Any) -> Iterator[dict[str, Any]]:
    """Give every mapping in a document."""
    if isinstance(value, dict):
        yield value
    for entry in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _mappings(entry)


@each_inventory
def test_what_a_unit_reads_is_there(rendered: Rendered, name: str) -> None:
    units = {path: text for path, text in rendered[name].items() if "/etc/systemd/system/" in path}
    for path, text in units.items():
        reads = READS.findall(text)
        daemon = "WantedBy=multi-user.target" in text or path.endswith(".service.d/lakehouse.conf")
        # These have all their settings on their command lines.
        without = path.endswith(("-node-exporter.service", "-postgres-exporter.service"))
        assert bool(reads) == (daemon and not without), path
        host = path.split("/")[0]
        folders = {str(parent) for file in rendered[name] for parent in Path(file).parents}
        # A release is no file of the inventory, and a secret one is not written here.
        others = {file for file in reads if not file.endswith(("/current", *_secret_files()))}
        assert not [file for file in others if host + file not in rendered[name].keys() | folders], path


@each_inventory
def test_no_other_host_has_files(rendered: Rendered, name: str) -> None:
    hosts = {host.name for host in inventory.load(rendering.REPOSITORY / rendering.INVENTORIES[name]).hosts}
    assert {path.split("/")[0] for path in rendered[name]} == hosts


@each_inventory
def test_every_site_file_is_well_formed_and_sorted(rendered: Rendered, name: str) -> None:
    sites = [text for path, text in rendered[name].items() if path.endswith(".xml")]
    assert sites
    for text in sites:
        properties = [element.text or "" for element in ET.fromstring(text.encode()).iter("name")]
        assert properties == sorted(set(properties))


@each_inventory
def test_every_file_ends_with_one_line_break_and_no_line_with_a_blank(rendered: Rendered, name: str) -> None:
    for path, text in rendered[name].items():
        assert text.endswith("\n"), path
        assert not text.endswith("\n\n"), path
        assert not re.search(r"[ \t]$", text, re.MULTILINE), path


@each_inventory
def test_no_file_holds_the_password(rendered: Rendered, name: str) -> None:
    assert not [path for path, text in rendered[name].items() if rendering.MARK in text]
    assert not [path for path in rendered[name] if path.endswith((".env", "secrets.json"))]


@each_inventory
def test_no_file_knows_the_machine_that_rendered_it(rendered: Rendered, name: str, tmp_path: Path) -> None:
    own = (str(rendering.REPOSITORY), str(tmp_path.parent), str(Path.home()) + "/")
    assert not [(path, word) for path, text in rendered[name].items() for word in own if word in text]


def test_a_second_rendering_is_the_same_to_the_byte(rendered: Rendered) -> None:
    assert rendered["again"] == rendered["tests"]


def test_an_inventory_with_full_tables_means_what_it_meant(tmp_path: Path) -> None:
    copied = rendering.copy(Path("tests/render/full-tables"), tmp_path)
    assert "WARN" not in rendering.render(copied, tmp_path / "build", *rendering.NO_SECRETS)
    assert golden_files.read_tree(tmp_path / "build") == golden_files.expected()["three-node"]


def test_what_no_role_knows_is_refused_of_containers_too(tmp_path: Path) -> None:
    copied = rendering.copy(rendering.INVENTORIES["compose"], tmp_path)
    (copied / "group_vars/all/more.yml").write_text("trino_heap_m: 1\n", encoding="utf-8")
    with pytest.raises(RuntimeError, match=r"trino_heap_m: did you mean trino_heap_mb\?"):
        rendering.render(copied, tmp_path / "build", *rendering.NO_SECRETS)
    assert not (tmp_path / "build").exists()


def test_the_last_word_on_what_a_role_sets_itself_is_the_users(tmp_path: Path) -> None:
    copied = rendering.copy(rendering.INVENTORIES["three-node"], tmp_path)
    words = {
        "dfs.namenode.handler.count": "77",
        "dfs.heartbeat.interval": "5s",
        "dfs.permissions.enabled": None,
    }
    (copied / "group_vars/all/more.yml").write_text(json.dumps({"hdfs_site": words}), encoding="utf-8")
    rendering.render(copied, tmp_path / "build", *rendering.NO_SECRETS)
    said = golden_files.read_tree(tmp_path / "build")
    sites = {path.split("/")[-2]: said[path] for path in said if path.endswith("/hdfs-site.xml")}
    assert {"namenode", "datanode"} <= sites.keys()
    for daemon in ("namenode", "datanode"):
        found = {
            one.findtext("name"): one.findtext("value")
            for one in ET.fromstring(sites[daemon]).iter("property")
        }
        assert {key: found.get(key) for key in words} == words, daemon


def test_with_secrets_the_folder_is_its_owners_alone(tmp_path: Path) -> None:
    copied = rendering.copy(rendering.INVENTORIES["compose"], tmp_path / "copy")
    target = tmp_path / "build" / "lakehouse"
    before = os.umask(0o077)
    try:
        rendering.render(copied, target, "--limit", "postgres,metastore,trino")
    finally:
        os.umask(before)
    assert target.stat().st_mode & 0o777 == 0o700
    # The users of containers are not this one, and must read theirs whatever its mask.
    folders = [path for host in target.iterdir() for path in (host, *host.rglob("*")) if path.is_dir()]
    assert {folder.stat().st_mode & 0o777 for folder in folders} == {0o755}
    holding = {path for path, text in golden_files.read_tree(target).items() if rendering.MARK in text}
    assert holding == {
        "postgres/etc/lakehouse/secrets.json",
        "metastore/etc/hive/credentials.json",
        "trino/etc/trino/trino.env",
    }
