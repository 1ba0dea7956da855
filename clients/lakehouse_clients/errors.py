"""The errors that a person can mend."""

from __future__ import annotations


class ClientError(Exception):
    """One line that says what is wrong, where, and what to do next."""

    def __init__(self, message: str, next_step: str) -> None:
        super().__init__(f"{message}; next: {next_step}")
