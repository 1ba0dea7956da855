"""Find the spans of secrets in a text by parsing its format, by the names of values. Pure.

Each function yields spans, as `(begin, end)`, of values with a secret's name. A text may be truncated at
either end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import yaml

Span = tuple[int, int]
# Whether the value of a name is a secret.
IsSecret = Callable[[str, str], bool]

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_VAULT_TAG = "!vault"
_SPACES = " \t\r"
_DEEPEST = 100
# Letters before a value that are searched for its opening quote.
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
# The end of a property whose beginning, with its name, was truncated.
_XML_REST = re.compile(r"\A((?:(?!<property>|<name>)[\s\S])*?)</value>")
_XML_TAG = re.compile(r"<([A-Za-z_][\w:.\-]*)(?:\s[^<>]*)?(?<!/)>")

# A line of properties or YAML: a comment sign or a dash, the name, the rest.
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
# Before a name in a URL, a connection string or a map.
_SEPARATORS = "?&;,{[("
# A string of JSON inside another one.
_ESCAPED = re.compile(r'\\"(?:[^"\\\n]|\\\\(?:\\\\|\\"|[^\\"\n]))*(?:\\"|$)', re.MULTILINE)
_SQL = re.compile(r"\b(?:password|identified\s+by(?:\s+password)?)\s+(?=E?['\"]|\$\$)", re.IGNORECASE)
_SQL_TEXT = re.compile(r"E?'(?:[^']|'')*'|\$\$[\s\S]*?\$\$|\"[^\"\n]*\"", re.IGNORECASE)
_SQL_WORD = re.compile(
    r"\b(?:create|alter)\s+(?:user|role)\b[^\n;]*?\bidentified\s+by\s+(?!['\"])(\S+)", re.IGNORECASE
)


def of_yaml(text: str, is_secret: IsSecret) -> Iterator[Span]:
    """Yield secret values of YAML, and values encrypted by a vault; YAMLError for invalid YAML."""
    _check_depth(text)
    nodes = list(yaml.compose_all(text, Loader=_LOADER))
    visited = set[int]()
    while nodes:
        node = nodes.pop()
        if id(node) in visited:
            continue
        visited.add(id(node))
        if node.tag == _VAULT_TAG:
            yield _span(text, node)
        elif isinstance(node, yaml.SequenceNode):
            nodes += node.value
        elif isinstance(node, yaml.MappingNode):
            values = {str(key.value): value for key, value in node.value}
            name_node = values.get("name", values.get("key"))
            for key, value in node.value:
                nodes.append(key)
                names = [key, *([name_node] if name_node and key.value == "value" else [])]
                text_value = value.value if isinstance(value, yaml.ScalarNode) else "of several"
                if any(is_secret(str(name.value), text_value) for name in names):
                    yield _span(text, value)
                else:
                    nodes.append(value)


def _check_depth(text: str) -> None:
    """Raise YAMLError for deep nesting, which would crash the composer."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise yaml.YAMLError(f"it nests deeper than {_DEEPEST}")


def _span(text: str, node: yaml.Node) -> Span:
    """Return the span of a node, without trailing line breaks."""
    begin, end = node.start_mark.index, node.end_mark.index
    return begin, begin + len(text[begin:end].rstrip())


def of_json(text: str, is_secret: IsSecret) -> Iterator[Span]:
    """Yield secret values of JSON objects inside a text."""
    for pattern in _JSON_KEYS:
        for match in pattern.finditer(text):
            key = _json_text(match[1])
            if is_secret(key, "a value") and text[match.end() : match.end() + 1] not in {"t", "f", "n"}:
                try:
                    _, end = _JSON_VALUE.raw_decode(text, match.end())
                except ValueError:
                    # Truncated, or no JSON.
                    end = _line_end(text, match.end())
                yield match.end(), end


def _json_text(text: str) -> str:
    try:
        return str(_JSON_VALUE.decode(f'"{text}"'))
    except ValueError:
        return text


def of_xml(text: str, is_secret: IsSecret) -> Iterator[Span]:
    """Yield secret values of Hadoop's properties, and of elements, in XML inside a text."""
    if "</" not in text:
        return
    if rest := _XML_REST.match(text):
        begin = rest[1].rfind("<value>")
        yield (begin + len("<value>") if begin >= 0 else 0), rest.end(1)
    for match in _PROPERTY.finditer(text):
        name, value = _XML_NAME.search(match[1]), _XML_VALUE.search(match[1])
        if value and (name is None or is_secret(name[1], value[1])):
            yield match.start(1) + value.start(1), match.start(1) + value.end(1)
    for match in _XML_BEHIND.finditer(text):
        if is_secret(match[1], match[2]):
            yield match.span(2)
    after = 0
    for match in _XML_TAG.finditer(text):
        if match.start() >= after and is_secret(match[1].rpartition(":")[2], "content"):
            end = _closing_tag(text, match[1], match.end())
            if end is not None:
                after = end
                yield match.end(), end


