"""Split a text of SQL into statements, by the grammar of its engine. Pure.

Trino: SqlBase.g4 of its release; Spark: SqlBaseLexer.g4; Flink: Calcite's Parser.jj with back ticks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

_REST = r"|;|\w+|[^\w\s;'\"`/-]|\s+|."
# An unclosed literal, name or comment extends to the end.
_DOUBLED = r"""'(?:[^']|'')*(?:'|\Z)|"(?:[^"]|"")*(?:"|\Z)|`(?:[^`]|``)*(?:`|\Z)"""
_ESCAPED = (
    r"""\b[rR]'[^']*(?:'|\Z)|\b[rR]"[^"]*(?:"|\Z)"""
    r"""|'(?:[^'\\]|\\.|\\\Z)*(?:'|\Z)|"(?:[^"\\]|\\.|\\\Z)*(?:"|\Z)|`(?:[^`]|``)*(?:`|\Z)"""
)
_COMMENT = ("--", "/*")
# Delimiters of Spark's nested comments; a hint is none.
_EDGE = re.compile(r"/\*(?!\+)|\*/")
# Blocks with a plain END, and control structures, which repeat their name after END.
_BLOCKS = frozenset({"BEGIN", "CASE"})
_CONTROLS = frozenset({"IF", "LOOP", "WHILE", "REPEAT", "FOR"})


@dataclass(frozen=True)
class Dialect:
    """The lexical rules of an engine: its tokens, and whether comments are nested.

    `begins` returns whether a BEGIN starts a body, by the words of the statement up to it and the number of
    functions without a body. `comments` is whether they are kept: Flink's client ends a statement at a
    semicolon at the end of a line, also in a comment.
    """

    piece: re.Pattern[str]
    begins: Callable[[Sequence[str], int], bool]
    nested: bool = False
    comments: bool = True


def _routine(_: Sequence[str], functions: int) -> bool:
    """Return whether the body of a Trino function begins."""
    return functions > 0


def _script(words: Sequence[str], _: int) -> bool:
    """Return whether a Spark script begins, which may have a label."""
    return len(words) == 1 or (len(words) == 3 and words[1] == ":")  # noqa: PLR2004 -- label, colon, BEGIN


def _statement_set(words: Sequence[str], _: int) -> bool:
    """Return whether a statement set of Flink begins."""
    return list(words[-3:]) == ["STATEMENT", "SET", "BEGIN"]


def _pieces(quoted: str, comment: str) -> re.Pattern[str]:
    return re.compile(rf"{quoted}|{comment}|/\*.*?(?:\*/|\Z){_REST}", re.DOTALL)


DIALECTS = {
    "trino": Dialect(_pieces(_DOUBLED, r"--[^\r\n]*"), _routine),
    "spark": Dialect(_pieces(_ESCAPED, r"--(?:\\\n|[^\r\n])*"), _script, nested=True),
    "flink": Dialect(_pieces(_DOUBLED, r"--[^\r\n]*"), _statement_set, comments=False),
}


def split(text: str, engine: str) -> list[str]:
    """Return the unchanged statements of a text, without semicolons and empty ones."""
    dialect, statements = DIALECTS[engine], list[str]()
    current, words, depth, functions, inside = "", list[str](), 0, 0, False
    for piece in _read(text, dialect):
        comment = piece.startswith(_COMMENT) and not piece.startswith("/*+")
        if piece == ";" and not depth:
            statements += [current.strip()] if words else []
            current, words, functions = "", [], 0
            continue
        current += " " if comment and not dialect.comments else piece
        if comment or piece.isspace():
            continue
        word, last = piece.upper(), words[-1] if words else ""
        words.append(word)
        if last == "END" and word in _CONTROLS:
            # This END belonged to a control structure.
            depth += inside
        elif word == "END" and depth:
            depth -= 1
        elif depth and word in _BLOCKS and last != "END":
            depth += 1
        elif not depth:
            functions += word == "FUNCTION"
            if word == "BEGIN" and dialect.begins(words, functions):
                depth, functions = 1, functions - 1
        inside = depth > 0 or (word == "END" and inside)
    return [*statements, current.strip()] if words else statements


def _read(text: str, dialect: Dialect) -> Iterator[str]:
    """Yield the tokens of a text; nested comments are one token."""
    position = 0
    while position < len(text):
        piece = dialect.piece.match(text, position)
        assert piece  # noqa: S101 -- any letter is one
        end = piece.end()
        if dialect.nested and piece[0].startswith("/*") and not piece[0].startswith("/*+"):
            end = _closed(text, position)
        yield text[position:end]
        position = end


def _closed(text: str, position: int) -> int:
    """Return the end of the comment at a position."""
    depth = 0
    for edge in _EDGE.finditer(text, position):
        depth += 1 if edge[0] == "/*" else -1
        if not depth:
            return edge.end()
    return len(text)
