"""Mask secrets in a text: known ones in every encoding, and values in places of secrets. Pure."""

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
from lakehouse.support_bundle import secret_spans
from lakehouse.support_bundle.secret_spans import Span

MASK = "********"
# In formats where a bare mask has another meaning.
_QUOTED = f'"{MASK}"'
# Longest line: some patterns take quadratic time, and clients of a service can write long lines into its log.
_LINE = 8192
_LONG_LINE = re.compile(rf"^.{{{_LINE + 1},}}$", re.MULTILINE)
# Letters of base64 that a secret shares with the text before it, by the length of that text modulo 3.
_SHARED = (0, 2, 3)
_SCHEME = "(?:basic|bearer|digest|negotiate|token)"
# Key stores, which are binary.
_STORES = re.compile(r"\.(?:jks|jceks|p12|pfx|keystore|keytab|key)$")
# Values that refer to a secret elsewhere, or that are none.
_HARMLESS = re.compile(
    r"""["'\\]*(?:\$\{[\w.:]+\}|\{\{ *\w+(?:\.\w+)* *\}\}|\*+|null|none|true|false|)["'\\,;)}\]]*""",
    re.IGNORECASE,
)
_YAML = re.compile(r"\.ya?ml$")
_ENCRYPTED = "$ANSIBLE_VAULT;"
# Secrets without a name before them.
_PATTERNS: tuple[tuple[re.Pattern[str], int], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), group)
    for pattern, group in (
        # A key, complete or truncated at either end.
        (r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----([\s\S]*?)"
         r"(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)", 1),
        (r"\A((?:[^-]|-(?!----))*?)-----END [A-Z0-9 ]*PRIVATE KEY", 1),
        # Headers, also in JSON or in Java's text of a map.
        (rf"""\bauthorization\b["'\\]*\s*[:=][\s\["'\\]*(?:{_SCHEME}\s+)?([^\s"'\\\]}}][^\n"'\\\]}}]*)""", 1),
        # Letters alone are a word of a sentence: "basic authentication".
        (r"\b(?:basic|bearer)\s+(?=\S*[\d+/=_~]|\S{16})([A-Za-z0-9+/_\-.=~]{8,})", 1),
        (r"\b(?:set-)?cookie[\"'\\]*\s*[:=]\s*[\"'\\]*([^\n\"']+)", 1),
        # user:password@host of a URL; a number that ends the host's part is a port.
        (r"""\b[a-z][a-z0-9+.\-]*://[^\s/:@"'<>?#]*:(?!\d{1,5}(?:[/?#,;\s"'<>)\]]|$))([^\s"<>]+)@""", 1),
        # Password hashes of the system and of PostgreSQL.
        (r"(?<!\w)(\$(?:1|apr1|2[abxy]?|5|6|7|y|gy|sha1|scrypt|argon2\w*|pbkdf2[\w\-]*)"
         r"\$[^\s:\"'<>]{8,})", 1),
        (r"(SCRAM-SHA-256\$[^\s\"']+)", 1),
        (r"\b(md5[0-9a-f]{32})\b", 1),
        # Tokens with a typical prefix.
        (r"\b(eyJ[\w\-]+\.[\w\-]+\.[\w\-]*)", 1),
        (r"\b((?:AKIA|ASIA)[A-Z0-9]{16})\b", 1),
    )
)  # fmt: skip
# host:port:database:user:password, a colon in it as \:.
_PGPASS = re.compile(r"^(?:(?:[^:\\\n#]|\\.)*:){4}(.+)$", re.MULTILINE)
_ENVIRONMENT = re.compile(r"""^\s*(?:export\s+)?\w+\s*=\s*(.+?)\s*$""", re.MULTILINE)
# Files in which every value is a secret.
_FILES = (
    (re.compile(r"(?:^|/)\.?pgpass[^/]*$"), _PGPASS),
    (re.compile(r"(?:\.env|(?:^|/)\.?env|(?:^|/)environment)$"), _ENVIRONMENT),
)


