"""What was acknowledged is there: after a kill in the midst of writes, a stop, another image."""

from __future__ import annotations

import io
import secrets
import tarfile
import threading
from collections.abc import Iterator
from pathlib import PurePosixPath

import docker
import pytest

from lakehouse.local.compose.dotenv import Settings
from lakehouse.local.compose.labels import PROJECT_LABEL, SERVICE_LABEL
from lakehouse.local.nodes import docker_api
from suites.testbed.engines.spark import Spark
from tests.compose.conftest import ENV_FILE, connect, files, image, kill, succeed, up, volumes

pytestmark = [pytest.mark.cluster, pytest.mark.longdrill]

# Commits before the kill: some, so that it meets the writers at work, and not too many for a busy machine.
COMMITS = 4
PATIENCE = 240
# What the other image has otherwise: the file in which it says what it holds.
CHANGED = PurePosixPath("/usr/share/lakehouse/sbom.cdx.json")
NEWER = b"another release\n"


@pytest.fixture
def tables(core: Settings, spark: Spark) -> Iterator[dict[str, str]]:
    """An empty table of each format, by format."""
    run = secrets.token_hex(3)
    names = {
        "iceberg": f"iceberg.default.kill_{run}",
        "delta": f"spark_catalog.default.kill_{run}_delta",
    }
    for fmt, name in names.items():
        spark.sql(f"CREATE TABLE {name} (id INT) USING {fmt}")
    yield names
    up(core)
    last = connect(core)
    for name in names.values():
        last.sql(f"DROP TABLE {name} PURGE" if name.startswith("iceberg") else f"DROP TABLE {name}")
    last.session.stop()


class Writer(threading.Thread):
    """Appends one row after another until an append fails; remembers what was acknowledged."""

    def __init__(self, meant: Settings, table: str) -> None:
        super().__init__(daemon=True)
        self.table = table
        self.acknowledged: list[int] = []
        self.enough = threading.Event()
        self._spark = connect(meant)
        # A client that tries again for two minutes would only say later what became of the row.
        self._spark.session.client.set_retry_policies([])

    def run(self) -> None:
        for row in range(100_000):
            try:
                self._spark.sql(f"INSERT INTO {self.table} VALUES ({row})")
            except Exception:  # noqa: BLE001 -- the stack is being killed, and whatever that looks like ends it
                break
            self.acknowledged.append(row)
            if len(self.acknowledged) >= COMMITS:
                self.enough.set()


def test_a_kill_during_writes_loses_nothing_that_was_acknowledged(
    core: Settings, tables: dict[str, str]
) -> None:
    writers = [Writer(core, table) for table in tables.values()]
    for writer in writers:
        writer.start()
    for writer in writers:
        assert writer.enough.wait(PATIENCE), f"{writer.table}: {writer.acknowledged}"
    kill(core)
    for writer in writers:
        writer.join(PATIENCE)
        assert not writer.is_alive()

    up(core)

    spark = connect(core)
    for writer in writers:
        found = [row for (row,) in spark.sql(f"SELECT id FROM {writer.table} ORDER BY id")]
        # The one whose answer the kill cut off may be there or not; none is there twice.
        assert found[: len(writer.acknowledged)] == writer.acknowledged
        assert found[len(writer.acknowledged) :] in ([], [len(writer.acknowledged)])
        spark.sql(f"INSERT INTO {writer.table} VALUES (-1)")
    spark.session.stop()


def test_down_and_another_image_keep_the_data(core: Settings, spark: Spark, tables: dict[str, str]) -> None:
    for table in tables.values():
        spark.sql(f"INSERT INTO {table} VALUES (1), (2)")
    kept = volumes(core)
    succeed("compose", "down", "--env-file", str(ENV_FILE))
    assert kept
    assert volumes(core) == kept
    with docker_api.connect() as client, upgraded(client, core) as tag:
        up(core.with_values(IMAGE_TAG=tag, COMPOSE_PROFILES="core"))
        assert inside(client, core, "namenode", CHANGED) == NEWER
        after = connect(core)
        for table in tables.values():
            assert after.sql(f"SELECT id FROM {table} ORDER BY id") == [(1,), (2,)]
            after.sql(f"INSERT INTO {table} VALUES (3)")
        after.session.stop()
        up(core)
    again = connect(core)
    for table in tables.values():
        assert again.sql(f"SELECT max(id) FROM {table}") == [(3,)]
    again.session.stop()


def inside(client: docker.DockerClient, meant: Settings, service: str, path: PurePosixPath) -> bytes:
    """What a file of a running service holds."""
    labels = [f"{PROJECT_LABEL}={meant.project}", f"{SERVICE_LABEL}={service}"]
    [container] = client.containers.list(filters={"label": labels})
    return files(container, str(path))[path.name]


def archive_of(name: str, content: bytes) -> bytes:
    """A tar archive with one file."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        info = tarfile.TarInfo(name)
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
    return raw.getvalue()


class upgraded:  # noqa: N801 -- a context, named as it reads
    """Another release, as far as a file and a label make one: an image with a tag of its own."""

    def __init__(self, client: docker.DockerClient, meant: Settings) -> None:
        self._client = client
        self._image = image(meant, "core")
        self._tag = f"test-{secrets.token_hex(3)}"

    def __enter__(self) -> str:
        container = self._client.containers.create(self._image, ["true"], user="root")
        try:
            container.put_archive(str(CHANGED.parent), archive_of(CHANGED.name, NEWER))
            version = "LABEL lakehouse.component.spark=newer"
            container.commit("lakehouse-core", self._tag, changes=["USER nobody", version])
        finally:
            container.remove()
        return self._tag

    def __exit__(self, *_: object) -> None:
        self._client.images.remove(f"lakehouse-core:{self._tag}", force=True)
