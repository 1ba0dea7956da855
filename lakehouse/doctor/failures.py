"""The known failures, `failures.yml`, as data and as the page docs/failures.md."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lakehouse import yamlfile
from lakehouse.doctor.diagnosis import CHECKS
from lakehouse.run import ROOT

FILE = Path(__file__).with_suffix(".yml")
KEY = "lakehouse_failures"
PAGE = ROOT / "docs" / "failures.md"
# The faults that tests make on a cluster, by the check that reports them.
ON_A_CLUSTER = ROOT / "tests" / "cluster" / "faults.yml"


@dataclass(frozen=True)
class Failure:
    """A failure: the tests that prevent it, the checks that report it, or why it is `absent`.

    `verb` is another command that reports it, where it is not prevented.
    """

    failure: str
    tests: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    note: str = ""
    verb: str = ""
    absent: str = ""


def load() -> tuple[Failure, ...]:
    """Read the table."""
    rows = yamlfile.read(FILE)[KEY]
    return tuple(
        Failure(**row | {name: tuple(row.get(name, ())) for name in ("tests", "checks")}) for row in rows
    )


def page(failures: tuple[Failure, ...]) -> str:
    """Return the page: numbers, the failures, and all checks of the doctor."""
    return "\n".join([*_head(failures), *_failures(failures), "", *_checks(), ""])


def _head(failures: tuple[Failure, ...]) -> Iterator[str]:
    absent = sum(bool(row.absent) for row in failures)
    handled = len(failures) - absent
    reported = sum(bool(row.verb or not (row.tests or row.absent)) for row in failures)
    with_checks = sum(bool(row.checks) for row in failures)
    yield from ("# Known failures", "", "<!-- Generated from lakehouse/doctor/: make docs -->", "")
    yield from (
        "Ways in which such a stack goes wrong when it is built by hand. The kit prevents or diagnoses",
        f"{handled} of {len(failures)}: {handled - reported} are prevented, {reported} are found.",
        f"{absent} cannot happen here. {with_checks} have a line of `lakehouse doctor`, prevented or not.",
        "",
    )


def _failures(failures: tuple[Failure, ...]) -> Iterator[str]:
    yield from ("| # | Failure | Held by | Diagnosed by |", "|---|---|---|---|")
    for number, row in enumerate(failures, start=1):
        absent = f"cannot happen: {row.absent}" if row.absent else ""
        prevention = "; ".join(filter(None, (absent, row.note, _names(row.tests)))) or "-"
        diagnosis = ", ".join(filter(None, (row.verb, _names(row.checks)))) or "-"
        yield f"| {number} | {row.failure} | {prevention} | {diagnosis} |"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _checks() -> Iterator[str]:
    yield from ("## What the doctor looks for", "")
    faults = yamlfile.read(ON_A_CLUSTER)
    tested_checks = {fault["check"] for fault in faults["faults"]}
    yield from (
        f"{len(CHECKS)} checks, each of every host or service it is about. What is not known is not judged,",
        f"which is an error. For {len(tested_checks)} of them a test breaks something on a cluster, and",
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
