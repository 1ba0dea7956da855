"""Each JVM that systemd keeps takes the options of its own service, and no other JVM does."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from lakehouse.model import inventory, services
from tests.render import golden_files, rendering
from tests.trees import Tree

# Services whose process is no JVM.
NO_JVM = {
    *("postgresql", "catalog_past", "node_exporter", "postgres_exporter", "prometheus", "alertmanager"),
    "probe_exporter",
}
JVMS = {name: row for name, row in services.load().services.items() if name not in NO_JVM}
# What a contributor adds where the role node makes the options, and before what.
MARKED = "  {%- set _ = options.update({service: options[service] + ['-Dkit.test.service=' ~ service]}) -%}\n"
END = "  {%- endfor -%}\n  {{ options }}\n"
MARK = re.compile(r"-Dkit\.test\.service=(\w+)")
Marks = Mapping[str, Counter[str]]


@pytest.fixture(scope="module")
def marks(tmp_path_factory: pytest.TempPathFactory) -> Marks:
    """How often each file of the tests' inventory has the option of which service, by `<host>/<path>`."""
    root = tmp_path_factory.mktemp("options")
    tree = Tree(root / "kit")
    tree.insert("roles/node/vars/main.yml", END, MARKED)
    tree.play("render", "-e", f"lakehouse_render_dir={root / 'files'}")
    files = golden_files.read_tree(root / "files")
    return {path: Counter(MARK.findall(text)) for path, text in files.items() if MARK.search(text)}


def file_of(service: services.Service) -> str:
    """Return the name of the file that has the options of a service's JVM."""
    return "jvm.config" if service.name == "trino" else f"{service.unit}.service"


def test_every_jvm_takes_the_options_of_its_service_once(marks: Marks) -> None:
    hosts = inventory.load(rendering.REPOSITORY / rendering.INVENTORIES["tests"]).hosts
    wanted = {
        (host.name, file_of(row)): {name: 1}
        for host in hosts
        for name, row in JVMS.items()
        if host.groups & set(row.groups)
    }
    assert {(path.split("/")[0], Path(path).name): dict(found) for path, found in marks.items()} == wanted
    assert {name for found in marks.values() for name in found} == JVMS.keys()
