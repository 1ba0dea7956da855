"""Takes secrets out of a text: known ones in every form, and what stands where secrets stand. Pure."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable
from contextlib import suppress
from urllib.parse import quote, quote_plus

from yaml import YAMLError

from lakehouse import secret_words
from ops.bundle import secret_spans
from ops.bundle.secret_spans import Span

MASK = "********"
# Where a format would read stars as something else.
_QUOTED = f'"{MASK}"'
# A shorter one would be found in every other word; it is taken out where its name stands.
_LEAST = 6
# Of a line: some patterns take the square of its length, and a client of a service writes lines into its log.
_LINE = 8192
_LONG_LINE = re.compile(rf"^.{{{_LINE + 1},}}$", re.MULTILINE)
# How many letters of base64 a secret shares with what stands before it, by that one's length modulo 3.
_SHARED = (0, 2, 3)
_SCHEME = "(?:basic|bearer|digest|negotiate|token)"
# Stores of keys, which are no text.
_STORES = re.compile(r"\.(?:jks|jceks|p12|pfx|keystore|keytab|key)$")
# What says that a secret is elsewhere, or that there is none.
_HARMLESS = re.compile(
    r"""["'\\]*(?:\$\{[\w.:]+\}|\{\{ *\w+(?:\.\w+)* *\}\}|\*+|null|none|true|false|)["'\\,;)}\]]*""",
    re.IGNORECASE,
)
_YAML = re.compile(r"\.ya?ml$")
_ENCRYPTED = "$ANSIBLE_VAULT;"
# What no name announces.
_PATTERNS: tuple[tuple[re.Pattern[str], int], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), group)
    for pattern, group in (
        # A key, whole or cut off at either end.
        (r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----([\s\S]*?)"
         r"(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)", 1),
        (r"\A((?:[^-]|-(?!----))*?)-----END [A-Z0-9 ]*PRIVATE KEY", 1),
        # Headers, also in JSON or in Java's text of a map.
        (rf"""\bauthorization\b["'\\]*\s*[:=][\s\["'\\]*(?:{_SCHEME}\s+)?([^\s"'\\\]}}][^\n"'\\\]}}]*)""", 1),
        # A word of letters alone is one of a sentence: "basic authentication".
        (r"\b(?:basic|bearer)\s+(?=\S*[\d+/=_~]|\S{16})([A-Za-z0-9+/_\-.=~]{8,})", 1),
        (r"\b(?:set-)?cookie[\"'\\]*\s*[:=]\s*[\"'\\]*([^\n\"']+)", 1),
        # user:password@host of a URL; a number that ends the host's part is a port.
        (r"""\b[a-z][a-z0-9+.\-]*://[^\s/:@"'<>?#]*:(?!\d{1,5}(?:[/?#,;\s"'<>)\]]|$))([^\s"<>]+)@""", 1),
        # What a system and PostgreSQL keep of a password.
        (r"(?<!\w)(\$(?:1|apr1|2[abxy]?|5|6|7|y|gy|sha1|scrypt|argon2\w*|pbkdf2[\w\-]*)"
         r"\$[^\s:\"'<>]{8,})", 1),
        (r"(SCRAM-SHA-256\$[^\s\"']+)", 1),
        (r"\b(md5[0-9a-f]{32})\b", 1),
        # Tokens that say themselves what they are.
        (r"\b(eyJ[\w\-]+\.[\w\-]+\.[\w\-]*)", 1),
        (r"\b((?:AKIA|ASIA)[A-Z0-9]{16})\b", 1),
    )
)  # fmt: skip
# host:port:database:user:password, a colon in it as \:.
_PGPASS = re.compile(r"^(?:(?:[^:\\\n#]|\\.)*:){4}(.+)$", re.MULTILINE)
_ENVIRONMENT = re.compile(r"""^\s*(?:export\s+)?\w+\s*=\s*(.+?)\s*$""", re.MULTILINE)
# In such a file every value is a secret, whatever its name is.
_FILES = (
    (re.compile(r"(?:^|/)\.?pgpass[^/]*$"), _PGPASS),
    (re.compile(r"(?:\.env|(?:^|/)\.?env|(?:^|/)environment)$"), _ENVIRONMENT),
)


