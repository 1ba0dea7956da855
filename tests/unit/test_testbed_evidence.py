"""What a test says about itself in the JUnit file."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from suites.matrix.cross.limits import marks, refused
from suites.testbed import evidence


class Item:
    """A test as pytest shows it to its hooks."""

    def __init__(self, *worn: pytest.MarkDecorator, **parameters: object) -> None:
        self.worn = {each.name: each.mark for each in worn}
        self.callspec = SimpleNamespace(params=parameters)
        self.user_properties: list[tuple[str, object]] = []
        self.stash = pytest.Stash()

    def get_closest_marker(self, name: str) -> Any:
        return self.worn.get(name)


@pytest.fixture(autouse=True)
def markers(pytestconfig: pytest.Config) -> None:
    """The plugin of the suites makes them known, and is not loaded here."""
    for name in ("operation", "limit"):
        pytestconfig.addinivalue_line("markers", f"{name}: of the suites")


def described(item: Any, when: str) -> dict[str, object]:
    call: Any = SimpleNamespace(when=when)
    evidence.describe(item, call)
    return dict(item.user_properties)


def test_operation_and_engine_are_filled_with_the_parameters() -> None:
    item = Item(pytest.mark.operation("read by {reader}", engine="{reader}"), reader="trino")
    assert described(item, "setup") == {"operation": "read by trino", "engine": "trino"}


def test_the_proof_of_a_limit_says_so_before_it_runs() -> None:
    item = Item(*marks(refused("no such view", "https://host/1")))
    assert described(item, "setup") == {
        "engine": "spark",
        "expected": "refused",
        "reason": "no such view",
        "limit": "https://host/1",
    }
    assert marks(None) == []


@pytest.mark.parametrize(("when", "seconds"), [("call", 2.0), ("setup", 5.0)])
def test_the_seconds_of_a_test_are_those_of_the_work_it_waited_for(when: str, seconds: float) -> None:
    item: Any = Item()
    item.stash[evidence.SECONDS] = 2.0
    report: Any = SimpleNamespace(when=when, duration=5.0)
    evidence.measure(item, report)
    assert report.duration == seconds


def test_a_test_that_waited_for_nobody_has_its_own_seconds() -> None:
    item: Any = Item()
    report: Any = SimpleNamespace(when="call", duration=5.0)
    evidence.measure(item, report)
    assert report.duration == 5.0
