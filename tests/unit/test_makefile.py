"""What a target calls, without calling it."""

from __future__ import annotations

import os
import subprocess

import pytest

from lakehouse.run import ROOT

# What a `make` that runs these tests hands down.
HANDED_DOWN = (
    "BUNDLE",
    "CONFIRM",
    "INVENTORY",
    "LAKEHOUSE_BUNDLE",
    "MAKEFLAGS",
    "MAKELEVEL",
    "MFLAGS",
    "PROFILE",
    "TARGET",
)


def called(*words: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in HANDED_DOWN}
    return subprocess.run(
        ["make", "--dry-run", *words], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize(
    ("target", "default"),
    [
        ("lakehouse", "inventory/local"),
        ("smoke", "inventory/local"),
        ("down", "inventory/local"),
        ("status", "inventory/local"),
        ("doctor", "inventory/local"),
        ("console", "inventory/local"),
        ("test", "tests/inventory"),
        ("drills", "tests/inventory"),
    ],
)
def test_a_target_has_an_inventory_of_its_own_unless_one_is_named(target: str, default: str) -> None:
    assert f" --inventory {default}" in called(target)
    assert " --inventory inventory/mine" in called(target, "INVENTORY=inventory/mine")


@pytest.mark.parametrize("target", ["bench", "drills", "test"])
def test_a_cluster_is_removed_only_by_its_name(target: str) -> None:
    assert "--confirm" not in called(target)
    assert " --confirm lakehouse-local" in called(target, "CONFIRM=lakehouse-local")


def test_a_bundle_is_handed_down_by_its_whole_path() -> None:
    shown = called("--eval=shown: ; @echo bundle=$(LAKEHOUSE_BUNDLE)", "shown", "BUNDLE=build/it.tar")
    assert f"bundle={ROOT}/build/it.tar" in shown
    assert "bundle=\n" in called("--eval=shown: ; @echo bundle=$(LAKEHOUSE_BUNDLE)", "shown")
