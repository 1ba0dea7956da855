"""The names of metrics in an expression of PromQL."""

from __future__ import annotations

import re

_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|`[^`]*`")
# Label matchers, ranges, and the labels by which an operator groups or joins.
_BRACES, _RANGE = re.compile(r"\{[^{}]*\}"), re.compile(r"\[[^\[\]]*\]")
_LABELS = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^()]*\)")
# A number with a unit, as in `offset 5m`, begins with a digit and is no name.
_NAME = re.compile(r"(?<![\w:.])[a-zA-Z_:][\w:]*(?!\w)(?!\s*\()")
_WORDS = frozenset(
    {
        *("and", "or", "unless", "by", "without", "on", "ignoring", "group_left", "group_right"),
        *("bool", "offset", "start", "end", "inf", "nan", "atan2"),
    }
)


def metrics(expression: str) -> set[str]:
    """Return the names of the metrics that an expression of PromQL reads.

    The grammar: https://prometheus.io/docs/prometheus/latest/querying/basics/. A selector without a name,
    `{__name__=~"..."}`, has none.
    """
    text = _STRING.sub("", expression)
    for pattern in (_BRACES, _RANGE, _LABELS):
        text = pattern.sub(" ", text)
    return {name for name in _NAME.findall(text) if name.lower() not in _WORDS}
