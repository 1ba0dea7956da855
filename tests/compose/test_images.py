"""What is in an image, what it says of itself, and what must not be in it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import docker
import pytest
from docker.models.images import Image

from lakehouse import run, verbs
from lakehouse.artifacts.manifest import Manifest
from lakehouse.local.compose.dotenv import Settings
from lakehouse.local.compose.images import FAMILIES, PARENTS, Family, contained
from lakehouse.local.nodes import docker_api
from tests.compose.conftest import files, image

pytestmark = pytest.mark.cluster

# With its parents, as `docker images` shows it: a tenth more than what docs/compose.md says.
LARGEST_GB = {"core": 1.80, "client": 3.40, "trino": 1.40, "flink": 0.95, "past": 0.57}
BILL = "/usr/share/lakehouse/sbom.cdx.json"
SECRETS = ("metastore", "federation")

each_family = pytest.mark.parametrize(
    "family",
    [family for family in FAMILIES if family.name not in PARENTS],
    ids=lambda family: family.name,
)


@pytest.fixture(scope="module")
def client() -> Iterator[docker.DockerClient]:
    with docker_api.connect() as client:
        yield client


@pytest.fixture(scope="module")
def bill() -> Manifest:
    return verbs.bill()


@pytest.fixture
def built(client: docker.DockerClient, core: Settings, family: Family) -> Image:
    """The image of a family, as the stack runs it."""
    return client.images.get(image(core, family.name))


def inside(client: docker.DockerClient, built: Image, path: str) -> dict[str, bytes]:
    """The files at a path of an image; no container runs for that."""
    container = client.containers.create(built, ["true"])
    try:
        return files(container, path)
    finally:
        container.remove()


@each_family
def test_its_labels_say_what_it_is(bill: Manifest, built: Image, family: Family) -> None:
    versions = {f"lakehouse.component.{name}": bill.component(name).version for name in contained(family)}
    expected = {"org.opencontainers.image.title": f"Lakehouse {family.name}", **versions}
    assert expected.items() <= built.labels.items()
    assert f"{family.repository}:{built.labels['org.opencontainers.image.version']}" in built.tags


@each_family
def test_it_is_not_larger_than_it_was(built: Image, family: Family) -> None:
    assert built.attrs["Size"] / 1e9 <= LARGEST_GB[family.name]


@each_family
def test_its_bill_of_materials_lists_what_was_unpacked(
    client: docker.DockerClient, bill: Manifest, built: Image, family: Family
) -> None:
    [text] = inside(client, built, BILL).values()
    listed = {component["purl"] for component in json.loads(text)["components"]}
    unpacked = {
        artifact.coordinate.purl for name in contained(family) for artifact in bill.component(name).contents
    }
    assert unpacked
    assert unpacked <= listed, unpacked - listed


@each_family
def test_it_does_not_run_as_root(client: docker.DockerClient, built: Image) -> None:
    assert int(client.containers.run(built, ["id", "-u"], remove=True)) != 0


@each_family
def test_no_password_is_in_it(client: docker.DockerClient, core: Settings, built: Image) -> None:
    """Neither in its configuration nor in the history of its making; a failure names the place alone."""
    folder = run.ROOT / ".state" / f"compose-{core.project}" / "secrets"
    passwords = [(folder / name).read_text("utf-8").split()[0].encode() for name in SECRETS]
    places = {
        "docker history": json.dumps(built.history()).encode(),
        "docker inspect": json.dumps(built.attrs).encode(),
        **inside(client, built, "/etc"),
    }
    leaks = [place for place, text in places.items() if any(password in text for password in passwords)]
    assert leaks == []
