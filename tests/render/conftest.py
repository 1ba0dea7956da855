"""Every inventory of the repository, rendered once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakehouse import locks
from tests.render import golden_files, rendering

AGAIN = "again"
RENDER_SECONDS = 600.0


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_set() -> Iterator[None]:
    """Render what the files say, whatever the person's own stack is called."""
    with pytest.MonkeyPatch.context() as patch:
        for name in rendering.SETTINGS:
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """Files by inventory, each a text by ``<host>/<path>``; ``again`` is that of the tests a second time."""
    wanted: dict[str, Path] = {**rendering.INVENTORIES, AGAIN: rendering.INVENTORIES["tests"]}
    own = tmp_path_factory.getbasetemp()
    # The folder of a worker of pytest-xdist is in that of the run: the first one renders for all.
    root = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "rendered"
    with root.with_suffix(".lock").open("w") as lock:
        assert locks.hold(lock, RENDER_SECONDS), f"{root} is not there after {RENDER_SECONDS:.0f} s"
        if not root.exists():
            made = tmp_path_factory.mktemp("rendered")
            rendering.render_all({made / name: inventory for name, inventory in wanted.items()})
            made.rename(root)
    return {name: golden_files.read_tree(root / name) for name in wanted}
