"""Errors that users can fix."""

from __future__ import annotations

import re
from typing import Literal

from thrift.Thrift import TException

# HDFS's refusal, as each library quotes it: in a Java trace, in a Rust error, in a MetaException.
_DENIED = re.compile(r'user=(?P<user>[^,\s]+), access=(?P<access>\w+), inode=\\*"(?P<place>[^"\\]+)')
_ACTIONS = {"WRITE": "write", "READ": "read"}


class ClientError(Exception):
    """One line that says what is wrong, where, and what to do next."""

    def __init__(self, message: str, next_step: str) -> None:
        super().__init__(f"{message}; next: {next_step}")


class DeniedError(ClientError):
    """HDFS or the metastore refuses this user."""


def denial(text: str, group: str) -> DeniedError | None:
    """Return the refusal of HDFS in `text`, in one line; None if there is none.

    >>> str(denial('... Permission denied: user=ada, access=WRITE, inode="/lake/t":spark ...', "members"))
    'ada may not write /lake/t; next: ask as a member of the group members (getent group members)'
    """
    if not (refusal := _DENIED.search(text)):
        return None
    action = next((word for access, word in _ACTIONS.items() if access in refusal["access"]), "pass")
    return DeniedError(
        f"{refusal['user']} may not {action} {refusal['place']}",
        f"ask as a member of the group {group} (getent group {group})",
    )


def metastore_refusal(error: BaseException) -> ClientError | None:
    """Return the metastore's error, or its silence, in one line; None for errors of other libraries."""
    if not isinstance(error, TException):
        return None
    words = " ".join(str(getattr(error, "message", None) or error).split())
    if type(error).__module__.startswith("thrift."):
        return ClientError(
            f"the metastore does not answer: {words}", "on its host: systemctl status hive-metastore"
        )
    return ClientError(f"the metastore refuses: {words}", "change what it names, and run it again")


class refusals_in_one_line:  # noqa: N801 (it is called as a function is)
    """Raise ClientError in place of a library's error for a refusal by HDFS or the metastore.

    A class, because a generator of `contextmanager` sets the traceback of each exception, which Thrift's do
    not allow: their message would be lost.
    """

    def __init__(self, group: str) -> None:
        self.group = group

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> Literal[False]:
        """Raise a refusal in one line, and propagate any other error. A panic of Rust is no Exception."""
        if error is None or isinstance(error, ClientError):
            return False
        if refusal := denial(str(error), self.group) or metastore_refusal(error):
            raise refusal from None
        return False
