"""The plan of a run: actions from the census, policies and pins, the worst tables first. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lakehouse.catalog.pins import Pins
from lakehouse.census.report import Limits, TableFinding
from lakehouse.upkeep import policies
from lakehouse.upkeep.policies import Policy
from plugins.module_utils.lakehouse.counting import counted
from plugins.module_utils.lakehouse.webhdfs import path_of

COMPACT, MANIFESTS, EXPIRE = "compact", "rewrite-manifests", "expire-snapshots"
ORPHANS, VACUUM, ANALYZE = "remove-orphans", "vacuum", "analyze"
_DAY_MS = 24 * 3600 * 1000
# Thresholds of findings: deletes slow each reader down, and a table with fewer files reads fast enough.
_DELETE_FILES, _SMALL_FILES, _SMALL_BYTES = 10, 8, 16 << 20
# The estimate of an action: to plan it, to open a file and to rewrite bytes, measured on two cores.
_SECONDS, _FILE_SECONDS, _BYTES_PER_SECOND = 3.0, 0.02, 16 << 20


@dataclass(frozen=True)
class Table:
    """A table of the census: `facts` are the additional metadata of its unit."""

    format: str
    database: str
    table: str
    location: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"

    @property
    def folder(self) -> str:
        """The path of its folder."""
        return path_of(self.location) or self.location

    def number(self, name: str) -> int:
        """Return a fact; 0 for one that is missing."""
        value = self.facts.get(name)
        return value if isinstance(value, int) else 0

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Table:
        """Return the table of its unit; one without facts where these are damaged."""
        try:
            facts = json.loads(row["additional_metadata"] or "{}")
        except (ValueError, RecursionError):
            facts = {}
        return cls(
            row["storage_plugin"],
            row["workspace"],
            row["table_name"],
            row["location"] or "",
            facts if isinstance(facts, dict) else {},
        )


@dataclass(frozen=True)
class Cost:
    """What an action reads or removes, and the seconds that it may take."""

    files: int
    bytes: int
    seconds: float


@dataclass(frozen=True)
class Action:
    """What is done to a table, by which policy, and why."""

    name: str
    table: Table
    policy: Policy
    reason: str
    cost: Cost

    def document(self) -> dict[str, Any]:
        """Return the action for programs."""
        return {
            "table": str(self.table), "format": self.table.format, "action": self.name,
            "policy": self.policy.tables, "reason": self.reason, **asdict(self.cost),
        }  # fmt: skip


@dataclass(frozen=True)
class Situation:
    """A table with its policy, findings by code, and the times of its last actions by name; 0 for never."""

    table: Table
    policy: Policy
    findings: Mapping[str, TableFinding]
    last: Mapping[str, int]
    pins: Pins
    time_ms: int

    def has_changed_since(self, action: str) -> bool:
        """Return whether the table has a commit since the last action of this name."""
        return self.table.number("last_commit") > self.last[action]

    @property
    def oldest_kept(self) -> int:
        """The time in milliseconds from which snapshots stay."""
        return self.time_ms - self.policy.age_days * _DAY_MS


@dataclass(frozen=True)
class Kind:
    """A kind of action: for which formats, why a table needs it (empty: it does not), and what it counts as.

    `removes` is whether it deletes files that an old state of the table may need, `in_folder` whether it
    deletes what is in the folder of the table and not in its metadata.
    """

    name: str
    formats: frozenset[str]
    reason: Callable[[Situation], str]
    codes: frozenset[str] = frozenset()
    removes: bool = False
    in_folder: bool = False


def _findings(name: str, codes: Collection[str]) -> Callable[[Situation], str]:
    """Return a reason from findings; none where nothing was committed since the last action."""

    def reason(situation: Situation) -> str:
        facts = [situation.findings[code].fact for code in sorted(codes) if code in situation.findings]
        return "; ".join(facts) if situation.has_changed_since(name) else ""

    return reason


def _old_snapshots(situation: Situation) -> str:
    count, oldest = situation.table.number("snapshots"), situation.table.number("oldest_snapshot")
    pinned = len(situation.pins.of(situation.table.folder).metadata)
    if count - pinned <= situation.policy.snapshots or oldest >= situation.oldest_kept:
        return ""
    text = f"{count} snapshots, the oldest of {counted((situation.time_ms - oldest) // _DAY_MS, 'day')} ago"
    return f"{text}; {pinned} stay that commits of the catalog's history need" if pinned else text


def _unseen_files(name: str) -> Callable[[Situation], str]:
    """Return a reason from the last search: what has become old enough since then was young in it."""

    def reason(situation: Situation) -> str:
        last, days = situation.last[name], situation.policy.orphan_days
        if not last:
            return f"never searched for files without a commit that are older than {counted(days, 'day')}"
        age = (situation.time_ms - last) // _DAY_MS
        return f"searched {counted(age, 'day')} ago" if age >= days else ""

    return reason


def _old_statistics(situation: Situation) -> str:
    if not situation.policy.statistics or not situation.has_changed_since(ANALYZE):
        return ""
    finding = situation.findings.get("stale_statistics")
    return finding.fact if finding else "its statistics are older than its last commit"


_WORN = frozenset({"small_files", "equality_deletes", "position_deletes"})
_MANY_MANIFESTS = frozenset({"many_manifests"})
# In the order in which a table gets them.
KINDS = (
    Kind(COMPACT, frozenset({"iceberg", "delta"}), _findings(COMPACT, _WORN), _WORN),
    Kind(MANIFESTS, frozenset({"iceberg"}), _findings(MANIFESTS, _MANY_MANIFESTS), _MANY_MANIFESTS),
    Kind(EXPIRE, frozenset({"iceberg"}), _old_snapshots, removes=True),
    Kind(ORPHANS, frozenset({"iceberg"}), _unseen_files(ORPHANS), removes=True, in_folder=True),
    Kind(VACUUM, frozenset({"delta"}), _unseen_files(VACUUM), removes=True, in_folder=True),
    Kind(ANALYZE, frozenset({"iceberg", "hive"}), _old_statistics),
)
# A table is worse than another one by these; the rest is routine, and comes after them.
_REPAIRS = frozenset({COMPACT, MANIFESTS, EXPIRE})


@dataclass(frozen=True)
class Plan:
    """Actions in their order, and lines about policies and actions that are left out."""

    actions: tuple[Action, ...]
    warnings: tuple[str, ...]


def limits(listed: Sequence[Policy]) -> Limits:
    """Return the thresholds of findings: files are small below half of the size that a policy wants."""
    small = min([_SMALL_BYTES, *(policy.file_bytes // 2 for policy in listed)])
    return Limits(small_file_bytes=small, small_files=_SMALL_FILES, delete_files=_DELETE_FILES)


def plan(  # noqa: PLR0913 -- all that decides
    tables: Sequence[Table],
    findings: Iterable[TableFinding],
    listed: Sequence[Policy],
    pins: Pins,
    *,
    last: Mapping[tuple[str, str], int],
    now: int,
    pattern: str = "*.*",
) -> Plan:
    """Return the plan for the tables of a pattern; `last` are times of actions by table and name."""
    policy_of, warnings = policies.assign(listed, ((table.database, table.table) for table in tables))
    by_table: dict[tuple[str, str, str], dict[str, TableFinding]] = {}
    for finding in findings:
        key = finding.storage_plugin, finding.workspace, finding.table_name
        by_table.setdefault(key, {})[finding.code] = finding
    neighbours, actions, without_pins = overlapping(tables), list[Action](), False
    for table in tables:
        policy = policy_of.get((table.database, table.table))
        if policy is None or not policies.matches(pattern, table.database, table.table):
            continue
        situation = Situation(
            table,
            policy,
            by_table.get((table.format, table.database, table.table), {}),
            {kind.name: last.get((str(table), kind.name), 0) for kind in KINDS},
            pins,
            now,
        )
        for kind, reason in _needed(situation):
            if kind.removes and pins.unknown:
                without_pins = True
            elif kind.in_folder and str(table) in neighbours:
                warnings.append(f"{table}: no {kind.name}, its folder has files of {neighbours[str(table)]}")
            else:
                actions.append(Action(kind.name, table, policy, reason, _cost(kind, situation)))
    if without_pins:
        warnings.append(f"no snapshot or file is removed: {pins.unknown}")
    return Plan(tuple(_ordered(actions)), tuple(warnings))


def _needed(situation: Situation) -> Iterator[tuple[Kind, str]]:
    for kind in KINDS:
        if situation.table.format in kind.formats and (reason := kind.reason(situation)):
            yield kind, reason


def _cost(kind: Kind, situation: Situation) -> Cost:
    """Return the cost of the worst finding, else that of the whole table."""
    costs = [
        (finding.size_bytes, finding.files)
        for code, finding in situation.findings.items()
        if code in kind.codes
    ]
    size, files = max(costs, default=(situation.table.number("bytes"), situation.table.number("files")))
    if kind.name == EXPIRE:
        size, files = 0, situation.table.number("snapshots")
    elif kind.name in {MANIFESTS, ORPHANS, VACUUM}:
        size = 0
    return Cost(files, size, round(_SECONDS + files * _FILE_SECONDS + size / _BYTES_PER_SECOND, 1))


def _ordered(actions: Sequence[Action]) -> list[Action]:
    """Return repairs, then routine; in both, the tables with the largest cost first."""
    ranks = {kind.name: rank for rank, kind in enumerate(KINDS)}
    costs: dict[tuple[bool, str], float] = {}
    for action in actions:
        key = action.name not in _REPAIRS, str(action.table)
        costs[key] = costs.get(key, 0) + action.cost.seconds

    def order(action: Action) -> tuple[bool, float, str, int]:
        key = action.name not in _REPAIRS, str(action.table)
        return key[0], -costs[key], key[1], ranks[action.name]

    return sorted(actions, key=order)


def overlapping(tables: Iterable[Table]) -> dict[str, str]:
    """Return the tables whose folder has that of another one in it, or is in such a folder, with that one."""
    neighbours: dict[str, str] = {}
    parents: list[Table] = []
    for table in sorted(
        (table for table in tables if table.folder), key=lambda table: table.folder.split("/")
    ):
        while parents and not f"{table.folder}/".startswith(f"{parents[-1].folder}/"):
            parents.pop()
        if parents:
            neighbours.setdefault(str(table), str(parents[-1]))
            neighbours.setdefault(str(parents[-1]), str(table))
        parents.append(table)
    return neighbours
