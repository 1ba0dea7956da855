"""The one error a person may see."""


class LakehouseError(Exception):
    """Something a person can mend: what is wrong and where, and the command to run next.

    The command line prints it as a single line without a traceback and exits with 1.
    """

    def __init__(self, message: str, next_command: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.next_command = next_command

    def __str__(self) -> str:
        return f"{self.message}; next: {self.next_command}" if self.next_command else self.message


def system_said(error: OSError) -> str:
    """Return what the operating system refuses, and of which file, in one line."""
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


class UsageError(LakehouseError):
    """The command line names what is not there; the command line exits with 64, as for an unknown option."""
