"""Takes a text of SQL apart into its statements, by the grammar of the engine that gets them. Pure.

Trino: SqlBase.g4 of its release; Spark: SqlBaseLexer.g4; Flink: Calcite's Parser.jj with back ticks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

_REST = r"|;|\w+|[^\w\s;'\"`/-]|\s+|."
# A text, name or comment that is not closed goes to the end.
_DOUBLED = r"""'(?:[^']|'')*(?:'|\Z)|"(?:[^"]|"")*(?:"|\Z)|`(?:[^`]|``)*(?:`|\Z)"""
_ESCAPED = (
    r"""\b[rR]'[^']*(?:'|\Z)|\b[rR]"[^"]*(?:"|\Z)"""
    r"""|'(?:[^'\\]|\\.|\\\Z)*(?:'|\Z)|"(?:[^"\\]|\\.|\\\Z)*(?:"|\Z)|`(?:[^`]|``)*(?:`|\Z)"""
)
_COMMENT = ("--", "/*")
# Of the comments of Spark, which are in each other; a hint is none.
_EDGE = re.compile(r"/\*(?!\+)|\*/")
# What has an END of its own, and what names itself behind it; of the latter BEGIN and CASE alone are counted.
_BLOCKS = frozenset({"BEGIN", "CASE"})
_CONTROLS = frozenset({"IF", "LOOP", "WHILE", "REPEAT", "FOR"})


@dataclass(frozen=True)
class Dialect:
    """How an engine reads a text: its pieces, and whether comments may be in each other.

    `begins` tells at a BEGIN whether a body begins, by the words and signs of the statement up to it and how
    many functions have none yet. `comments` is whether they are passed on: Flink's client ends a statement at
    a semicolon that is the last letter of a line.
    """

    piece: re.Pattern[str]
    begins: Callable[[Sequence[str], int], bool]
    nested: bool = False
    comments: bool = True


def _routine(_: Sequence[str], functions: int) -> bool:
    """Tell whether a function of Trino has its body here."""
    return functions > 0


def _script(words: Sequence[str], _: int) -> bool:
    """Tell whether a script of Spark begins, which may have a label."""
    return len(words) == 1 or (len(words) == 3 and words[1] == ":")  # noqa: PLR2004 -- label, colon, BEGIN


def _statement_set(words: Sequence[str], _: int) -> bool:
    """Tell whether statements of Flink follow that are one job."""
    return list(words[-3:]) == ["STATEMENT", "SET", "BEGIN"]


def _pieces(quoted: str, comment: str) -> re.Pattern[str]:
    return re.compile(rf"{quoted}|{comment}|/\*.*?(?:\*/|\Z){_REST}", re.DOTALL)


DIALECTS = {
    "trino": Dialect(_pieces(_DOUBLED, r"--[^\r\n]*"), _routine),
    "spark": Dialect(_pieces(_ESCAPED, r"--(?:\\\n|[^\r\n])*"), _script, nested=True),
    "flink": Dialect(_pieces(_DOUBLED, r"--[^\r\n]*"), _statement_set, comments=False),
}


def split(text: str, engine: str) -> list[str]:
    """Return the statements of a text as they stand there, without semicolons; empty ones are left out."""
    dialect, found = DIALECTS[engine], list[str]()
    begun, words, depth, functions, inside = "", list[str](), 0, 0, False
    for piece in _read(text, dialect):
        comment = piece.startswith(_COMMENT) and not piece.startswith("/*+")
        if piece == ";" and not depth:
            found += [begun.strip()] if words else []
            begun, words, functions = "", [], 0
            continue
        begun += " " if comment and not dialect.comments else piece
        if comment or piece.isspace():
            continue
        word, last = piece.upper(), words[-1] if words else ""
        words.append(word)
        if last == "END" and word in _CONTROLS:
            # It was not that of a block.
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
    return [*found, begun.strip()] if words else found


def _read(text: str, dialect: Dialect) -> Iterator[str]:
    """Give the pieces of a text, a comment with those that are in it."""
    place = 0
    while place < len(text):
        piece = dialect.piece.match(text, place)
        assert piece  # noqa: S101 -- any letter is one
        end = piece.end()
        if dialect.nested and piece[0].startswith("/*") and not piece[0].startswith("/*+"):
            end = _closed(text, place)
        yield text[place:end]
        place = end


def _closed(text: str, place: int) -> int:
    """Return where a comment ends that begins at a place."""
    depth = 0
    for edge in _EDGE.finditer(text, place):
        depth += 1 if edge[0] == "/*" else -1
        if not depth:
            return edge.end()
    return len(text)
