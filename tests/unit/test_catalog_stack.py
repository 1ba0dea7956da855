"""The history of a stack of docker compose: whose files they are, and what a verb says of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lakehouse import cli, commands, run
from lakehouse.catalog.store import Store
from lakehouse.cluster_catalog import targets
from lakehouse.local.compose import dotenv, history
from lakehouse.local.compose.dotenv import Settings
from tests.unit.test_catalog_exchange import commit


@pytest.fixture
def meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The stack of compose/.env, whose state is in a folder of the test."""
    monkeypatch.setattr(run, "ROOT", tmp_path)
    return dotenv.load(environment={})


@pytest.fixture
def _careful() -> Iterator[None]:
    """A person whose files no other user may read."""
    before = os.umask(0o077)
    yield
    os.umask(before)


def modes(folder: Path) -> set[int]:
    return {path.stat().st_mode & 0o007 for path in (folder, *folder.rglob("*"))}


@pytest.mark.usefixtures("_careful")
def test_the_containers_user_may_read_and_nobody_else_finds_it(meant: Settings) -> None:
    history.made(meant)
    target = targets.stack(meant)
    with closing(Store(target.place)) as store:
        commit(store, "one")
    assert 0 in modes(target.place)
    target.written()
    assert modes(target.place) == {0o5, 0o4}
    assert meant.state.stat().st_mode & 0o777 == 0o700


def test_a_history_that_is_there_stays(meant: Settings) -> None:
    history.made(meant)
    with closing(Store(history.place(meant))) as store:
        made = commit(store, "one")
    history.made(meant)
    with closing(Store(history.place(meant))) as store:
        assert store.head() == made


@pytest.mark.usefixtures("meant")
def test_a_stack_without_a_history_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in dotenv.load().values:
        monkeypatch.delenv(name, raising=False)
    assert cli.main(["catalog", "log", "--target", "compose"]) == 2
    said = capsys.readouterr().err
    assert said.endswith(
        "compose-lakehouse/catalog.git: there is no history of the catalog yet;"
        " next: .venv/bin/lakehouse catalog commit --target compose\n"
    )


@pytest.mark.parametrize(
    ("words", "what", "then"),
    [
        (["restore", "v1"], "catalog restore", ".venv/bin/lakehouse catalog serve v1 --target compose"),
        (["commit", "--pin"], "--pin", "the same without it"),
    ],
)
def test_what_only_machines_can_is_refused(
    words: list[str], what: str, then: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["catalog", *words, "--target", "compose"]) == commands.USAGE
    assert capsys.readouterr().err == (
        f"error: {what} is for machines, and not for a stack of docker compose; next: {then}\n"
    )