def _closing_tag(text: str, name: str, begin: int) -> int | None:
    """Return the position of an element's closing tag, outside of CDATA; None without one."""
    closing = re.compile(rf"{_CDATA}|</{re.escape(name)}\s*>")
    for match in closing.finditer(text, begin):
        if match[0].startswith("</"):
            return match.start()
    return None


def of_lines(path: str, text: str, is_secret: IsSecret) -> Iterator[Span]:
    """Yield secret values up to the end of the line: properties with continuations, blocks of YAML."""
    after = 0
    for match in _LINE.finditer(text):
        if match.start() < after:
            continue  # a continuation of the previous value
        separator, lead = match["sep"].strip(), match["lead"] or ""
        key, rest = re.sub(r"\\(.)", r"\1", match["key"]), match["rest"].rstrip(_SPACES)
        spaced = _SPACED.search(path) and (not lead or "." in key)
        if not (separator or spaced) or not is_secret(key, rest or "on the next line"):
            continue
        begin, end = match.start("rest"), match.start("rest") + len(rest)
        if separator == ":" and (_YAML.search(path) or _BLOCK.fullmatch(rest)):
            width = len(match["indent"]) + (len(lead) if lead.startswith("-") else 0)
            yield from _block(text, match.end(), width)
        if rest and not _BLOCK.fullmatch(rest):
            while text.endswith("\\", begin, end) and _is_odd(text, end) and end < len(text):
                end = _line_end(text, end + 1)
            after = end
            yield begin, end


def _is_odd(text: str, end: int) -> bool:
    """Return whether an odd number of backslashes precedes a position."""
    line = text[text.rfind("\n", 0, end) + 1 : end]
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _block(text: str, begin: int, indent: int) -> Iterator[Span]:
    """Yield the span of the following lines with a deeper indentation."""
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
    """Yield secret values of pairs and options inside any text: a command line, a log, a URL's parameters."""
    # Pairs inside of a value are skipped, or a line of thousands of pairs would take quadratic time.
    after = 0
    for match in _PAIR.finditer(text):
        if match.end() >= after and is_secret(match[1], "a value"):
            end = _value_end(text, match)
            if is_secret(match[1], text[match.end() : end].strip("\"'\\")):
                after = end
                yield match.end(), end
    after = 0
    for match in _OPTION.finditer(text):
        if match.end() >= after and is_secret(match[1], "a word"):
            after = _word_end(text, match.end(), separated=False)
            yield match.end(), after
    for match in _USER.finditer(text):
        begin, end = match.end(), _word_end(text, match.end(), separated=False)
        colon = text.find(":", begin, end)
        if colon >= 0 and not _USER_AND_GROUP.fullmatch(text[begin:end]):
            yield colon + 1, end


def of_sql(text: str, _: IsSecret) -> Iterator[Span]:
    """Yield the literals after PASSWORD and IDENTIFIED BY."""
    for match in _SQL.finditer(text):
        literal = _SQL_TEXT.match(text, match.end())
        ends = [_word_end(text, match.end(), separated=False), *([literal.end()] if literal else [])]
        yield match.end(), max(ends)
    for match in _SQL_WORD.finditer(text):
        yield match.span(1)


def _value_end(text: str, match: re.Match[str]) -> int:
    """Return the end of a pair's value."""
    begin = match.end()
    if escaped := _ESCAPED.match(text, begin):
        return escaped.end()
    before = text[match.start() - 1 : match.start()]
    if before in {'"', "'"} and not match[2]:
        # "name=a value with spaces", whose quotes are around both.
        escape = "\\" if text[match.start() - 2 : match.start() - 1] == "\\" else ""
        return _closing_quote(text, begin, f"{escape}{before}")
    line = text[max(text.rfind("\n", 0, begin) + 1, begin - _LOOK_BACK) : match.start()].rstrip(_SPACES)
    return _word_end(text, begin, separated=line[-1:] in set(_SEPARATORS))


def _closing_quote(text: str, begin: int, quote: str) -> int:
    """Return the position of a closing quote in the line by the rules of shell or JSON, the later one."""
    end = _line_end(text, begin)
    plain = text.find(quote, begin, end)
    at = begin
    while at < end and not text.startswith(quote, at):
        at += 2 if text[at] == "\\" else 1
    return min(max(plain if plain >= 0 else end, at), end)


def _word_end(text: str, begin: int, *, separated: bool) -> int:
    """Return the end of a word by the quoting rules of shell or JSON, the later one."""
    end = _line_end(text, begin)
    outer = _open_quote(text, begin)
    return max(_read_word(text, begin, end, outer, separated, escapes) for escapes in (True, False))


def _read_word(text: str, at: int, end: int, outer: str, separated: bool, escapes: bool) -> int:  # noqa: PLR0913, PLR0917 -- one reader for both languages
    """Return the end of a word. With `escapes` backslashes escape inside single quotes, too.

    `outer` is the quote around the word, or ""; `separated` words also end before the next pair.
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
    """Return the quote that is open at a position of a line; an apostrophe inside a word opens none."""
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
