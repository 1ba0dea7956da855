"""The known failures, `failures.yml`, as data and as the page docs/failures.md."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lakehouse import yamlfile
from lakehouse.run import ROOT
from ops.doctor.diagnosis import CHECKS

FILE = Path(__file__).with_suffix(".yml")
KEY = "lakehouse_failures"
PAGE = ROOT / "docs" / "failures.md"
# The faults that tests make on a cluster, by the check that says them.
ON_A_CLUSTER = ROOT / "tests" / "cluster" / "faults.yml"


@dataclass(frozen=True)
class Known:
    """A failure: the tests that hold what is done about it, the checks that say it, or why it is `absent`.

    One that is not prevented, but `found` by another verb, names that.
    """

    failure: str
    tests: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    note: str = ""
    found: str = ""
    absent: str = ""


def load() -> tuple[Known, ...]:
    """Read the table."""
    rows = yamlfile.read(FILE)[KEY]
    return tuple(
        Known(**row | {name: tuple(row.get(name, ())) for name in ("tests", "checks")}) for row in rows
    )


def page(known: tuple[Known, ...]) -> str:
    """Return the page: what is counted, the failures, and all that the doctor looks for."""
    return "\n".join([*_head(known), *_failures(known), "", *_checks(), ""])


def _head(known: tuple[Known, ...]) -> Iterator[str]:
    absent = sum(bool(row.absent) for row in known)
    held = len(known) - absent
    found = sum(bool(row.found or not (row.tests or row.absent)) for row in known)
    said = sum(bool(row.checks) for row in known)
    yield from ("# Known failures", "", "<!-- Generated from ops/doctor/: make docs -->", "")
    yield from (
        "Ways in which such a stack goes wrong when it is built by hand. The kit prevents or diagnoses",
        f"{held} of {len(known)}: {held - found} are prevented, {found} are found.",
        f"{absent} cannot happen here. {said} have a line of `lakehouse doctor`, prevented or not.",
        "",
    )


def _failures(known: tuple[Known, ...]) -> Iterator[str]:
    yield from ("| # | Failure | Held by | Diagnosed by |", "|---|---|---|---|")
    for number, row in enumerate(known, start=1):
        absent = f"cannot happen: {row.absent}" if row.absent else ""
        held = "; ".join(filter(None, (absent, row.note, _names(row.tests)))) or "-"
        said = ", ".join(filter(None, (row.found, _names(row.checks)))) or "-"
        yield f"| {number} | {row.failure} | {held} | {said} |"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _checks() -> Iterator[str]:
    yield from ("## What the doctor looks for", "")
    faults = yamlfile.read(ON_A_CLUSTER)
    made = {fault["check"] for fault in faults["faults"]}
    yield from (
        f"{len(CHECKS)} checks, each of every host or service it is about. What is not known is not judged,",
        f"which is an error. For {len(made)} of them a test breaks something on a cluster, and",
        "expects that line and no other ([faults.yml](../tests/cluster/faults.yml), `make drills`); then it",
        "runs the command of the line, if that mends the fault, and expects the line to be gone. For each",
        "check a unit test makes the fault with answers that it makes up. Not broken on a cluster:",
        "",
        *(f"- `{name}`: {why}" for name, why in faults["elsewhere"].items()),
        "",
    )
    yield from ("| Check | What is wrong when it is found | What mends it |", "|---|---|---|")
    yield from (
        f"| `{check.name}` | {check.about} | {check.person or 'the command of its line'} |"
        for check in CHECKS
    )


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(load()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
