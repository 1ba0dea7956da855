"""CHANGELOG.md has the form of Keep a Changelog 1.1.0, with entries of one short line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHANGELOG = ROOT / "CHANGELOG.md"
LIMIT = 160
SECTIONS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
UNRELEASED = "## [Unreleased]"
VERSION = re.compile(r"## \[(?P<version>\d+\.\d+\.\d+)\] - (?P<day>\d{4}-\d{2}-\d{2})")
REFERENCE = re.compile(r"(?<=[(\s])\[(\d{4})\](?=[,)])")
DEFINITION = re.compile(r"\[(\d{4})\]: (\S+)")


def day(text: str) -> date | None:
    """Return the date, or None if the calendar has no such day."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def fault(line: str) -> str | None:
    """Return how a line below the introduction breaks the form, or None."""
    if line.startswith("## "):
        match = VERSION.fullmatch(line)
        return None if match and day(match["day"]) else "a version needs a number and a date"
    if line.startswith("#"):
        return None if line.removeprefix("### ") in SECTIONS else f"a section is one of {', '.join(SECTIONS)}"
    if line.startswith("- "):
        return None if len(line) <= LIMIT else f"an entry has at most {LIMIT} characters, not {len(line)}"
    return None if not line or DEFINITION.fullmatch(line) else "an entry is one line that begins with '- '"


def faults(text: str) -> Iterator[str]:
    """Yield each line that breaks the form, and each decision without its definition or reference."""
    _, heading, versions = text.partition(f"{UNRELEASED}\n")
    if not heading:
        yield f"no heading {UNRELEASED}"
    for line in versions.splitlines():
        if reason := fault(line):
            yield f"{reason}: {line}"
    references, definitions = set(REFERENCE.findall(text)), dict(DEFINITION.findall(text))
    for number in sorted(references ^ definitions.keys()):
        yield f"decision [{number}] is {'not defined' if number in references else 'not referenced'}"


def test_the_changelog_has_its_form() -> None:
    assert list(faults(CHANGELOG.read_text(encoding="utf-8"))) == []


def test_the_newest_version_comes_first_and_is_that_of_the_package() -> None:
    releases = list(VERSION.finditer(CHANGELOG.read_text(encoding="utf-8")))
    days = [release["day"] for release in releases]
    assert days == sorted(days, reverse=True)
    package = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert releases[0]["version"] == package["version"]


def test_a_decision_that_the_changelog_links_exists() -> None:
    definitions = DEFINITION.findall(CHANGELOG.read_text(encoding="utf-8"))
    wrong = {
        number: path
        for number, path in definitions
        if not path.startswith(f"docs/decisions/{number}-") or not (ROOT / path).is_file()
    }
    assert wrong == {}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("## [1.0.0]", "needs a number and a date"),
        ("## [1.0.0] - 2026-02-30", "needs a number and a date"),
        ("### Improved", "a section is one of"),
        ("- " + "x" * (LIMIT - 1), "at most 160 characters, not 161"),
        ("  and goes on in a second line", "an entry is one line"),
        ("- An entry. ([0001])", "[0001] is not defined"),
        ("[0001]: docs/decisions/0001-ansible-and-docker-sdk.md", "[0001] is not referenced"),
    ],
)
def test_a_line_that_breaks_the_form_is_named(line: str, reason: str) -> None:
    good = f"# Changelog\n\n{UNRELEASED}\n\n### Added\n\n- A short entry.\n\n## [0.1.0] - 2026-11-27\n"
    assert list(faults(good)) == []
    [message] = faults(f"{good}{line}\n")
    assert reason in message


def test_a_changelog_without_its_unreleased_part_is_named() -> None:
    assert list(faults("# Changelog\n")) == [f"no heading {UNRELEASED}"]
