"""The errors that a person can mend."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

# HDFS's refusal, as each library quotes it: in a Java trace, in a Rust error, in a MetaException.
_DENIED = re.compile(r'user=(?P<user>[^,\s]+), access=(?P<access>\w+), inode=\\*"(?P<place>[^"\\]+)')
_DEEDS = {"WRITE": "write", "READ": "read"}


class ClientError(Exception):
    """One line that says what is wrong, where, and what to do next."""

    def __init__(self, message: str, next_step: str) -> None:
        super().__init__(f"{message}; next: {next_step}")


class DeniedError(ClientError):
    """HDFS or the metastore refuses this user."""


def denial(text: str, group: str) -> DeniedError | None:
    """Return HDFS's refusal in one line, wherever in `text` it stands; None if there is none.

    >>> str(denial('... Permission denied: user=ada, access=WRITE, inode="/lake/t":spark ...', "members"))
    'ada may not write /lake/t; next: ask as a member of the group members (getent group members)'
    """
    if not (found := _DENIED.search(text)):
        return None
    deed = next((word for access, word in _DEEDS.items() if access in found["access"]), "pass")
    return DeniedError(
        f"{found['user']} may not {deed} {found['place']}",
        f"ask as a member of the group {group} (getent group {group})",
    )


@contextmanager
def refusals_in_one_line(group: str) -> Iterator[None]:
    """Raise DeniedError in place of whatever a library makes of HDFS's refusal."""
    try:
        yield
    except ClientError:
        raise
    except BaseException as error:  # a panic of Rust is no Exception
        if denied := denial(str(error), group):
            raise denied from None
        raise
