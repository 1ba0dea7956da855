"""The kernel of the container `client` starts, and reads the tables."""

from __future__ import annotations

import json

import pytest

from lakehouse.local.compose.dotenv import Settings
from tests.compose.conftest import BIRDS, compose

pytestmark = pytest.mark.cluster

# As people have it: the kernel's own name is "Lakehouse", and only its Python knows the clients.
KERNEL = {"name": "python3", "display_name": "Lakehouse", "language": "python"}
# What Jupyter's own program for this does; Debian has that in another package.
EXECUTE = ("python3", "-m", "nbconvert", "--execute", "--to", "notebook", "--stdin", "--stdout")


def notebook(source: str) -> str:
    """A notebook of one cell that was never run."""
    cell: dict[str, object] = {"cell_type": "code", "metadata": {}, "source": source, "outputs": []}
    cells = [{**cell, "execution_count": None}]
    whole = {"nbformat": 4, "nbformat_minor": 4, "metadata": {"kernelspec": KERNEL}, "cells": cells}
    return json.dumps(whole)


def printed(executed: str) -> str:
    """What the one cell of a notebook has printed."""
    [cell] = json.loads(executed)["cells"]
    return "".join("".join(said["text"]) for said in cell["outputs"] if said.get("name") == "stdout")


def test_a_notebook_prints_a_table(everything: Settings, birds: str) -> None:
    source = f"import lakehouse_clients\nprint(lakehouse_clients.connect().arrow('{birds}').to_pylist())"
    executed = compose(everything, "exec", "--no-TTY", "client", *EXECUTE, stdin=notebook(source))
    assert printed(executed) == f"{[dict(zip(('name', 'wings'), bird, strict=True)) for bird in BIRDS]}\n"
