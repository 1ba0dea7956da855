"""Policies: the first match counts, and what no run can use is one line."""

from __future__ import annotations

from typing import Any

import pytest

from lakehouse.model import defaults
from lakehouse.model.inventory import Host
from lakehouse.upkeep import policies
from lakehouse.upkeep.policies import LEAST_ORPHAN_DAYS, Policy, PolicyError
from lakehouse.validation import upkeep
from lakehouse.validation.finding import Level

TABLES = [("sales", "orders"), ("sales", "days"), ("hr", "people")]


def test_the_defaults_are_one_policy_for_all_tables() -> None:
    assert policies.parse(defaults.role("upkeep")["upkeep_policies"]) == [Policy()]
    assert Policy().orphan_days >= LEAST_ORPHAN_DAYS


def test_the_first_policy_that_matches_counts() -> None:
    listed = policies.parse([
        {"tables": "sales.orders", "file_mb": 64},
        {"tables": "sales.*", "sort": ["a", "b"], "statistics": None},
    ])  # fmt: skip
    assigned, lines = policies.assign(listed, TABLES)
    assert {table: policy.file_mb for table, policy in assigned.items()} == {TABLES[0]: 64, TABLES[1]: 256}
    assert assigned["sales", "days"].sort == ("a", "b")
    assert lines == []


def test_a_policy_that_counts_for_no_table_is_a_line() -> None:
    listed = [Policy("sales.*"), Policy("old.*"), Policy("sales.orders", file_mb=1)]
    assert policies.assign(listed, TABLES)[1] == [
        "policy 2, old.*: it matches no table",
        "policy 3, sales.orders: an earlier one contradicts it for each table, sales.* for sales.orders",
    ]


@pytest.mark.parametrize(
    ("pattern", "table", "expected"),
    [
        ("sales.*", "sales.orders", True),
        ("sales.*", "sales2.orders", False),
        ("s*s.o*", "sales.orders", True),
        ("*.orders", "sales.orders2", False),
        ("sales.o[r]ders", "sales.orders", False),
        ("sales.o?ders", "sales.orders", False),
    ],
)
def test_only_a_star_is_special(pattern: str, table: str, expected: bool) -> None:
    assert policies.matches(pattern, *table.split(".")) is expected


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        ({}, "tables is 'None'; a pattern such as sales.orders, sales.* or *.*"),
        ({"tables": "sales"}, "tables is 'sales'"),
        ({"tables": "a.b.c"}, "tables is 'a.b.c'"),
        ({"tables": "a.b'"}, "tables is"),
        ({"orphan_days": 2}, "orphan_days is 2; 3 to 36500"),
        ({"snapshots": 0}, "snapshots is 0; 1 to 36500"),
        ({"age_days": True}, "age_days is True; 1 to 36500"),
        ({"file_mb": 1 << 20}, "file_mb is 1048576; 1 to 4096"),
        ({"minutes": "5"}, "minutes is 5; 0 to 36500"),
        ({"sort": "a"}, "sort is a; a list of names of columns"),
        ({"zorder": ["a) --"]}, "zorder is ['a) --']; a list of names of columns"),
        ({"sort": ["a"], "zorder": ["b"]}, "it has sort and zorder; one of them"),
        ({"statistics": "no"}, "statistics is no; true or false"),
        ({"days": 1}, "days is no setting of a policy"),
    ],
)
def test_what_no_run_can_use_is_refused(document: dict[str, Any], fault: str) -> None:
    whole = {"tables": "*.*", **document} if document else document
    with pytest.raises(PolicyError, match="policy 2: ") as raised:
        policies.parse([{"tables": "*.*"}, whole])
    assert fault in str(raised.value)


def test_no_mapping_is_no_policy() -> None:
    with pytest.raises(PolicyError, match="policy 1 is no mapping"):
        policies.parse(["*.*"])  # type: ignore[list-item]


def of_inventory(*listed: Any) -> list[tuple[str, Level, str]]:
    host = Host("a", "", frozenset({"clients"}), {"upkeep_policies": list(listed)})
    return [(finding.check, finding.level, finding.fact) for finding in upkeep.policies(host)]


def test_an_inventory_is_checked_before_a_machine_is_touched() -> None:
    # None stands for an entry of another type, which has a line already.
    assert of_inventory({"tables": "*.*"}, None) == []
    assert of_inventory({"tables": "*.*", "orphan_days": 1}) == [
        ("upkeep.policy", Level.FAULT, "upkeep_policies: orphan_days is 1; 3 to 36500")
    ]