def forms(secret: str) -> set[str]:
    """Return the encodings of a secret: plain, quoted for a URL, JSON or XML, base64, hexadecimal.

    Of base64 also the middle that does not depend on the text around it, such as a user's name.
    """
    encodings = {
        secret, quote(secret, safe=""), quote(secret), quote_plus(secret), json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1], html.escape(secret), html.escape(secret, quote=False),
        secret.replace("'", "''"), secret.replace('"', '\\"'), secret.replace(":", "\\:"),
    }  # fmt: skip
    data = secret.encode()
    encodings |= {
        data.hex(),
        data.hex().upper(),
        re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), quote(secret, safe="")),
    }
    for offset, shared in enumerate(_SHARED):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            coded = encode(b"\0" * offset + data).decode()
            encodings |= {coded} if offset == 0 else set()
            # Without the last letter, if it depends on the next one.
            encodings.add(coded[shared : coded.index("=") - 1] if "=" in coded else coded[shared:])
    return {form for form in encodings if len(form) >= secret_words.LEAST_IN_A_TEXT}


def values(path: str, text: str) -> set[str]:
    """Return the secrets of a file by its kind: an environment file of a unit, or `.pgpass`."""
    pattern = next((pattern for name, pattern in _FILES if name.search(path)), None)
    texts = pattern.findall(text) if pattern else []
    return {_bare(value) for value in texts} - {""}


class Masker:
    """Mask known secrets and values in places of secrets; `count` is the number of masked places.

    `names` are further names whose values are secrets, beside those of `secret_words`.
    """

    def __init__(self, secrets: Iterable[str] = (), names: Iterable[str] = ()) -> None:
        self._secrets: set[str] = set()
        self._forms: list[str] = []
        self._names = frozenset(names)
        self.count = 0
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Add secrets. Longer ones are masked first, since they may contain another."""
        self._secrets |= {secret for secret in secrets if len(secret) >= secret_words.LEAST_IN_A_TEXT}
        all_forms = {form for secret in self._secrets for form in forms(secret)}
        self._forms = sorted(all_forms, key=lambda form: (-len(form), form))

    def text(self, path: str, text: str) -> str:
        """Return the text of a file with secrets masked: by its format, their values, and their context.

        Formats come first, since a mask may break one. Very long lines are truncated.
        """
        text = _LONG_LINE.sub(lambda line: self._cut(line[0]), text)
        if _STORES.search(path) or text.startswith(_ENCRYPTED):
            self.count += 1
            return MASK
        for name, pattern in _FILES:
            if name.search(path):
                text = self._without(text, (match.span(1) for match in pattern.finditer(text)))
        if _YAML.search(path):
            # A truncated document or a template is parsed by lines below.
            with suppress(YAMLError):
                text = self._without(text, list(secret_spans.of_yaml(text, self._is_secret)), _QUOTED)
        text = self._without(text, secret_spans.of_json(text, self._is_secret), _QUOTED)
        text = self._without(text, secret_spans.of_xml(text, self._is_secret))
        text = self._without(text, secret_spans.of_lines(path, text, self._is_secret))
        text = self._without_known(text)
        text = self._without(text, secret_spans.of_words(text, self._is_secret))
        text = self._without(text, secret_spans.of_sql(text, self._is_secret))
        for pattern, group in _PATTERNS:
            text = self._without(text, (match.span(group) for match in pattern.finditer(text)))
        return text

    def _without_known(self, text: str) -> str:
        """Return a text with the known secrets masked."""
        if present := [form for form in self._forms if form in text]:
            pattern = re.compile("|".join(map(re.escape, present)))
            text = self._without(text, (match.span() for match in pattern.finditer(text)))
        return text

    def _cut(self, line: str) -> str:
        """Return the beginning of a line, masked first: a truncated secret would not be recognised."""
        left_out = len(line) - _LINE
        return (
            f"{self._without_known(line)[:_LINE]} (the other letters of this line are left out: {left_out})"
        )

    def _is_secret(self, name: str, value: str) -> bool:
        return name in self._names or secret_words.is_secret(name, value)

    def _without(self, text: str, places: Iterable[Span], mask: str = MASK) -> str:
        """Return a text with these places masked, except harmless values."""
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
    """Return a value without its quotes and escapes."""
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    return re.sub(r"\\(.)", r"\1", value)
