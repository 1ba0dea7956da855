"""Recognition of secrets by words: for support bundles, and for files that every account may read."""

from __future__ import annotations

import re
from collections.abc import Iterator

# Shorter secrets match common words; a text hides them only after their name.
LEAST_IN_A_TEXT = 6
WORDS = r"pass(?:word|wd|phrase)?|pwd|secret|token|credentials?|(?:api|access|private|account)[_.\-]?key"
# A key whose value is the secret ends with its word: `token.lifetime` and `password.file` are none. Behind
# some words stands whose secret it is: Hadoop's of a host, Azure's of an account; or which of several it is.
_KEYS = "secret|json|customer|state|shared|fernet|signing|encryption|cipher|hmac|jwt|master"
_SECRET_KEY = re.compile(
    rf"(?:{WORDS}|(?:{_KEYS})[_.\-]?key)(?:[_.\-]?(?:\d{{1,2}}|old|new|hash|value))?$"
    r"|(?:ftp[_.\-]password|account[_.\-]key|sas[_.\-]token)\.",
    re.IGNORECASE,
)
# Keys that end so and hold no secret: systemd's name files. AWS's access key is public, as a user's name is.
_PUBLIC_KEY = re.compile(
    r"bypass$|renewal\.credentials$|^(?:Load|Import)Credential$|(?:^|[_.\-])(?:s3a?|aws)(?!.*secret).*access[_.\-]key$",
    re.IGNORECASE,
)
# Of these a path is the place of a file, or the shell's own folder.
_MAY_BE_A_PLACE = re.compile(r"(?i:private[_.\-]?key)$|^(?:OLD)?PWD$")
_NOTHING = re.compile(r"(?:\*+|null|none|true|false|)", re.IGNORECASE)
# A value may hold the next pair: jdbc:mysql://host?password=word.
_PAIR = re.compile(r"(?<![\w.\-])([\w.\-]+)[\"']?\s*(?:=>|[=:])\s*(?=[\"']?([^\s\"'&;,]+))")
_URL = re.compile(r"\b[a-z][a-z0-9+.\-]*://[^\s/:@]*:(?P<secret>[^\s/@]+)@", re.IGNORECASE)
_KEY_BLOCK = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----")


def is_secret(key: str, value: object) -> bool:
    """Whether a setting's value is a secret, by its key; a file that holds one is none."""
    text = str(value).strip()
    if not _SECRET_KEY.search(key) or _PUBLIC_KEY.search(key) or _NOTHING.fullmatch(text):
        return False
    return not (_MAY_BE_A_PLACE.search(key) and text.startswith("/"))


def within(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and value of each secret in a text: options, URLs, private keys."""
    for match in _PAIR.finditer(text):
        key, value = match.groups()
        # A value after a colon may be the path of a file: LoadCredential of a unit.
        if is_secret(key, value) and not value.startswith("/"):
            yield key.lstrip("-"), value
    for match in _URL.finditer(text):
        yield "a password in a URL", match["secret"]
    if _KEY_BLOCK.search(text):
        yield "a private key", text
