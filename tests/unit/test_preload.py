"""The callback that loads plugins before tasks are forked names plugins that there are."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.plugins import loader
from ansible.utils.collection_loader import AnsibleCollectionConfig

from plugins.callback import preload

OWN = {path.stem for path in (Path(__file__).parents[2] / "plugins" / "action").glob("*.py")}

if not AnsibleCollectionConfig.collection_finder:
    loader.init_plugin_loader()


def test_every_action_of_the_kit_is_among_them() -> None:
    assert OWN
    assert set(preload.ACTIONS) >= OWN


@pytest.mark.parametrize("name", sorted(set(preload.ACTIONS) - OWN))
def test_an_action_of_ansible_is_found(name: str) -> None:
    assert loader.action_loader.get_with_context(name, class_only=True).object


@pytest.mark.parametrize("name", preload.CONNECTIONS)
def test_a_connection_is_found(name: str) -> None:
    assert loader.connection_loader.get_with_context(name, class_only=True).object
