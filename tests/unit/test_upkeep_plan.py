"""The plan: which action and why, at what cost, the worst tables first, and what is left out with a line."""

from __future__ import annotations

from lakehouse.catalog.pins import Pin, Pins
from lakehouse.census.report import TableFinding
from lakehouse.upkeep import plan
from lakehouse.upkeep.plan import ANALYZE, COMPACT, EXPIRE, MANIFESTS, ORPHANS, VACUUM, Plan, Table
from lakehouse.upkeep.policies import Policy

DAY = 24 * 3600 * 1000
NOW = 1000 * DAY
NO_PINS = Pins({})
# What all tables of these tests had done today.
ROUTINE = (ORPHANS, VACUUM, ANALYZE)


def table(name: str, format_: str = "iceberg", location: str = "", **facts: int) -> Table:
    facts = {"files": 10, "bytes": 1000, "last_commit": NOW - DAY, **facts}
    return Table(format_, "sales", name, location or f"hdfs://x/lake/sales/{name}", facts)


def finding(
    name: str, code: str, files: int = 100, size: int = 1 << 30, format_: str = "iceberg"
) -> TableFinding:
    return TableFinding(code, "warning", format_, "sales", name, f"{code} of {name}", files, size, "")


def planned(  # noqa: PLR0913, PLR0917 -- as `plan.plan`
    tables: list[Table],
    findings: tuple[TableFinding, ...] = (),
    policies: tuple[Policy, ...] = (Policy(),),
    pins: Pins = NO_PINS,
    last: dict[tuple[str, str], int] | None = None,
    pattern: str = "*.*",
) -> Plan:
    times = {(str(table), name): NOW for table in tables for name in ROUTINE} if last is None else last
    return plan.plan(tables, findings, policies, pins, last=times, now=NOW, pattern=pattern)


def names(result: Plan) -> list[tuple[str, str]]:
    return [(action.table.table, action.name) for action in result.actions]


def test_a_table_without_need_gets_nothing() -> None:
    assert planned([table("a"), table("b", "delta"), table("c", "hive"), table("d", "hudi")]) == Plan((), ())


def test_the_worst_table_comes_first_and_its_actions_in_order() -> None:
    tables = [table("a"), table("b", snapshots=500, oldest_snapshot=0), table("c", "delta")]
    findings = (
        finding("a", "small_files", files=10),
        finding("b", "many_manifests"),
        finding("b", "position_deletes", files=9000),
        finding("c", "small_files", files=500, format_="delta"),
    )
    result = planned(tables, findings)
    assert names(result) == [
        ("b", COMPACT), ("b", MANIFESTS), ("b", EXPIRE), ("c", COMPACT), ("a", COMPACT),
    ]  # fmt: skip
    first = result.actions[0]
    assert first.reason == "position_deletes of b"
    assert (first.cost.files, first.cost.bytes, first.cost.seconds) == (9000, 1 << 30, 247.0)
    assert first.document()["table"] == "sales.b"


def test_routine_comes_after_all_repairs() -> None:
    result = planned([table("a"), table("b"), table("c", "delta")], (finding("b", "small_files"),), last={})
    assert names(result) == [
        ("b", COMPACT),
        ("a", ORPHANS), ("a", ANALYZE), ("b", ORPHANS), ("b", ANALYZE), ("c", VACUUM),
    ]  # fmt: skip


def test_a_finding_of_another_table_of_this_name_does_not_count() -> None:
    assert names(planned([table("a")], (finding("a", "small_files", format_="hive"),))) == []


