"""compose/compose.yaml as data: what every service has, what it publishes, how much memory it may take."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatch
from typing import Any

import pytest
import yaml

from lakehouse import run
from lakehouse.local.compose import checks, dotenv, images
from lakehouse.model import defaults, inventory, services
from tests.render import golden_files

Service = dict[str, Any]
DOCUMENT = yaml.safe_load((dotenv.FOLDER / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, Service] = DOCUMENT["services"]
DEFAULTS = dotenv.load(environment={}).values
# What ends by itself says so; the rest runs as long as the stack.
RUNNING = {name: service for name, service in SERVICES.items() if service["restart"] != "no"}
STEPS = {name: service for name, service in SERVICES.items() if name not in RUNNING}
PORT = re.compile(r"\$\{(\w+):-([^}]+)\}:\$\{(\w+):-(\d+)\}:(?:\$\{(\w+):-(\d+)\}|(\d+))")
VARIABLE = re.compile(r"\$\{(\w+):-([^}]*)\}")
CATALOGUE = services.load()
GROUP = defaults.defaults()["lakehouse_group"]
# Rows of the catalogue that no container runs though a host of the stack would: switched off, or one that
# finds no room in 8 GiB.
NOT_HERE = {"spark_thrift", "flink_history", "node_exporter", "postgres_exporter"}
# Shuffles, state, logs and unpacked libraries of these are too large for their memory.
SCRATCH = {"spark-worker", "spark-connect", "client", "load", "trino"} | {
    f"flink-{name}" for name in ("jobmanager", "taskmanager", "sql-gateway")
}
# What the kit promises, in MiB.
PROMISED = {"core": 3072, "all": 8192}

each_service = pytest.mark.parametrize("name", SERVICES)
each_running = pytest.mark.parametrize("name", RUNNING)


def row(name: str) -> services.Service | None:
    """The row of the catalogue whose unit a service runs."""
    unit = RUNNING[name]["labels"].get("lakehouse.unit", "")
    return next((row for row in CATALOGUE.services.values() if fnmatch(unit, row.unit)), None)


def variable(name: str, port: str) -> str:
    """The setting of a port of a service; each of several DataNodes has its own."""
    number = name.removeprefix("datanode")
    return f"{port.replace('datanode_', f'datanode{number}_', 1)}_port".upper()


def megabytes(service: Service) -> int:
    """The limit of a service in MiB."""
    return int(service["mem_limit"].removesuffix("m"))


def configuration(service: Service) -> str:
    """The mount of a service's configuration."""
    (mount,) = [volume for volume in service["volumes"] if ":/config:" in volume]
    return str(mount)


@each_service
def test_no_service_is_root_and_none_becomes_it(name: str) -> None:
    service = SERVICES[name]
    assert service["user"].split(":")[0] not in ("root", "0")
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["cap_drop"] == ["ALL"]
    assert service["init"] is True


