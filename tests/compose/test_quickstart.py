"""docs/quickstart.md does what it says: every command is run, and prints what stands below it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from lakehouse.local.compose.dotenv import FOLDER, Settings
from lakehouse.local.nodes import docker_api
from tests.compose.conftest import compose, files

PAGE = Path(__file__).resolve().parents[2] / "docs" / "quickstart.md"
PICTURE = PAGE.with_name("flights.png")
# A PNG begins with its signature, width and height.
PNG_HEAD = 24
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A command goes on where its line ends with a backslash.
COMMAND = re.compile(r"^\$ (?P<line>(?:[^\n]*\\\n)*[^\n]*)\n(?P<output>(?:(?!\$ )[^\n]*\n)*)", re.MULTILINE)
PATIENCE = 300


class Command(NamedTuple):
    """A command of the page, and what it prints."""

    line: str
    output: str


def commands(page: str) -> Iterator[Command]:
    for block in BLOCK.findall(page):
        for found in COMMAND.finditer(block):
            yield Command(found["line"], found["output"])


def comparable(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().splitlines()]


def follow(command: Command, variables: Mapping[str, str]) -> None:
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command.line],
        cwd=FOLDER, env={**os.environ, **variables}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, f"{command.line}\n{done.stdout}{done.stderr}"
    assert comparable(done.stdout) == comparable(command.output), f"{command.line}\n{done.stderr}"


def drawn(meant: Settings) -> bytes:
    """The picture that `client` has drawn."""
    with docker_api.connect() as client:
        container = client.containers.get(compose(meant, "ps", "--quiet", "client").strip())
        [content] = files(container, f"/work/{PICTURE.name}").values()
    return content


def test_the_page_has_commands_and_outputs() -> None:
    found = list(commands(PAGE.read_text(encoding="utf-8")))
    assert found
    assert {command.line.split()[0] for command in found} == {"docker", "echo"}


@pytest.mark.cluster
def test_every_command_prints_what_the_page_says(everything: Settings) -> None:
    *steps, cleaning = commands(PAGE.read_text(encoding="utf-8"))
    try:
        for command in steps:
            follow(command, everything.values)
        assert drawn(everything)[:PNG_HEAD] == PICTURE.read_bytes()[:PNG_HEAD]
    finally:
        follow(cleaning, everything.values)