def forms(secret: str) -> set[str]:
    """Return how a secret may be written: as it is, quoted for a URL, JSON or XML, in base64, in hexadecimal.

    Of base64 also the middle that does not change with what stands around it, such as a user's name.
    """
    found = {
        secret, quote(secret, safe=""), quote(secret), quote_plus(secret), json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1], html.escape(secret), html.escape(secret, quote=False),
        secret.replace("'", "''"), secret.replace('"', '\\"'), secret.replace(":", "\\:"),
    }  # fmt: skip
    whole = secret.encode()
    found |= {
        whole.hex(),
        whole.hex().upper(),
        re.sub("%[0-9A-F]{2}", lambda one: one[0].lower(), quote(secret, safe="")),
    }
    for before, shared in enumerate(_SHARED):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            coded = encode(b"\0" * before + whole).decode()
            found |= {coded} if before == 0 else set()
            # Without the last letter, if that one changes with what follows.
            found.add(coded[shared : coded.index("=") - 1] if "=" in coded else coded[shared:])
    return {form for form in found if len(form) >= _LEAST}


def values(path: str, text: str) -> set[str]:
    """Return the secrets that a file holds by what it is: an environment of a unit, or `.pgpass`."""
    pattern = next((one for name, one in _FILES if name.search(path)), None)
    found = pattern.findall(text) if pattern else []
    return {_bare(one) for one in found} - {""}


class Masker:
    """Takes out what it knows; `count` is how many places it has masked so far.

    `names` are those whose every value is a secret, beside the names that say so themselves.
    """

    def __init__(self, secrets: Iterable[str] = (), names: Iterable[str] = ()) -> None:
        self._secrets: set[str] = set()
        self._known: list[str] = []
        self._names = frozenset(names)
        self.count = 0
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Know these too. The longest is looked for first: another may be a part of it."""
        self._secrets |= {secret for secret in secrets if len(secret) >= _LEAST}
        every = {form for secret in self._secrets for form in forms(secret)}
        self._known = sorted(every, key=lambda form: (-len(form), form))

    def text(self, path: str, text: str) -> str:
        """Return the text of a file without secrets: by its format, by their values, by what announces one.

        Formats come first, for a mask may end one. The end of a very long line is left out.
        """
        text = _LONG_LINE.sub(lambda line: self._cut(line[0]), text)
        if _STORES.search(path) or text.startswith(_ENCRYPTED):
            self.count += 1
            return MASK
        for name, pattern in _FILES:
            if name.search(path):
                text = self._without(text, (found.span(1) for found in pattern.finditer(text)))
        if _YAML.search(path):
            # One that is cut off, or a template, is read by its lines below.
            with suppress(YAMLError):
                text = self._without(text, list(secret_spans.of_yaml(text, self._is_secret)), _QUOTED)
        text = self._without(text, secret_spans.of_json(text, self._is_secret), _QUOTED)
        text = self._without(text, secret_spans.of_xml(text, self._is_secret))
        text = self._without(text, secret_spans.of_lines(path, text, self._is_secret))
        text = self._unknown(text)
        text = self._without(text, secret_spans.of_words(text, self._is_secret))
        text = self._without(text, secret_spans.of_sql(text, self._is_secret))
        for pattern, group in _PATTERNS:
            text = self._without(text, (found.span(group) for found in pattern.finditer(text)))
        return text

    def _unknown(self, text: str) -> str:
        """Return a text without the secrets that are known by their values."""
        if there := [form for form in self._known if form in text]:
            known = re.compile("|".join(map(re.escape, there)))
            text = self._without(text, (found.span() for found in known.finditer(text)))
        return text

    def _cut(self, line: str) -> str:
        """Return the beginning of a line. Half of a secret would not be recognised."""
        left_out = len(line) - _LINE
        return f"{self._unknown(line)[:_LINE]} (the other letters of this line are left out: {left_out})"

    def _is_secret(self, name: str, value: str) -> bool:
        return name in self._names or secret_words.is_secret(name, value)

    def _without(self, text: str, places: Iterable[Span], mask: str = MASK) -> str:
        """Return a text with a mask in these places, those left that hold no secret."""
        parts, after = list[str](), 0
        for begin, end in sorted(places):
            if end <= after or _HARMLESS.fullmatch(text[begin:end].strip()):
                continue
            if begin >= after:
                self.count += 1
                parts += [text[after:begin], mask]
            after = end
        return "".join([*parts, text[after:]])


def _bare(value: str) -> str:
    """Return a value without its quotes, and without what escapes a letter in it."""
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    return re.sub(r"\\(.)", r"\1", value)
