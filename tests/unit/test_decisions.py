"""A decision is a short page of one form. The index lists it by its title, and every link to it resolves."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakehouse.dev import ratchet

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "decisions"
INDEX = FOLDER / "README.md"
PAGES = sorted(FOLDER.glob("[0-9]*.md"))
NAMES = {page.name for page in PAGES}
WORDS = 250
COLUMNS = 160
SECTIONS = (["Context", "Decision", "Rejected", "Consequences"], ["Context", "Decision", "Consequences"])
SECTION = re.compile(r"^\*\*(?P<name>[^*]+)\.\*\*", re.MULTILINE)
TITLE = re.compile(r"# (?P<number>\d{4}): (?P<title>\S.*)")
ROW = re.compile(r"^\| \[(?P<number>\d{4})\]\((?P<name>[^)]+)\) \| (?P<title>.+) \|$", re.MULTILINE)
# A decision by its file, by its number after the folder, and by both in a link.
FILE = re.compile(r"\b\d{4}-[a-z][\w.-]*\.md\b")
NUMBER = re.compile(r"\bdecisions/(?P<number>\d{4})\b(?!-)")
LABEL = re.compile(r"\[(?:[Dd]ecision )?(?P<number>\d{4})\](?:\(|: )[\w./-]*?(?P<name>\d{4}-[\w.-]+\.md)")
SCANNED = (".j2", ".java", ".md", ".py", ".sh", ".txt", ".yaml", ".yml")


def faults(name: str, text: str) -> Iterator[str]:
    """Yield how a decision breaks the form."""
    title, _, body = text.partition("\n")
    match = TITLE.fullmatch(title)
    if not match or match["number"] != name[:4]:
        yield f"the title begins with '# {name[:4]}: '"
    if (words := len(text.split())) > WORDS:
        yield f"at most {WORDS} words, not {words}"
    if SECTION.findall(body) not in SECTIONS:
        yield f"the sections are {', '.join(SECTIONS[0])}"
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > COLUMNS:
            yield f"line {number} has {len(line)} characters, more than {COLUMNS}"


def broken(text: str) -> Iterator[str]:
    """Yield each reference to a decision that does not exist, or whose label is the number of another one."""
    numbers = {name[:4] for name in NAMES}
    yield from (name for name in FILE.findall(text) if name not in NAMES)
    yield from (match[0] for match in NUMBER.finditer(text) if match["number"] not in numbers)
    yield from (match[0] for match in LABEL.finditer(text) if match["number"] != match["name"][:4])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_decision_has_the_form(page: Path) -> None:
    assert list(faults(page.name, page.read_text(encoding="utf-8"))) == []


def test_a_number_belongs_to_one_decision() -> None:
    numbers = Counter(name[:4] for name in NAMES)
    assert [number for number, count in numbers.items() if count > 1] == []


def test_the_index_lists_each_decision_by_its_title() -> None:
    rows = [match.groups() for match in ROW.finditer(INDEX.read_text(encoding="utf-8"))]
    titles = [TITLE.match(page.read_text(encoding="utf-8")) for page in PAGES]
    assert rows == [
        (title["number"], page.name, title["title"])
        for page, title in zip(PAGES, titles, strict=True)
        if title
    ]


def test_every_link_to_a_decision_resolves() -> None:
    paths = ratchet.files(ROOT, SCANNED, {"build", "data", "golden"})
    wrong = {
        path.as_posix(): names
        for path in paths
        if path.name != Path(__file__).name
        and (names := list(broken((ROOT / path).read_text(encoding="utf-8"))))
    }
    assert wrong == {}


GOOD = "# 0001: A title\n\n**Context.** A.\n\n**Decision.** B.\n\n**Consequences.** C.\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (GOOD.replace("0001", "0002"), "begins with '# 0001: '"),
        (GOOD.replace(" A title", ""), "begins with '# 0001: '"),
        (GOOD + "word " * WORDS, f"at most {WORDS} words"),
        (GOOD.replace("**Decision.** ", ""), "the sections are"),
        (GOOD.replace("Context", "Rejected"), "the sections are"),
        (GOOD + "x" * (COLUMNS + 1), f"more than {COLUMNS}"),
    ],
)
def test_a_decision_without_the_form_is_named(text: str, reason: str) -> None:
    assert list(faults("0001-a-title.md", GOOD)) == []
    assert any(reason in fault for fault in faults("0001-a-title.md", text))


@pytest.mark.parametrize(
    "text",
    [
        "[a](decisions/0001-not-there.md)",
        "# docs/decisions/9999.",
        "[0002](decisions/0001-ansible-and-docker-sdk.md)",
        "[0002]: docs/decisions/0001-ansible-and-docker-sdk.md",
    ],
)
def test_a_broken_link_to_a_decision_is_named(text: str) -> None:
    good = "[0001](decisions/0001-ansible-and-docker-sdk.md), docs/decisions/0001, 2026-11-27 and [0001]"
    assert list(broken(good)) == []
    assert list(broken(text)) != []
