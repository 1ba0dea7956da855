"""Finds where secrets stand in a text by parsing its format: places by name, whatever the value is. Pure.

Each function yields spans, as `(begin, end)`, of values whose name is a secret's. A text may be cut off at
either end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import yaml

Span = tuple[int, int]
# Tells of a name and its value whether the value is a secret.
IsSecret = Callable[[str, str], bool]

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_VAULT_TAG = "!vault"
_SPACES = " \t\r"
_DEEPEST = 100
# How much of a line before a value is searched for the quote that the value is in.
_LOOK_BACK = 4096

_JSON_TEXT = r'"((?:[^"\\\n]|\\.)*)"'
# A member, an object of a name and a value, a list of both.
_JSON_KEYS = (
    re.compile(rf"{_JSON_TEXT}\s*:\s*"),
    re.compile(rf'"(?:key|name)"\s*:\s*{_JSON_TEXT}\s*,\s*"value"\s*:\s*'),
    re.compile(rf"\[\s*{_JSON_TEXT}\s*,\s*"),
)
_JSON_VALUE = json.JSONDecoder(strict=False)

_PROPERTY = re.compile(r"<property>((?:(?!</property>|<property>)[\s\S])*)(?:</property>|\Z)")
_CDATA = r"<!\[CDATA\[[\s\S]*?\]\]>"
_VALUE = rf"<value>((?:{_CDATA}|(?!</value>)[\s\S])*)(?:</value>|\Z)"
_XML_BEHIND = re.compile(rf"<name>\s*([^<]*?)\s*</name>(?:(?!</property>|<name>|<value>)[\s\S])*{_VALUE}")
_XML_NAME = re.compile(r"<name>\s*([^<]*?)\s*</name>")
_XML_VALUE = re.compile(_VALUE)
# The end of a property whose beginning was cut off, with its name.
_XML_REST = re.compile(r"\A((?:(?!<property>|<name>)[\s\S])*?)</value>")
_XML_TAG = re.compile(r"<([A-Za-z_][\w:.\-]*)(?:\s[^<>]*)?(?<!/)>")

# A line of properties or YAML: a remark's sign or a dash, the name, the rest.
_LINE = re.compile(
    r"""^(?P<indent>[ \t]*)(?P<lead>[#;!][#;! \t]*|(?:-[ \t]+)+|export[ \t]+)?"""
    r"""(?P<key>(?:[^\s=:\\"'{}\[\],<>|#;!]|\\.)+)(?P<sep>[ \t]*(?:=>|[=:])[ \t]*|[ \t]+)(?P<rest>[^\n]*)""",
    re.MULTILINE,
)
_SPACED = re.compile(r"\.(?:properties|conf|cfg)$")
_YAML = re.compile(r"\.ya?ml$")
_BLOCK = re.compile(r"[|>][+\-\d]*[ \t]*(?:#.*)?\r?$")

# name=value, name: value, "name": "value", name => value.
_PAIR = re.compile(r"""(?<![\w.\-])([\w.\-]+)(\\*["'])?[ \t]*(?:=>|[=:])[ \t]*""")
# --name value, "--name", "value".
_OPTION = re.compile(r"""(?<![\w\-])--?([A-Za-z][\w.\-]*)(?:["'],?|,)?[ \t]+""")
_USER = re.compile(r"(?<![\w\-])(?:-u|--user|--proxy-user)(?:[ \t]+|=)")
_USER_AND_GROUP = re.compile(r"\d+:\d+")
_NEXT_PAIR = re.compile(r"[&;,][ \t]*[\w.\-]+[ \t]*=")
# Before a name that is one of several in a URL, a connection's string or a map.
_SEPARATORS = "?&;,{[("
# A string of JSON inside another one.
_ESCAPED = re.compile(r'\\"(?:[^"\\\n]|\\\\(?:\\\\|\\"|[^\\"\n]))*(?:\\"|$)', re.MULTILINE)
_SQL = re.compile(r"\b(?:password|identified\s+by(?:\s+password)?)\s+(?=E?['\"]|\$\$)", re.IGNORECASE)
_SQL_TEXT = re.compile(r"E?'(?:[^']|'')*'|\$\$[\s\S]*?\$\$|\"[^\"\n]*\"", re.IGNORECASE)
_SQL_WORD = re.compile(
    r"\b(?:create|alter)\s+(?:user|role)\b[^\n;]*?\bidentified\s+by\s+(?!['\"])(\S+)", re.IGNORECASE
)


def of_yaml(text: str, is_secret: IsSecret) -> Iterator[Span]:
    """Yield the values of a document of YAML, and what a vault has encrypted; YAMLError where it is none."""
    _want_shallow(text)
    waiting = list(yaml.compose_all(text, Loader=_LOADER))
    seen = set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.tag == _VAULT_TAG:
            yield _span(text, node)
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value
        elif isinstance(node, yaml.MappingNode):
            words = {str(key.value): value for key, value in node.value}
            named = words.get("name", words.get("key"))
            for key, value in node.value:
                waiting.append(key)
                names = [key, *([named] if named and key.value == "value" else [])]
                word = value.value if isinstance(value, yaml.ScalarNode) else "of several"
                if any(is_secret(str(name.value), word) for name in names):
                    yield _span(text, value)
                else:
                    waiting.append(value)


def _want_shallow(text: str) -> None:
    """Raise YAMLError for a text that nests deeper than a document: its composer would end the process."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise yaml.YAMLError(f"it nests deeper than {_DEEPEST}")


def _span(text: str, node: yaml.Node) -> Span:
    """Return where a node is written, without the line breaks behind it."""
    begin, end = node.start_mark.index, node.end_mark.index
    return begin, begin + len(text[begin:end].rstrip())


def of_json(text: str, is_secret: IsSecret) -> Iterator[Span]:
    """Yield the values of all objects of JSON inside a text."""
    for pattern in _JSON_KEYS:
        for found in pattern.finditer(text):
            key = _json_text(found[1])
            if is_secret(key, "a value") and text[found.end() : found.end() + 1] not in {"t", "f", "n"}:
                try:
                    _, end = _JSON_VALUE.raw_decode(text, found.end())
                except ValueError:
                    # Cut off, or no JSON.
                    end = _line_end(text, found.end())
                yield found.end(), end


def _json_text(text: str) -> str:
    try:
        return str(_JSON_VALUE.decode(f'"{text}"'))
    except ValueError:
        return text


def of_xml(text: str, is_secret: IsSecret) -> Iterator[Span]:
    """Yield the values of Hadoop's properties, and the content of elements, of XML inside a text."""
    if "</" not in text:
        return
    if rest := _XML_REST.match(text):
        begin = rest[1].rfind("<value>")
        yield (begin + len("<value>") if begin >= 0 else 0), rest.end(1)
    for found in _PROPERTY.finditer(text):
        name, value = _XML_NAME.search(found[1]), _XML_VALUE.search(found[1])
        if value and (name is None or is_secret(name[1], value[1])):
            yield found.start(1) + value.start(1), found.start(1) + value.end(1)
    for found in _XML_BEHIND.finditer(text):
        if is_secret(found[1], found[2]):
            yield found.span(2)
    after = 0
    for found in _XML_TAG.finditer(text):
        if found.start() >= after and is_secret(found[1].rpartition(":")[2], "content"):
            end = _closing_tag(text, found[1], found.end())
            if end is not None:
                after = end
                yield found.end(), end


def _closing_tag(text: str, name: str, begin: int) -> int | None:
    """Return where an element ends that begins there; None where it does not. CDATA ends nothing."""
    closing = re.compile(rf"{_CDATA}|</{re.escape(name)}\s*>")
    for found in closing.finditer(text, begin):
        if found[0].startswith("</"):
            return found.start()
    return None


def of_lines(path: str, text: str, is_secret: IsSecret) -> Iterator[Span]:
    """Yield values that go to the end of the line: of properties with their continuations, blocks of YAML."""
    after = 0
    for found in _LINE.finditer(text):
        if found.start() < after:
            continue  # it goes on with the value above
        separator, lead = found["sep"].strip(), found["lead"] or ""
        key, rest = re.sub(r"\\(.)", r"\1", found["key"]), found["rest"].rstrip(_SPACES)
        spaced = _SPACED.search(path) and (not lead or "." in key)
        if not (separator or spaced) or not is_secret(key, rest or "on the next line"):
            continue
        begin, end = found.start("rest"), found.start("rest") + len(rest)
        if separator == ":" and (_YAML.search(path) or _BLOCK.fullmatch(rest)):
            width = len(found["indent"]) + (len(lead) if lead.startswith("-") else 0)
            yield from _block(text, found.end(), width)
        if rest and not _BLOCK.fullmatch(rest):
            while text.endswith("\\", begin, end) and _is_odd(text, end) and end < len(text):
                end = _line_end(text, end + 1)
            after = end
            yield begin, end


def _is_odd(text: str, end: int) -> bool:
    """Tell whether an odd number of backslashes stands before a place."""
    line = text[text.rfind("\n", 0, end) + 1 : end]
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _block(text: str, begin: int, indent: int) -> Iterator[Span]:
    """Yield the lines behind a place that are indented further."""
    first, at = None, begin
    while at < len(text):
        end = _line_end(text, at + 1)
        line = text[at + 1 : end]
        width = len(line) - len(line.lstrip(" \t"))
        if line.strip() and width <= indent:
            break
        if line.strip() and first is None:
            first = at + 1 + width
        at = end
    if first is not None:
        yield first, first + len(text[first:at].rstrip())


def of_words(text: str, is_secret: IsSecret) -> Iterator[Span]:
    """Yield the values of pairs and options inside any text: a command line, a log, a URL's parameters."""
    # What lies in a value that was found is not read again: a line of thousands of pairs would be, by each.
    after = 0
    for found in _PAIR.finditer(text):
        if found.end() >= after and is_secret(found[1], "a value"):
            end = _value_end(text, found)
            if is_secret(found[1], text[found.end() : end].strip("\"'\\")):
                after = end
                yield found.end(), end
    after = 0
    for found in _OPTION.finditer(text):
        if found.end() >= after and is_secret(found[1], "a word"):
            after = _word_end(text, found.end(), separated=False)
            yield found.end(), after
    for found in _USER.finditer(text):
        begin, end = found.end(), _word_end(text, found.end(), separated=False)
        colon = text.find(":", begin, end)
        if colon >= 0 and not _USER_AND_GROUP.fullmatch(text[begin:end]):
            yield colon + 1, end


def of_sql(text: str, _: IsSecret) -> Iterator[Span]:
    """Yield the literals behind PASSWORD and IDENTIFIED BY."""
    for found in _SQL.finditer(text):
        literal = _SQL_TEXT.match(text, found.end())
        ends = [_word_end(text, found.end(), separated=False), *([literal.end()] if literal else [])]
        yield found.end(), max(ends)
    for found in _SQL_WORD.finditer(text):
        yield found.span(1)


def _value_end(text: str, found: re.Match[str]) -> int:
    """Return where the value of a pair ends."""
    begin = found.end()
    if escaped := _ESCAPED.match(text, begin):
        return escaped.end()
    before = text[found.start() - 1 : found.start()]
    if before in {'"', "'"} and not found[2]:
        # "name=a value with spaces", whose quotes are around both.
        escape = "\\" if text[found.start() - 2 : found.start() - 1] == "\\" else ""
        return _closing_quote(text, begin, f"{escape}{before}")
    line = text[max(text.rfind("\n", 0, begin) + 1, begin - _LOOK_BACK) : found.start()].rstrip(_SPACES)
    return _word_end(text, begin, separated=line[-1:] in set(_SEPARATORS))


def _closing_quote(text: str, begin: int, quote: str) -> int:
    """Return where a quote closes, as a shell or as JSON reads it, the later one; the line's end at most."""
    end = _line_end(text, begin)
    plain = text.find(quote, begin, end)
    at = begin
    while at < end and not text.startswith(quote, at):
        at += 2 if text[at] == "\\" else 1
    return min(max(plain if plain >= 0 else end, at), end)


def _word_end(text: str, begin: int, *, separated: bool) -> int:
    """Return where a word ends, as a shell or as JSON reads its quotes, whichever is later."""
    end = _line_end(text, begin)
    outer = _open_quote(text, begin)
    return max(_read_word(text, begin, end, outer, separated, escapes) for escapes in (True, False))


def _read_word(text: str, at: int, end: int, outer: str, separated: bool, escapes: bool) -> int:  # noqa: PLR0913, PLR0917 -- one reader for both languages
    """Return where a word ends. With `escapes` a backslash counts between single quotes, too.

    `outer` is the quote that the word is in, "" for none; `separated` words also end before the next pair.
    """
    while at < end:
        letter = text[at]
        if letter in _SPACES or (separated and _NEXT_PAIR.match(text, at)) or text.startswith("</", at):
            break
        if letter == "\\":
            at += 2
        elif letter == outer:
            if at + 1 >= end or text[at + 1] in f"{_SPACES},;:)}}]>&|":
                break
            at += 1
        elif letter in "\"'":
            at += 1
            while at < end and text[at] != letter:
                at += 2 if text[at] == "\\" and (escapes or letter == '"') else 1
            at += 1
            if text[at : at + 1] in set(",;)}]>&|"):
                break
        else:
            at += 1
    return min(at, end)


def _open_quote(text: str, at: int) -> str:
    """Return the quote that is open at a place of a line; an apostrophe inside a word opens none."""
    begin = max(text.rfind("\n", 0, at) + 1, at - _LOOK_BACK)
    quote, before, skip = "", "", False
    for letter in text[begin:at]:
        if skip:
            skip = False
        elif letter == "\\":
            skip = True
        elif letter == quote:
            quote = ""
        elif not quote and letter in "\"'" and not (letter == "'" and before.isalnum()):
            quote = letter
        before = letter
    return quote


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return end if end >= 0 else len(text)
