"""What `make compose-up` reads, refuses, names and builds; without Docker."""

from __future__ import annotations

import io
import itertools
import json
import re
import stat
import tarfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, cast

import docker
import pytest
from docker.errors import ImageNotFound

from lakehouse import run
from lakehouse.artifacts import manifest, releases
from lakehouse.artifacts.cache import Cache
from lakehouse.artifacts.coordinates import Coordinate
from lakehouse.artifacts.manifest import Artifact, Manifest
from lakehouse.errors import LakehouseError
from lakehouse.local.compose import addresses, checks, dotenv, images, names, plugin, sbom, stack
from lakehouse.local.nodes import docker_api
from lakehouse.model import inventory

COMPOSE = run.ROOT / "inventory" / "compose"


def chosen(**environment: str) -> dotenv.Settings:
    """Return the settings of compose/.env where these variables are set."""
    return dotenv.load(environment=environment)


class TestSettings:
    """What holds: the environment, then the person's file, then compose/.env."""

    def test_the_file_of_the_repository_has_every_value(self) -> None:
        found = chosen()
        assert (found.file, found.project, found.profiles) == (dotenv.DEFAULT_FILE, "lakehouse", ("all",))
        assert found.inventory == "inventory/compose"
        assert all(found.values.values())
        assert found.rendered == run.BUILD / "compose" / "lakehouse"

    def test_another_file_may_leave_things_out(self, tmp_path: Path) -> None:
        own = tmp_path / "my.env"
        own.write_text("COMPOSE_PROJECT_NAME=mine\nMETASTORE_PORT=19083\n", encoding="utf-8")
        found = dotenv.load(own, {})
        assert (found.file, found.project) == (own, "mine")
        assert found.ports == chosen().ports | {"METASTORE_PORT": "19083"}

    def test_the_environment_wins(self, tmp_path: Path) -> None:
        own = tmp_path / "my.env"
        own.write_text("COMPOSE_PROJECT_NAME=mine\n", encoding="utf-8")
        assert dotenv.load(own, {"COMPOSE_PROJECT_NAME": "yours", "HOME": "/"}).project == "yours"
        assert "HOME" not in dotenv.load(own, {"HOME": "/"}).values

    def test_what_the_file_leaves_out_may_be_set(self, tmp_path: Path) -> None:
        own = tmp_path / "my.env"
        own.write_text("BASE_IMAGE=debian:mine\n", encoding="utf-8")
        assert "BASE_IMAGE" not in chosen(BASE_IMAGE="").values
        assert dotenv.load(own, {}).values["BASE_IMAGE"] == "debian:mine"
        assert dotenv.load(own, {"BASE_IMAGE": "debian:yours"}).values["BASE_IMAGE"] == "debian:yours"

    def test_an_empty_variable_is_none(self) -> None:
        assert chosen(COMPOSE_PROJECT_NAME="").project == "lakehouse"

    def test_one_number_moves_every_port(self, tmp_path: Path) -> None:
        own = tmp_path / "my.env"
        own.write_text("PORT_OFFSET=100\nTRINO_HTTP_PORT=9000\n", encoding="utf-8")
        found, first = dotenv.load(own, {}), chosen()
        moved = {name: str(int(port) + 100) for name, port in first.ports.items()}
        assert found.ports == moved | {"TRINO_HTTP_PORT": "9100"}
        # Who gets these values does not add it again.
        assert dotenv.load(own, found.values).ports == found.ports

    def test_an_offset_that_is_no_number_is_refused(self) -> None:
        with pytest.raises(
            LakehouseError, match=r"PORT_OFFSET is 'far' \(expected a number\); next: change it"
        ):
            chosen(PORT_OFFSET="far")

    @pytest.mark.parametrize(
        "environment",
        [
            {"DATANODES": "3", "COMPOSE_PROFILES": "core"},
            {"COMPOSE_PROFILES": "core,three-datanodes"},
            {"DATANODES": "3", "COMPOSE_PROFILES": "core, three-datanodes"},
        ],
    )
    def test_three_datanodes_are_an_inventory_and_a_profile(self, environment: dict[str, str]) -> None:
        found = chosen(**environment)
        assert found.inventory == "inventory/compose-three"
        assert found.profiles == ("core", "three-datanodes")
        assert {"datanode1", "datanode2", "datanode3"} < set(names.of(found).split())

    @pytest.mark.parametrize("count", ["2", "0", "many"])
    def test_another_number_is_refused(self, count: str) -> None:
        with pytest.raises(LakehouseError) as refused:
            chosen(DATANODES=count)
        assert str(refused.value) == (
            f"DATANODES is '{count}' (expected 1 or 3); next: make compose-up DATANODES=3"
        )

    def test_a_file_that_is_missing_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(LakehouseError, match=r"none\.env does not exist; next: cp compose/\.env "):
            dotenv.load(tmp_path / "none.env", {})

    def test_the_file_says_what_the_inventory_does_without_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in chosen().values:
            monkeypatch.delenv(name, raising=False)
        silent = inventory.load(COMPOSE).hosts
        ports = [host.variables["lakehouse_ports"] for host in silent]
        for name, value in chosen().values.items():
            monkeypatch.setenv(name, value)
        said = inventory.load(COMPOSE).hosts
        assert ports == [host.variables["lakehouse_ports"] for host in said]


