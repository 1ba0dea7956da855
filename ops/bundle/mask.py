"""Takes secrets out of a text: known ones in every form, and what stands where secrets stand. Pure."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable, Iterable
from urllib.parse import quote, quote_plus

from lakehouse.secret_words import WORDS

MASK = "********"
# A shorter one would be found in every other word; it is taken out where its name stands.
_LEAST = 6
# How many letters of base64 a secret shares with what stands before it, by that one's length modulo 3.
_SHARED = (0, 2, 3)
_NAME = rf"[\w.\-]*(?:{WORDS})[\w.\-]*"
# A value ends where its quotes do; without quotes, at a space or at what separates it from the next one.
_QUOTED = r"""(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\\"(?:[^"\\\n]|\\[^"])*\\")"""
_VALUE = rf"""(?:{_QUOTED}|[^\s"'&;,<>](?:[^\s"'&;,<>]|,(?!\s|$|[\w.\-]+=))*)"""
_SCHEME = "(?:basic|bearer|digest|negotiate|token)"
# Stores of keys, which are no text.
_STORES = re.compile(r"\.(?:jks|jceks|p12|pfx|keystore|keytab|key)$")
# What says that a secret is elsewhere, or that there is none.
_HARMLESS = re.compile(r"""["'\\]*(?:\$\{[\w.:]+\}|\*+|null|none|true|false|)["'\\]*""", re.IGNORECASE)
_PATTERNS: tuple[tuple[re.Pattern[str], int], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), group)
    for pattern, group in (
        # A key, whole or cut off at either end.
        (r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----([\s\S]*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)", 1),
        (r"\A((?:[^-]|-(?!----))*?)-----END [A-Z0-9 ]*PRIVATE KEY-----", 1),
        # Headers, also in JSON or in Java's text of a map.
        (rf"""\bauthorization\b["'\\]*\s*[:=][\s\["'\\]*(?:{_SCHEME}\s+)?([^\s"'\\\]}}][^\n"'\\\]}}]*)""", 1),
        (r"\b(?:basic|bearer)\s+([A-Za-z0-9+/_\-.=~]{8,})", 1),
        (r"\b(?:set-)?cookie[\"'\\]*\s*[:=]\s*[\"'\\]*([^\n\"']+)", 1),
        # user:password@host of a URL.
        (r"\b[a-z][a-z0-9+.\-]*://[^\s/:@\"'<>]*:([^\s/@\"'<>]+)@", 1),
        # Hadoop's XML: a name and its value.
        (rf"<name>\s*{_NAME}\s*</name>\s*<value>([^<]*)</value>", 1),
        # name=value, name: value, "name": "value", name => value, and --name value.
        (rf"""(?<![\w.\-]){_NAME}["'\\]*\s*(?:=>|[:=])\s*({_VALUE})""", 1),
        (rf"""(?<![\w\-])--{_NAME}\s+({_VALUE})""", 1),
        # SQL, and what PostgreSQL keeps of a password.
        (rf"""\b(?:password|identified\s+by)\s+({_VALUE})""", 1),
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
    """Takes out what it knows; `count` is how many places it has masked so far."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: set[str] = set()
        self._known: list[str] = []
        self.count = 0
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Know these too. The longest is looked for first: another may be a part of it."""
        self._secrets |= {secret for secret in secrets if len(secret) >= _LEAST}
        every = {form for secret in self._secrets for form in forms(secret)}
        self._known = sorted(every, key=lambda form: (-len(form), form))

    def text(self, path: str, text: str) -> str:
        """Return the text of a file without secrets."""
        if _STORES.search(path):
            self.count += 1
            return MASK
        for name, pattern in _FILES:
            if name.search(path):
                text = pattern.sub(self._hide(1), text)
        if there := [form for form in self._known if form in text]:
            text = re.sub("|".join(map(re.escape, there)), self._hide(0), text)
        for pattern, group in _PATTERNS:
            text = pattern.sub(self._hide(group), text)
        return text

    def _hide(self, group: int) -> Callable[[re.Match[str]], str]:
        def hide(found: re.Match[str]) -> str:
            value = found[group]
            if _HARMLESS.fullmatch(value.strip()):
                return found[0]
            self.count += 1
            start, end = found.start(group) - found.start(), found.end(group) - found.start()
            return f"{found[0][:start]}{MASK}{found[0][end:]}"

        return hide


def _bare(value: str) -> str:
    """Return a value without its quotes, and without what escapes a letter in it."""
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    return re.sub(r"\\(.)", r"\1", value)