@each_service
def test_only_who_keeps_large_scratch_files_writes_into_its_container(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is (name not in SCRATCH)
    folders = [folder.partition(":")[0] for folder in service["tmpfs"]]
    assert ("/tmp" in folders) is service["read_only"]  # noqa: S108 -- in the container


def test_the_socket_of_postgresql_is_in_memory_and_its_own() -> None:
    base = (images.DOCKERFILES / "base.Dockerfile").read_text("utf-8")
    [number] = re.findall(r"useradd --uid (\d+) --gid postgres", base)
    assert f"/run/postgresql:uid={number},gid={number},mode=2775" in SERVICES["postgres"]["tmpfs"]


@each_service
def test_every_service_has_its_limits(name: str) -> None:
    service = SERVICES[name]
    assert megabytes(service)
    assert service["logging"]["options"].keys() == {"max-size", "max-file"}
    image, tag = re.fullmatch(r"([a-z-]+):(\S+)", service["image"]).groups()  # type: ignore[union-attr]
    assert image in {family.repository for family in images.FAMILIES}
    assert tag == "${IMAGE_TAG:-latest}"
    assert set(service["profiles"]) <= set(checks.PROFILES)


@each_running
def test_what_runs_comes_back_and_says_who_it_is(name: str) -> None:
    service = RUNNING[name]
    assert service["restart"] == "unless-stopped"
    assert service["ulimits"]["nofile"] >= 16384
    assert service["hostname"] == name
    # Who works in the client is a person; nothing runs there that could be asked.
    assert ("healthcheck" in service) == (name != "client")
    assert ("lakehouse.unit" in service["labels"]) == (name != "client")


def test_what_runs_plays_a_host_of_the_inventory_each() -> None:
    hosts = {host.name for host in inventory.load(run.ROOT / "inventory" / "compose-three").hosts}
    assert {service["labels"]["lakehouse.host"] for service in RUNNING.values()} == hosts


@each_service
def test_its_configuration_is_that_of_its_host(name: str) -> None:
    mount = configuration(SERVICES[name])
    host = SERVICES[name].get("labels", {}).get("lakehouse.host")
    source = VARIABLE.sub(lambda found: found[1], mount)
    assert re.fullmatch(rf"\.\./build/compose/COMPOSE_PROJECT_NAME/{host or '[a-z0-9-]+'}:/config:ro", source)


def test_what_serves_a_commit_reads_no_password_and_makes_no_repository() -> None:
    (history,) = [mount for mount in SERVICES["past"]["volumes"] if isinstance(mount, dict)]
    assert history["read_only"] is True
    # Docker would make an empty folder of root's, which no user could commit to.
    assert history["bind"] == {"create_host_path": False}
    assert (
        VARIABLE.sub(lambda found: DEFAULTS[found[1]], history["source"])
        == "../.state/compose-lakehouse/catalog.git"
    )
    assert "/dev/null:/config/etc/lakehouse/secrets.json:ro" in SERVICES["past"]["volumes"]


@each_running
def test_its_ports_are_settings_of_this_computer(name: str) -> None:
    for written in RUNNING[name].get("ports", []):
        match = PORT.fullmatch(written)
        assert match, written
        bind, address, outside, default, inside, same, fixed = match.groups()
        assert (bind, address) == ("BIND_ADDRESS", "127.0.0.1")
        assert DEFAULTS[outside] == default
        # A notebook is told its port by who starts it; a daemon tells its own to clients.
        assert (inside, same) == (outside, default) or (name == "client" and fixed)


@each_running
def test_it_runs_a_row_of_the_catalogue_as_its_user_and_with_its_ports(name: str) -> None:
    service, found = RUNNING[name], row(name)
    if found is None:
        assert name == "client"
        return
    account = CATALOGUE.users[found.user].account if found.user else "postgres"
    assert service["user"] == (f"{account}:{GROUP}" if found.user else account)
    published = {PORT.fullmatch(port)[3] for port in service.get("ports", [])}  # type: ignore[index]
    known = {variable(name, port.name): port for port in found.listeners}
    assert published <= known.keys()
    # A service with ports that can be changed names those that cannot.
    others = [str(port.port) for setting, port in known.items() if published and setting not in published]
    assert set(service.get("expose", [])) == set(others)
    if name not in {"datanode2", "datanode3"}:
        assert all(DEFAULTS[setting] == str(known[setting].port) for setting in published)


def test_every_row_that_a_host_of_the_stack_would_run_has_a_container() -> None:
    groups = {
        group for host in inventory.load(run.ROOT / "inventory" / "compose").hosts for group in host.groups
    }
    placed = {found.name for found in CATALOGUE.services.values() if groups.intersection(found.groups)}
    assert placed - {found.name for name in RUNNING if (found := row(name))} == NOT_HERE


def test_without_settings_the_inventory_has_the_ports_of_the_catalogue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in DEFAULTS:
        monkeypatch.delenv(name, raising=False)
    host = next(
        one for one in inventory.load(run.ROOT / "inventory" / "compose").hosts if one.name == "datanode1"
    )
    assert host.variables["lakehouse_ports"] == CATALOGUE.tables["lakehouse_ports"]


def test_every_port_of_the_settings_is_published_once() -> None:
    published = [PORT.fullmatch(port)[3] for service in RUNNING.values() for port in service.get("ports", [])]  # type: ignore[index]
    assert sorted(published) == sorted(name for name in DEFAULTS if name.endswith("_PORT"))


def test_a_variable_is_what_the_settings_say() -> None:
    text = (dotenv.FOLDER / "compose.yaml").read_text("utf-8")
    assert not [found for found in VARIABLE.findall(text) if DEFAULTS[found[0]] != found[1]]


@pytest.mark.parametrize(("profile", "most"), PROMISED.items())
def test_the_limits_of_a_profile_fit(profile: str, most: int) -> None:
    # A step ends before its daemon starts.
    assert sum(megabytes(service) for service in RUNNING.values() if profile in service["profiles"]) <= most


def test_a_step_needs_no_more_than_what_it_comes_before() -> None:
    for service in RUNNING.values():
        for name, how in service.get("depends_on", {}).items():
            if how["condition"] == "service_completed_successfully" and name != "hdfs-layout":
                assert megabytes(SERVICES[name]) <= megabytes(service), name


def test_the_unit_of_postgresql_has_its_version() -> None:
    versions = yaml.safe_load((run.ROOT / "versions.yml").read_text("utf-8"))["versions"]
    assert SERVICES["postgres"]["labels"]["lakehouse.unit"] == f"postgresql@{versions['postgresql']}-main"


@each_service
def test_what_it_runs_is_in_its_rendered_configuration(name: str) -> None:
    service = SERVICES[name]
    mount = configuration(service)
    # The second and third DataNode have the files of the first: tests/render/test_variants.py.
    host = re.sub(r"^datanode\d$", "datanode1", mount.rsplit("/config", 1)[0].rstrip(":").rsplit("/", 1)[1])
    golden = golden_files.expected()["compose"]
    told = json.loads(golden[f"{host}/etc/lakehouse/service.json"])
    asked = service.get("healthcheck", {}).get("test", [])
    for verb, what in re.findall(r"lakehouse-service (\w+) ([\w-]+)", " ".join(service["command"])):
        if verb == "step":
            assert what in told["steps"]
        else:
            assert f"{host}/etc/systemd/system/{what}.service" in golden
    if asked:
        assert asked[:3] == ["CMD", "lakehouse-service", "ready"]
        assert asked[3] in told["ready"]