class TestChecks:
    """What is refused before anything is started, in a line each."""

    @pytest.mark.parametrize("name", ["lakehouse", "a", "my-lakehouse2"])
    def test_a_good_name(self, name: str) -> None:
        assert not checks.name(chosen(COMPOSE_PROJECT_NAME=name))

    @pytest.mark.parametrize("name", ["my_lakehouse", "Mine", "-a", "a-", "a b"])
    def test_a_name_that_no_uri_takes(self, name: str) -> None:
        (line,) = checks.name(chosen(COMPOSE_PROJECT_NAME=name))
        assert line.startswith(f"COMPOSE_PROJECT_NAME '{name}' ")
        assert "; next: use small letters, digits and dashes in " in line
        assert ("_" in line.partition("contains")[2]) == ("_" in name)

    @pytest.mark.parametrize("names", ["core", "trino, flink", "all", "core,client"])
    def test_good_profiles(self, names: str) -> None:
        assert not checks.profiles(chosen(COMPOSE_PROFILES=names))

    @pytest.mark.parametrize(
        ("names", "words"),
        [("core,spark", "has no profile spark;"), (",", "is empty;"), ("client", "is empty;")],
    )
    def test_profiles_that_start_nothing(self, names: str, words: str) -> None:
        (line,) = checks.profiles(chosen(COMPOSE_PROFILES=names))
        assert words in line
        assert "; next: choose of core, trino, flink, all in " in line

    @pytest.mark.parametrize("port", ["no", "80", "65536", "-1", "9000.0"])
    def test_what_is_no_port(self, port: str) -> None:
        (line,) = checks.ports(chosen(METASTORE_PORT=port))
        assert line.startswith(f"METASTORE_PORT is '{port}' (expected 1024 to 65535); next: change it in ")

    @pytest.mark.parametrize("port", ["9000", "09000"])
    def test_a_port_that_stands_there_twice(self, port: str) -> None:
        (line,) = checks.ports(chosen(METASTORE_PORT=port))
        assert line.startswith(
            "METASTORE_PORT is 9000, as NAMENODE_RPC_PORT is; next: change one of them in "
        )

    @pytest.mark.parametrize(
        ("variable", "port", "service"),
        [
            ("DATANODE1_DATA_PORT", "9867", "datanode1"),
            ("SPARK_MASTER_HTTP_PORT", "7077", "spark-master"),
            ("FLINK_REST_PORT", "6124", "flink-jobmanager"),
        ],
    )
    def test_a_port_that_its_container_has_for_itself(self, variable: str, port: str, service: str) -> None:
        (line,) = checks.ports(chosen(**{variable: port}))
        assert line.startswith(f"{variable} is {port}, which {service} has inside; next: change it in ")

    def test_a_port_that_another_container_has_inside_is_free(self) -> None:
        assert not checks.ports(chosen(METASTORE_PORT="7077", TRINO_HTTP_PORT="9867"))

    def test_the_ports_of_the_repository_are_good(self) -> None:
        assert not checks.ports(chosen())

    def test_a_busy_port_is_named_with_who_asks_for_it(self) -> None:
        (line,) = checks.busy(chosen(), {9000}, lambda _, port: port not in {9000, 9083})
        assert line.startswith("port 9083 of METASTORE_PORT is busy on 127.0.0.1; next: ss -ltnp")

    @pytest.mark.parametrize(
        ("profiles", "wanted"), [("core", 3072), ("all", 8192), ("core,client", 4032), ("trino,flink", 7232)]
    )
    def test_little_memory_is_refused(self, profiles: str, wanted: int) -> None:
        found = chosen(COMPOSE_PROFILES=profiles)
        assert not checks.memory(found, wanted)
        (line,) = checks.memory(found, wanted // 2)
        assert f"Docker has {wanted // 2} MB of memory" in line
        assert f"need {wanted} MB; next: " in line

    def test_the_small_stack_is_advised_where_it_fits(self) -> None:
        advice = ", or: COMPOSE_PROFILES=core DATANODES=1 make compose-up (3072 MB)"
        three = chosen(COMPOSE_PROFILES="core", DATANODES="3")
        for found, total, fits in ((chosen(), 4000, True), (three, 3100, True), (three, 2000, False)):
            (line,) = checks.memory(found, total)
            assert line.endswith(f"; next: give Docker more{advice if fits else ''}")

    def test_a_busy_port_of_what_does_not_run_is_no_matter(self) -> None:
        assert not checks.busy(chosen(COMPOSE_PROFILES="core"), set(), lambda _, port: port != 8090)

    @pytest.mark.parametrize("value", ["::1", "localhost", "127.0.0"])
    def test_what_is_no_address(self, value: str) -> None:
        (line,) = checks.address(chosen(BIND_ADDRESS=value), lambda *_: True)
        assert line.startswith(f"BIND_ADDRESS {value!r} is no IPv4 address of this computer; next: ip ")

    def test_an_address_of_another_computer(self) -> None:
        (line,) = checks.address(chosen(BIND_ADDRESS="192.0.2.1"), lambda *_: False)
        assert "192.0.2.1" in line

    def test_all_that_is_wrong_is_said_at_once_a_line_each(self, monkeypatch: pytest.MonkeyPatch) -> None:
        own = SimpleNamespace(
            attrs={"NetworkSettings": {"Ports": {"9000/tcp": [{"HostIp": "127.0.0.1", "HostPort": "9000"}]}}}
        )
        client = cast(
            "docker.DockerClient",
            SimpleNamespace(
                info=lambda: {"MemTotal": 2 << 30},
                containers=SimpleNamespace(list=lambda **_: [own]),
            ),
        )
        # Its own container holds 9000; who holds 9083 is a stranger.
        monkeypatch.setattr(checks, "_is_free", lambda _, port: port not in {9000, 9083})
        with pytest.raises(LakehouseError) as refused:
            checks.refuse(client, chosen(COMPOSE_PROFILES="core"))
        busy, memory = str(refused.value).splitlines()
        assert busy.startswith("port 9083 of METASTORE_PORT is busy on 127.0.0.1; next: ")
        assert memory == (
            "Docker has 2048 MB of memory, the profiles core need 3072 MB; next: give Docker more"
        )

    def test_docker_is_not_asked_about_settings_that_are_none(self) -> None:
        asked: Any = None
        with pytest.raises(LakehouseError, match=r"^METASTORE_PORT is 'no'.*; next: change it in .*env$"):
            checks.refuse(asked, chosen(METASTORE_PORT="no"))

    def test_the_ports_of_a_container_are_its_own(self) -> None:
        found = {"8080/tcp": [{"HostIp": "127.0.0.1", "HostPort": "18080"}], "7077/tcp": None}
        assert checks.published({"NetworkSettings": {"Ports": found}}) == {18080}
        assert checks.published({"NetworkSettings": {"Ports": None}}) == set()


class TestDigest:
    """What the stack was started with."""

    def test_it_changes_with_every_file_of_a_container(self, tmp_path: Path) -> None:
        file = tmp_path / "namenode" / "etc" / "core-site.xml"
        file.parent.mkdir(parents=True)
        seen = {stack.digest(tmp_path)}
        for change in (
            lambda: file.write_text("a"),
            lambda: file.write_text("b"),
            lambda: file.chmod(0o755),
            lambda: (file.parent / "link").symlink_to("core-site.xml"),
            file.unlink,
        ):
            change()
            assert stack.digest(tmp_path) not in seen
            seen.add(stack.digest(tmp_path))

    def test_it_is_the_same_for_the_same(self, tmp_path: Path) -> None:
        (tmp_path / "namenode").mkdir()
        (tmp_path / "namenode" / "a").write_text("a")
        before = stack.digest(tmp_path)
        (tmp_path / stack.STARTED_WITH).write_text(before)
        assert stack.digest(tmp_path) == before


class TestMirror:
    """The folder that containers have mounted becomes what was rendered."""

    def test_what_became_of_another_kind_is_replaced(self, tmp_path: Path) -> None:
        def link(path: Path) -> None:
            path.symlink_to(tmp_path / "elsewhere")

        def file(path: Path) -> None:
            path.write_text("file")

        def folder(path: Path) -> None:
            path.mkdir()
            (path / "inside").write_text("inside")

        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / "inside").write_text("untouched")
        kinds = (link, file, folder)
        for before, after in itertools.permutations(range(len(kinds)), 2):
            source, target = tmp_path / f"source{before}{after}", tmp_path / f"target{before}{after}"
            for root, kind in ((target, kinds[before]), (source, kinds[after])):
                (root / "trino").mkdir(parents=True)
                kind(root / "trino" / "catalog")
            stack.mirror(source, target)
            assert stack.digest(target) == stack.digest(source), (before, after)
        assert (tmp_path / "elsewhere" / "inside").read_text() == "untouched"

    def test_it_has_what_is_new_and_nothing_that_is_gone(self, tmp_path: Path) -> None:
        source, target = tmp_path / "source", tmp_path / "target"
        for folder in (source / "trino" / "catalog", target / "trino" / "catalog", target / "trino" / "old"):
            folder.mkdir(parents=True)
        (source / "trino" / "catalog" / "delta").write_text("new")
        (source / "trino" / "catalog" / "delta").chmod(0o755)
        (source / "trino" / "link").symlink_to("catalog/delta")
        (target / "trino" / "catalog" / "delta").write_text("old")
        (target / "trino" / "catalog" / "tpch").write_text("gone")
        (target / "trino" / "old" / "file").write_text("gone")
        (target / stack.STARTED_WITH).write_text("kept")
        same = (target / "trino").stat().st_ino
        for _ in range(2):
            stack.mirror(source, target)
            assert stack.digest(target) == stack.digest(source)
        assert (target / "trino").stat().st_ino == same
        assert (target / stack.STARTED_WITH).read_text() == "kept"


