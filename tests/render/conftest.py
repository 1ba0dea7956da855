"""Every inventory of the repository, rendered once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.render import golden_files, rendering

AGAIN = "again"


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
    root = tmp_path_factory.mktemp("rendered")
    wanted: dict[str, Path] = {**rendering.INVENTORIES, AGAIN: rendering.INVENTORIES["tests"]}
    rendering.render_all({root / name: inventory for name, inventory in wanted.items()})
    return {name: golden_files.read_tree(root / name) for name in wanted}