def test_nothing_is_repeated_before_the_table_changes() -> None:
    findings = (finding("a", "small_files"),)
    done = {("sales.a", name): NOW - DAY // 2 for name in (*ROUTINE, COMPACT)}
    assert names(planned([table("a")], findings, last=done)) == []
    assert names(planned([table("a", last_commit=NOW)], findings, last=done)) == [
        ("a", COMPACT),
        ("a", ANALYZE),
    ]


def test_files_without_a_commit_are_searched_once_in_the_days_of_the_policy() -> None:
    done = {("sales.a", ORPHANS): NOW - 6 * DAY, ("sales.a", ANALYZE): NOW}
    assert names(planned([table("a")], last=done)) == []
    [action] = planned([table("a")], last=done, policies=(Policy(orphan_days=6),)).actions
    assert (action.name, action.reason) == (ORPHANS, "searched 6 days ago")


def test_snapshots_expire_that_are_too_many_and_too_old() -> None:
    old = table("a", snapshots=30, oldest_snapshot=NOW - 9 * DAY)
    [action] = planned([old]).actions
    assert (action.name, action.reason) == (EXPIRE, "30 snapshots, the oldest of 9 days ago")
    assert names(planned([old], policies=(Policy(snapshots=30),))) == []
    assert names(planned([old], policies=(Policy(age_days=9),))) == []


def test_a_policy_that_would_expire_a_pinned_snapshot_says_that_it_stays() -> None:
    old = table("a", snapshots=30, oldest_snapshot=NOW - 9 * DAY)
    pins = Pins({"/lake/sales/a": Pin(frozenset({"m1", "m2"}))})
    [action] = planned([old], pins=pins).actions
    assert action.reason.endswith("; 2 stay that commits of the catalog's history need")
    assert names(planned([old], pins=pins, policies=(Policy(snapshots=28),))) == []


def test_statistics_follow_the_data_where_the_policy_says_so() -> None:
    tables = [table("a"), table("h", "hive"), table("d", "delta")]
    done = {("sales.a", ORPHANS): NOW, ("sales.d", VACUUM): NOW}
    assert names(planned(tables, last=done)) == [("a", ANALYZE), ("h", ANALYZE)]
    assert names(planned(tables, last=done, policies=(Policy(statistics=False),))) == []


def test_without_pins_nothing_is_removed_and_the_rest_is_done() -> None:
    tables = [table("a", snapshots=99, oldest_snapshot=0), table("d", "delta")]
    result = planned(tables, (finding("a", "small_files"),), pins=Pins({}, "they are old"), last={})
    assert names(result) == [("a", COMPACT), ("a", ANALYZE)]
    assert result.warnings == ("no snapshot or file is removed: they are old",)


def test_no_file_is_removed_from_a_folder_with_another_table() -> None:
    tables = [table("a"), table("b", "hive", "hdfs://x/lake/sales/a/data"), table("ab"), table("c")]
    done = {(str(row), ANALYZE): NOW for row in tables}
    result = planned(tables, last=done)
    assert names(result) == [("ab", ORPHANS), ("c", ORPHANS)]
    assert result.warnings == ("sales.a: no remove-orphans, its folder has files of sales.b",)
    assert plan.overlapping(tables) == {"sales.a": "sales.b", "sales.b": "sales.a"}


def test_a_pattern_selects_tables_and_policies_have_their_lines() -> None:
    findings = (finding("a", "small_files"), finding("b", "small_files"))
    result = planned([table("a"), table("b")], findings, (Policy("old.*"), Policy()), pattern="sales.b")
    assert names(result) == [("b", COMPACT)]
    assert result.warnings == ("policy 1, old.*: it matches no table",)


def test_a_table_without_a_policy_gets_nothing() -> None:
    result = planned([table("a"), table("b")], (finding("a", "small_files"),), (Policy("sales.b"),), last={})
    assert {name for name, _ in names(result)} == {"b"}


def test_files_are_small_below_half_of_what_a_policy_wants() -> None:
    assert plan.limits([Policy()]).small_file_bytes == 16 << 20
    assert plan.limits([Policy(), Policy(file_mb=8)]).small_file_bytes == 4 << 20


def test_a_unit_with_damaged_facts_is_a_table_without_facts() -> None:
    row = {"storage_plugin": "iceberg", "workspace": "a", "table_name": "b", "location": None}
    for text in ("{", "[]", None, "[" * 100_000):
        assert Table.of_row({**row, "additional_metadata": text}).facts == {}
    facts = Table.of_row({**row, "additional_metadata": '{"files": 3, "bytes": "x"}'})
    assert (facts.number("files"), facts.number("bytes"), facts.number("none")) == (3, 0, 0)