class TestForget:
    """What goes with the volumes of a stack, and what does not go without them."""

    @pytest.fixture
    def mine(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dotenv.Settings:
        monkeypatch.setattr(run, "ROOT", tmp_path)
        monkeypatch.setattr(run, "BUILD", tmp_path / "build")
        found = chosen(COMPOSE_PROJECT_NAME="mine")
        for folder in (found.state, found.rendered, found.rendered.with_name("other")):
            folder.mkdir(parents=True)
            (folder / "password").touch()
        return found

    @staticmethod
    def docker_with(monkeypatch: pytest.MonkeyPatch, *volumes: str) -> None:
        """A Docker that has these volumes of the stack `mine`."""

        def listed(filters: dict[str, str]) -> list[SimpleNamespace]:
            assert filters == {"label": "com.docker.compose.project=mine"}
            return [SimpleNamespace(name=name) for name in volumes]

        client = SimpleNamespace(volumes=SimpleNamespace(list=listed))
        monkeypatch.setattr(docker_api, "connect", lambda: nullcontext(client))

    def test_the_passwords_of_a_stack_without_data_go(
        self, mine: dotenv.Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.docker_with(monkeypatch)
        stack.forget(mine)
        assert not mine.state.exists()
        assert not mine.rendered.exists()
        assert mine.rendered.with_name("other").exists()
        stack.forget(mine)

    def test_those_of_one_with_a_volume_stay(
        self, mine: dotenv.Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.docker_with(monkeypatch, "mine_postgres")
        with pytest.raises(LakehouseError, match=r"another container uses mine_postgres: it stays.*; next: "):
            stack.forget(mine)
        assert (mine.state / "password").exists()
        assert (mine.rendered / "password").exists()


class TestAddresses:
    """What `make compose-up` says at its end."""

    def test_they_are_those_of_the_services_that_run(self) -> None:
        lines = addresses.of(chosen(COMPOSE_PROFILES="trino", PORT_OFFSET="100"))
        assert [line.split()[-1] for line in lines] == [
            "sc://127.0.0.1:15102",
            "http://127.0.0.1:8180",
            "http://127.0.0.1:8190",
            "thrift://127.0.0.1:9183",
            "http://127.0.0.1:9970",
        ]

    def test_every_port_that_it_names_is_one(self) -> None:
        assert {dotenv.port_variable(name) for name in addresses.NAMES} <= chosen().ports.keys()


class TestNames:
    """The block in the hosts file of this computer."""

    BEFORE = "127.0.0.1 localhost\n::1 localhost\n"
    ENTRY = "127.0.0.1 namenode datanode1"
    BLOCK = f"# BEGIN lakehouse compose\n{ENTRY}\n# END lakehouse compose\n"

    @pytest.mark.parametrize(
        ("bound", "address"),
        [("127.0.0.1", "127.0.0.1"), (dotenv.EVERYWHERE, "127.0.0.1"), ("192.0.2.7", "192.0.2.7")],
    )
    def test_they_lead_to_where_the_ports_are(self, bound: str, address: str) -> None:
        entry = names.of(chosen(BIND_ADDRESS=bound, COMPOSE_PROFILES="core"))
        assert entry.split()[:3] == [address, "namenode", "datanode1"]

    def test_a_name_that_leads_elsewhere_is_unknown(self, monkeypatch: pytest.MonkeyPatch) -> None:
        known = {"namenode": "192.0.2.7", "datanode1": "127.0.0.1"}
        monkeypatch.setattr("socket.gethostbyname", known.__getitem__)
        assert names.unknown("192.0.2.7 namenode datanode1") == ["datanode1"]

    def test_the_command_repeats_what_was_asked_for(self, tmp_path: Path) -> None:
        own = tmp_path / "my.env"
        own.write_text("COMPOSE_PROJECT_NAME=mine\n", encoding="utf-8")
        assert names.command(chosen()) == "sudo make compose-names"
        assert names.command(dotenv.load(own, {"DATANODES": "3", "BIND_ADDRESS": "192.0.2.7"})) == (
            f"sudo make compose-names DATANODES=3 ENV_FILE={own} BIND_ADDRESS=192.0.2.7"
        )

    def test_it_is_added(self) -> None:
        assert names.block(self.BEFORE, self.ENTRY) == self.BEFORE + self.BLOCK

    def test_it_is_replaced_and_the_rest_stays(self) -> None:
        text = self.BEFORE + self.BLOCK + "10.0.0.1 other\n"
        after = names.block(text, "127.0.0.1 namenode")
        assert after.startswith(self.BEFORE + "10.0.0.1 other\n")
        assert after.count("BEGIN") == 1
        assert "datanode1" not in after

    def test_it_is_removed(self) -> None:
        assert (
            names.block(self.BEFORE + self.BLOCK + "10.0.0.1 other\n", "") == self.BEFORE + "10.0.0.1 other\n"
        )

    def test_a_second_time_changes_nothing(self) -> None:
        once = names.block(self.BEFORE, self.ENTRY)
        assert names.block(once, self.ENTRY) == once

    def test_a_block_that_somebody_cut_takes_nothing_with_it(self) -> None:
        cut = self.BEFORE + "# BEGIN lakehouse compose\n127.0.0.1 namenode\n10.0.0.1 other\n"
        assert "10.0.0.1 other" in names.block(cut, "127.0.0.1 namenode")

    def test_the_file_is_written_in_place(self, tmp_path: Path) -> None:
        hosts = tmp_path / "hosts"
        hosts.write_text(self.BEFORE, encoding="utf-8")
        inode = hosts.stat().st_ino
        names.write(self.ENTRY, hosts)
        assert hosts.read_text("utf-8") == self.BEFORE + self.BLOCK
        names.write("", hosts)
        assert (hosts.read_text("utf-8"), hosts.stat().st_ino) == (self.BEFORE, inode)


@pytest.fixture(scope="module")
def bill() -> Manifest:
    """The repository's own bill of materials."""
    return manifest.load(run.ROOT / "versions.yml")


class TestBillOfMaterials:
    """What tools read of an image."""

    @pytest.mark.parametrize(
        ("written", "url"),
        [
            ("g.h:a:1", "pkg:maven/g.h/a@1"),
            ("g:a:tar.gz:1", "pkg:maven/g/a@1?type=tar.gz"),
            ("g:a:tar.gz:bin:1", "pkg:maven/g/a@1?classifier=bin&type=tar.gz"),
            ("g:a:jar:executable:1", "pkg:maven/g/a@1?classifier=executable"),
            ("some_thing==1:py3-none-any", "pkg:pypi/some-thing@1"),
        ],
    )
    def test_a_file_has_a_package_url(self, bill: Manifest, written: str, url: str) -> None:
        hive = bill.component("hive")
        artifact = Artifact(Coordinate.parse(written), "0" * 64, 1, "Apache-2.0")
        one = replace(hive, layers=(replace(hive.layers[0], artifacts=(artifact,)),))
        (entry,) = json.loads(sbom.document(replace(bill, components={"hive": one}), ["hive"]))["components"]
        assert (entry["purl"], entry["bom-ref"]) == (url, url)
        assert entry["hashes"] == [{"alg": "SHA-256", "content": "0" * 64}]

    def test_every_family_has_a_document_with_every_file_once(self, bill: Manifest) -> None:
        for family in images.FAMILIES:
            if not family.components:
                continue
            content = json.loads(sbom.document(bill, family.components))
            assert (content["bomFormat"], content["specVersion"], content["version"]) == (
                "CycloneDX",
                "1.5",
                1,
            )
            wanted = {
                str(file.coordinate.purl)
                for name in family.components
                for file in bill.component(name).contents
            }
            references = [entry["bom-ref"] for entry in content["components"]]
            assert references == sorted(wanted)
            for entry in content["components"]:
                assert {"type", "name", "version", "purl", "licenses"} <= entry.keys()
                assert re.fullmatch(r"[0-9a-f]{64}", entry["hashes"][0]["content"])


Make = Callable[..., images.Context]
Ensure = Callable[[images.ImageRequest], list[str]]
BY_NAME = {family.name: family for family in images.FAMILIES}


@pytest.fixture
def make(bill: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Return a function that makes the context of a family, with archives that have the right names alone."""

    def archive(component: manifest.Component, _: Cache) -> Path:
        path = tmp_path / f"{component.name}-{component.digest[:12]}.tar"
        path.write_bytes(component.name.encode())
        return path

    monkeypatch.setattr(releases, "archive", archive)
    monkeypatch.setattr(releases, "digest", lambda component, _: component.digest)
    monkeypatch.setattr(releases, "verified", lambda *_: None)

    def context(name: str, parent: str = "parent:1", of: Manifest = bill) -> images.Context:
        return images.Context(BY_NAME[name], parent, of, Cache(tmp_path))

    return context


class TestImages:
    """What an image is made of, and when it is another one."""

    @pytest.mark.parametrize("name", BY_NAME)
    def test_the_same_content_has_the_same_tag(self, make: Make, name: str) -> None:
        assert make(name).tag == make(name).tag
        assert make(name, parent="parent:2").tag != make(name).tag

    def test_another_dockerfile_is_another_image(
        self, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = {name: make(name).tag for name in BY_NAME}
        for path in images.DOCKERFILES.iterdir():
            (tmp_path / path.name).write_bytes(path.read_bytes())
        (tmp_path / "flink.Dockerfile").write_text(make("flink").dockerfile + "# more\n", encoding="utf-8")
        monkeypatch.setattr(images, "DOCKERFILES", tmp_path)
        assert {name for name in BY_NAME if make(name).tag != before[name]} == {"flink"}

    def test_another_release_is_another_image(self, make: Make, bill: Manifest) -> None:
        trino = replace(bill.component("trino"), version="0")
        other = replace(bill, components={**bill.components, "trino": trino})
        assert {name for name in BY_NAME if make(name, of=other).tag != make(name).tag} == {"trino"}

    def test_another_package_is_another_image(self, make: Make, bill: Manifest) -> None:
        packages = {**bill.debian.packages, "postgresql": "postgresql-0"}
        other = replace(bill, debian=replace(bill.debian, packages=packages))
        assert {name for name in BY_NAME if make(name, of=other).tag != make(name).tag} == {"releases"}

    def test_another_program_is_another_image(
        self, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = {name: make(name).tag for name in BY_NAME}
        for folder in {source for group in images.FOLDERS.values() for source in group.values()}:
            if not folder.endswith(".py"):
                (tmp_path / folder).mkdir(parents=True)
        monkeypatch.setattr(images, "ROOT", tmp_path)
        assert {name for name in BY_NAME if make(name).tag == before[name]} == images.PARENTS

    @pytest.mark.parametrize("name", BY_NAME)
    def test_every_argument_has_a_value(self, make: Make, name: str) -> None:
        context = make(name)
        declared = set(re.findall(r"^ARG (\w+)$", context.dockerfile, re.MULTILINE))
        assert context.arguments.keys() == declared
        assert all(context.arguments.values())
        assert set(re.findall(r"^ADD (\S+)\.tar ", context.dockerfile, re.MULTILINE)) == set(
            context.family.components
        )
        assert set(re.findall(r"^COPY (\S+) ", context.dockerfile, re.MULTILINE)) == set(
            context.family.folders
        )

    @pytest.mark.parametrize("name", BY_NAME)
    def test_the_archive_holds_what_the_dockerfile_takes(self, make: Make, name: str) -> None:
        context, stream = make(name), io.BytesIO()
        context.write(stream)
        with tarfile.open(fileobj=io.BytesIO(stream.getvalue())) as tar:
            members = {member.name: member for member in tar}
        assert set(members) == {"Dockerfile", *context.files, *context.archives}
        assert {member.uid for member in members.values()} == {0}
        runnable = {path for path, member in members.items() if member.mode & stat.S_IXOTH}
        wanted = {"kit/usr/local/bin/lakehouse-service"} if "kit" in context.family.folders else set()
        assert runnable == wanted

    def test_every_place_of_the_program_is_in_it(self, make: Make) -> None:
        files = set(make("core").files)
        assert {
            "pipeline/load.py",
            "kit/opt/lakehouse/service/__main__.py",
            "kit/opt/lakehouse/ansible/module_utils/lakehouse/probes.py",
            "kit/usr/share/lakehouse/sbom.cdx.json",
        } <= files
        assert not {path for path in files if "__pycache__" in path}

    def test_the_bill_of_an_image_has_its_parents_files(self, make: Make, bill: Manifest) -> None:
        content = json.loads(make("client").files["kit/usr/share/lakehouse/sbom.cdx.json"])
        references = {entry["bom-ref"] for entry in content["components"]}
        for component in ("hadoop", "spark", "python_clients"):
            assert {file.coordinate.purl for file in bill.component(component).contents} <= references


class Engine:
    """A Docker that has images by their names, and builds what it is asked for."""

    def __init__(self, **there: str) -> None:
        self.there = dict(there)
        self.built: dict[str, str] = {}
        self.images = self.api = self

    def get(self, reference: str) -> str:
        if reference not in self.there:
            raise ImageNotFound(reference)
        return self.there[reference]

    def tag(self, reference: str, repository: str, tag: str) -> None:
        self.there[f"{repository}:{tag}"] = self.there[reference]

    def build(self, _: Any, context: images.Context, reference: str) -> None:
        self.there[reference] = reference
        self.built[context.family.name] = context.parent


@pytest.mark.usefixtures("make")
class TestTags:
    """Which images the stack runs, and what is built for that."""

    RUN = ("lakehouse-core:{}", "lakehouse-client:{}", "lakehouse-trino:{}", "lakehouse-flink:{}")

    @pytest.fixture
    def engine(self, monkeypatch: pytest.MonkeyPatch) -> Engine:
        engine = Engine()
        monkeypatch.setattr(images, "_build", engine.build)
        monkeypatch.setattr("lakehouse.local.nodes.image.ensure", lambda *_: "lakehouse-node:1")
        return engine

    @pytest.fixture
    def ensure(self, engine: Engine, bill: Manifest, tmp_path: Path) -> Ensure:
        """Return a function that makes what is requested, and returns what it says."""

        def ensured(wanted: images.ImageRequest) -> list[str]:
            said: list[str] = []
            engine.built.clear()
            images.ensure(cast("docker.DockerClient", engine), bill, Cache(tmp_path), wanted, said.append)
            return said

        return ensured

    @pytest.mark.parametrize("tag", ["latest", "mine"])
    def test_a_tag_that_nothing_has_is_given(self, engine: Engine, ensure: Ensure, tag: str) -> None:
        ensure(images.ImageRequest(tag, ["all", "past"]))
        assert engine.built.keys() == BY_NAME.keys()
        assert {name.format(tag) for name in self.RUN} < engine.there.keys()
        other = {"latest": "mine", "mine": "latest"}[tag]
        assert not {name.format(other) for name in self.RUN} & engine.there.keys()

    def test_a_tag_of_ones_own_stays_what_it_is(self, engine: Engine, ensure: Ensure) -> None:
        engine.there = {name.format("mine"): "old" for name in self.RUN}
        (line,) = ensure(images.ImageRequest("mine"))
        assert line.startswith("used as they are: lakehouse-core:mine, ")
        assert (set(engine.there.values()), engine.built) == ({"old"}, {})

    def test_an_image_that_lacks_it_is_built(self, engine: Engine, ensure: Ensure) -> None:
        engine.there = {"lakehouse-core:mine": "old"}
        ensure(images.ImageRequest("mine"))
        assert engine.there["lakehouse-core:mine"] == "old"
        assert engine.there["lakehouse-trino:mine"].startswith("lakehouse-trino:")

    @pytest.mark.parametrize(
        "wanted", [images.ImageRequest("latest"), images.ImageRequest("mine", renewed=True)]
    )
    def test_latest_moves_and_so_does_what_is_renewed(
        self, engine: Engine, ensure: Ensure, wanted: images.ImageRequest
    ) -> None:
        engine.there = {name.format(wanted.tag): "old" for name in self.RUN}
        ensure(wanted)
        assert "old" not in engine.there.values()

    @pytest.mark.parametrize(
        ("profiles", "families"),
        [
            ("core", {"base", "releases", "core"}),
            ("trino", {"base", "releases", "core", "trino"}),
            ("flink", {"base", "releases", "core", "flink"}),
            ("core,client", {"base", "releases", "core", "client"}),
            ("all,three-datanodes", set(BY_NAME) - {"past"}),
            ("core,past", {"base", "releases", "core", "past"}),
        ],
    )
    def test_only_what_the_profiles_run_is_built(
        self, engine: Engine, ensure: Ensure, profiles: str, families: set[str]
    ) -> None:
        ensure(images.ImageRequest("latest", profiles.split(",")))
        assert engine.built.keys() == families
        wanted = {name for family in families for name in BY_NAME[family].components}
        assert set(images.components(profiles.split(","))) == wanted

    @pytest.mark.parametrize(("base", "parent"), [(None, "lakehouse-node:1"), ("debian:mine", "debian:mine")])
    def test_it_begins_with_the_node_or_with_the_base_that_was_named(
        self, engine: Engine, ensure: Ensure, base: str | None, parent: str
    ) -> None:
        ensure(images.ImageRequest("latest", ["core"], base=base))
        assert engine.built["base"] == parent


class TestBuild:
    """One build, and what becomes of one that fails."""

    @staticmethod
    def engine(*said: dict[str, str]) -> docker.DockerClient:
        """Return a Docker that reads what it is sent, and says this."""

        def build(fileobj: io.BufferedReader, **_: object) -> list[dict[str, str]]:
            fileobj.read()
            return list(said)

        return cast("docker.DockerClient", SimpleNamespace(api=SimpleNamespace(build=build)))

    @pytest.mark.parametrize(
        ("said", "line"),
        [
            (
                "E: Unable to locate package openjdk",
                "E: Unable to locate package openjdk | exit 100; next: sudo apt-get ",
            ),
            (
                "write /x: no space left on device",
                "write /x: no space left on device | exit 100; next: docker system df",
            ),
            ("Step 3", "Step 3 | exit 100; next: make compose-image"),
        ],
    )
    def test_it_says_what_was_said_last_and_what_to_do(self, make: Make, said: str, line: str) -> None:
        client = self.engine({"stream": f"{said}\n"}, {"error": "exit 100"})
        with pytest.raises(LakehouseError) as failed:
            images._build(client, make("base"), "lakehouse-base:1")
        assert str(failed.value).startswith(f"the image lakehouse-base:1 cannot be built: {line}")

    def test_what_cannot_be_sent_is_why(self, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
        def write(*_: object) -> None:
            raise FileNotFoundError("hadoop.tar")

        monkeypatch.setattr(images.Context, "write", write)
        for said in ([], [{"error": "unexpected EOF"}]):
            with pytest.raises(FileNotFoundError, match=r"hadoop\.tar"):
                images._build(self.engine(*said), make("base"), "lakehouse-base:1")

    def test_who_stops_reading_has_said_why(self) -> None:
        def write(stream: IO[bytes]) -> None:
            while True:
                stream.write(b"0" * 65536)

        with images._piped(write) as stream:
            assert stream.read(1) == b"0"


class TestDockerfiles:
    """The few lines that are no data."""

    @pytest.mark.parametrize("name", sorted(BY_NAME))
    def test_what_runs_is_not_root(self, make: Make, name: str) -> None:
        users = re.findall(r"^USER (\S+)$", make(name).dockerfile, re.MULTILINE)
        assert name in images.PARENTS or users[-1] not in ("root", "0")

    def test_the_accounts_are_those_of_the_inventory(self, make: Make) -> None:
        context, variables = make("base"), inventory.load(COMPOSE).hosts[0].variables
        text, daemons = context.dockerfile, context.arguments["ACCOUNTS"].split()
        assert re.search(r"for user in \$ACCOUNTS; do \\\n\s+useradd", text)
        assert daemons == list(variables["lakehouse_users"].values())
        others = re.findall(r"useradd --uid (\d+) .* (\w+); \\$", text, re.MULTILINE)
        assert [name for _, name in others if name != "postgres"] == list(variables["lakehouse_readers"])
        (first,) = re.findall(r"uid=(\d+);", text)
        numbers = [int(first) + place for place, _ in enumerate(daemons)]
        numbers += [int(number) for number, _ in others]
        assert len(numbers) == len(set(numbers))
        assert min(numbers) > 1000

    @pytest.mark.parametrize("name", sorted(BY_NAME))
    def test_no_secret_and_no_address_is_in_it(self, make: Make, name: str) -> None:
        text = make(name).dockerfile
        assert not re.search(r"\d+\.\d+\.\d+\.\d+|https?://|password|secret|token|proxy", text, re.IGNORECASE)


class TestPlugin:
    """Which docker compose there is."""

    @pytest.fixture
    def program(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
        """Return a function that makes a program `docker` of these lines, the only one on the PATH."""
        monkeypatch.setenv("PATH", str(tmp_path))

        def write(lines: str) -> None:
            path = tmp_path / "docker"
            path.write_text(f"#!/bin/sh\n{lines}\n", encoding="utf-8")
            path.chmod(0o755)

        return write

    def test_there_is_no_docker(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        assert plugin.version() is None

    def test_docker_without_it_has_none(self, program: Callable[[str], None]) -> None:
        program("echo \"docker: 'compose' is not a docker command.\" >&2; exit 1")
        assert plugin.version() is None

    @pytest.mark.parametrize(
        ("said", "found"),
        [("2.26.1", (2, 26)), ("v2.39.4", (2, 39)), ("2.26.1-4", (2, 26)), ("unknown", None)],
    )
    def test_it_says_its_version(
        self, program: Callable[[str], None], said: str, found: tuple[int, ...] | None
    ) -> None:
        program(f'test "$*" = "compose version --short" && echo {said}')
        assert plugin.version() == found

    def test_a_new_one_is_taken(self, program: Callable[[str], None]) -> None:
        program("echo 2.20.0")
        said: list[str] = []
        client: Any = None
        plugin.ensure(client, "suite", said.append)
        assert not said

    @pytest.mark.parametrize("said", ["2.19.9", "1.29.2"])
    def test_an_old_one_is_refused(self, program: Callable[[str], None], said: str) -> None:
        program(f"echo {said}")
        client: Any = None
        with pytest.raises(LakehouseError) as refused:
            plugin.ensure(client, "suite", print)
        line = str(refused.value)
        assert line.startswith(
            f"docker compose is {said.rpartition('.')[0]} (expected 2.20 or newer); next: "
        )
