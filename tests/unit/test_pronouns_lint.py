"""`make lint` refuses new sentences that do not say who acts; the recorded numbers only fall."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse.dev import pronouns
from lakehouse.run import ROOT

# Put together, so that this file has none.
WORD = pronouns.WORDS[0]
SENTENCE = f"{WORD.title()} reads it."
PAGE = "docs/a.md"


def a_checkout(folder: Path, path: str, text: str, record: str = "") -> Path:
    """Make a checkout of one file and the record."""
    for name, content in ((path, text), (pronouns.NAME, record)):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    return folder


def found(path: str, text: str) -> list[tuple[int, str]]:
    """Return the lines with such a word: number and text."""
    return [(line.number, line.text) for line in pronouns.pronouns(path, text)]


@pytest.mark.parametrize("word", pronouns.WORDS)
def test_a_sentence_with_such_a_word_is_found_in_any_case(word: str) -> None:
    for spelt in (word, word.title(), word.upper(), f"{word}'s", f"**{word}**", f"({word})", f"{word}."):
        assert found(PAGE, f"first\nWhat {spelt} does\nlast\n") == [(2, f"What {spelt} does")]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("lakehouse/a.py", f'"""{SENTENCE}"""'),
        ("lakehouse/a.py", f"x = 1  # {SENTENCE}"),
        ("lakehouse/a.py", f'fault = "{SENTENCE}"'),
        ("lakehouse/a.py", f'fault = f"{WORD} has {{name}}"'),
        ("roles/a/vars/main.yml", f"# {SENTENCE}"),
        ("roles/a/vars/main.yml", f'note: "{SENTENCE}"'),
        ("metastore/A.java", f"  // {SENTENCE}"),
        ("templates/a.j2", f"# {SENTENCE}"),
        (PAGE, f"a `name` that {WORD} has, and `another`"),
    ],
)
def test_it_is_found_in_comments_docstrings_and_messages(path: str, line: str) -> None:
    assert found(path, f"\n{line}\n") == [(2, line.strip())]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (PAGE, f"The account `{WORD}` owns no file.\n"),
        (PAGE, f"It prints `{WORD} answers here`, or ``{WORD}`s``.\n"),
        (PAGE, f"```bash\necho {WORD}\n\nrunuser {WORD}\n```\n"),
        (PAGE, f"- a list\n\n  ```\n  {SENTENCE}\n  ```\n"),
        (PAGE, f"[decision](0038-keys-that-{WORD}-reads.md), /{WORD}/home\n"),
        (PAGE, f"<!-- rows:start (make docs) -->\n| {SENTENCE} |\n<!-- rows:end -->\n"),
        (PAGE, f"# Page\n\n<!-- Generated from lakehouse/: make docs -->\n\n{SENTENCE}\n"),
        ("lakehouse/a.py", f'user = "{WORD}"\n'),
        ("lakehouse/a.py", f"{WORD} = read()\n{WORD}.close()\n"),
        ("lakehouse/a.py", f"def test_{WORD}_reads() -> None: ...\n"),
        ("lakehouse/a.py", f"# As `{WORD}` does it.\n"),
        ("lakehouse/a.py", f'run("runuser -u {WORD} -- id", "USER {WORD}")\n'),
        ("roles/a/defaults/main.yml", f"a_user: {WORD}\n  user: {WORD}\n"),
    ],
)
def test_code_names_and_generated_text_are_left_alone(path: str, text: str) -> None:
    assert found(path, text) == []


def test_lines_keep_their_numbers_behind_a_block() -> None:
    assert found(PAGE, f"```\n{WORD}\n\n```\n`a`\n{SENTENCE}\n") == [(6, SENTENCE)]
    program = f'{WORD} = """\n{WORD} = 1\n"""\n# {SENTENCE}\n'
    assert found("lakehouse/a.py", program) == [(2, f"{WORD} = 1"), (4, f"# {SENTENCE}")]


def test_a_new_sentence_is_named_with_what_to_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a_checkout(tmp_path, PAGE, f"# A\n\n{SENTENCE}\n")
    assert pronouns.main([], tmp_path) == 1
    message = capsys.readouterr().err
    assert message.startswith(f"{PAGE}:3 has {WORD.title()!r} in place of who acts: {SENTENCE} ")
    assert "next: write who acts: a component, a command, a role (" in message
    # It can only be written down by a person, in review.
    assert pronouns.main(["--write"], tmp_path) == 1
    assert (tmp_path / pronouns.NAME).read_text(encoding="utf-8") == ""


def test_a_file_may_not_get_worse_where_another_gets_better(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a_checkout(tmp_path, PAGE, f"{SENTENCE}\n{SENTENCE}\n", f"{PAGE}: 1\ndocs/b.md: 2\n")
    assert pronouns.main([], tmp_path) == 1
    assert f"({pronouns.NAME} has 1 of 2 in this file)" in capsys.readouterr().err
    assert pronouns.main(["--write"], tmp_path) == 1
    assert (tmp_path / pronouns.NAME).read_text(encoding="utf-8") == f"{PAGE}: 1\n"


def test_the_recorded_number_only_falls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_checkout(tmp_path, PAGE, f"{SENTENCE}\n", f"{PAGE}: 3\nlakehouse/a.py: 1\n")
    assert pronouns.main([], tmp_path) == 1
    message = capsys.readouterr().err
    assert f"3 lines are in {pronouns.NAME} and no longer in the files; next: {pronouns.COMMAND}" in message
    assert pronouns.main(["--write"], tmp_path) == 0
    assert (tmp_path / pronouns.NAME).read_text(encoding="utf-8") == f"{PAGE}: 1\n"
    assert pronouns.main([], tmp_path) == 0


def test_what_is_built_or_follows_from_other_files_does_not_count(tmp_path: Path) -> None:
    for path in ("build/a.md", ".venv/a.py", "tests/render/golden/a.yml", "docs/drills.md", "a.txt"):
        a_checkout(tmp_path, path, f"# {SENTENCE}\n")
    assert pronouns.main([], tmp_path) == 0


def test_this_checkout_has_no_new_pronoun(capsys: pytest.CaptureFixture[str]) -> None:
    assert pronouns.main([]) == 0, capsys.readouterr().err


def test_lint_runs_the_rule() -> None:
    [recipe] = [line for line in (ROOT / "Makefile").read_text().splitlines() if "ruff check" in line]
    assert "python -m lakehouse.dev.pronouns" in recipe
