"""The picture of the history: a line where a table was, a mark where it changed, names as text."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from lakehouse import cli
from lakehouse.catalog import build, diff, documents
from lakehouse.catalog.names import Name
from lakehouse.catalog.overlay import Batch
from lakehouse.catalog.store import Entry, Store
from lakehouse.report import history
from lakehouse.report.history import Step

Tables = dict[str, dict[str, Any]]
Drawn = Callable[..., list[Step]]
BARE: dict[str, Any] = {"type": "EXTERNAL_TABLE", "owner": "ann"}


def table(**parameters: str) -> dict[str, Any]:
    return {**BARE, "parameters": parameters}


def iceberg(snapshot: str) -> dict[str, Any]:
    metadata = f"hdfs://c/{snapshot}.json"
    return {
        **table(table_type="ICEBERG", metadata_location=metadata),
        "data": {"format": "iceberg", "metadata": metadata, "snapshot": snapshot},
    }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalog.git"


@pytest.fixture
def committed(path: Path) -> Drawn:
    """Makes commits of the tables of the database `sales`, and returns them as the picture wants them."""

    def make(*states: Tables) -> list[Step]:
        steps: list[Step] = []
        with closing(Store.made(path)) as store:
            parent: Entry | None = None
            for number, tables in enumerate(states):
                batch, root = Batch(store), build.Folder()
                root.put(
                    (build.CATALOG, *Name("hive", "sales").path, "database.json"),
                    batch.add_blob(documents.pretty({"owner": "ann"})),
                )
                for name, said in tables.items():
                    place = (build.CATALOG, *Name("hive", "sales", name).path, build.TABLE)
                    root.put(place, batch.add_blob(documents.pretty(said)))
                made = root.write(batch)
                batch.flush()
                entry = store.record(made, parent, "Ann <ann@example.org>", 1000 + number, f"step {number}")
                changes = list(diff.changes(store, parent.tree, made)) if parent else None
                steps.append(Step(entry, changes))
                parent = entry
        return steps

    return make


def seen(steps: list[Step]) -> dict[str, tuple[list[tuple[int, str]], list[tuple[int, int]]]]:
    """Return marks and spans by name."""
    return {
        line.name: ([(mark.column, mark.kind) for mark in line.marks], list(line.spans))
        for line in history.draw(steps).lines
    }


def test_a_line_begins_where_a_table_was_made_and_ends_where_it_was_dropped(committed: Drawn) -> None:
    steps = committed(
        {"old": table(a="1"), "same": table()},
        {"old": table(a="2"), "same": table(), "new": table()},
        {"same": table(), "new": table()},
        {"same": table(), "old": table(a="3")},
    )
    assert seen(steps) == {
        "old": ([(1, "changed"), (2, "removed"), (3, "added")], [(-1, 2), (3, 4)]),
        "new": ([(1, "added"), (3, "removed")], [(1, 3)]),
    }


def test_new_rows_are_another_mark_than_a_change(committed: Drawn) -> None:
    steps = committed({"ice": iceberg("1")}, {"ice": iceberg("2")}, {"ice": {**iceberg("3"), "owner": "bob"}})
    assert seen(steps)["ice"][0] == [(1, "data"), (2, "changed")]


def test_what_is_too_much_is_said_to_be_left_out(committed: Drawn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "_MOST", 2)
    picture = history.draw(committed({}, {name: table() for name in "abcde"}))
    assert ([line.name for line in picture.lines], picture.hidden) == (["a", "b"], 3)
    assert "3 more objects changed" in history.render("c", picture)


class Tags(HTMLParser):
    """Counts the tags of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self.found.add(tag)


def test_names_are_text_and_never_html(committed: Drawn) -> None:
    page = history.render("c", history.draw(committed({}, {"<script>alert(1)</script>": table()})))
    tags = Tags()
    tags.feed(page)
    assert "script" not in tags.found
    assert "&lt;script&gt;" in page


def test_the_verb_writes_the_page(
    committed: Drawn, path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    committed({}, {"orders": table()}, {"orders": table(a="1"), "trips": table()})
    out = tmp_path / "some" / "history.html"
    words = ["catalog", "picture", "--store", str(path), "--out", str(out)]
    assert cli.main(words) == 0
    assert f"3 commits, 2 objects, {out}" in capsys.readouterr().err
    assert "+ table hive.sales.trips" in out.read_text(encoding="utf-8")
    assert cli.main([*words, "sales.trips"]) == 0
    page = out.read_text(encoding="utf-8")
    assert "trips" in page
    assert "orders" not in page
    assert cli.main([*words, "--count", "0"]) == 64
