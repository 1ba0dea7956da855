"""The errors of Py4J, which the client of Spark Connect on the control machine does not have."""

from __future__ import annotations

try:
    from py4j.protocol import Py4JError, Py4JJavaError
except ImportError:

    class Py4JError(Exception):  # type: ignore[no-redef]
        """A call of Spark's JVM failed."""

    class Py4JJavaError(Py4JError):  # type: ignore[no-redef,misc]
        """A call of Spark's JVM raised an exception of Java."""


__all__ = ["Py4JError", "Py4JJavaError", "java_reason", "reason"]
_REASON_LETTERS = 300


def java_reason(error: Py4JJavaError) -> str:
    """Return the innermost reason of a Java exception, in one line."""
    cause = error.java_exception
    while (inner := cause.getCause()) is not None:
        cause = inner
    return " ".join(str(cause.toString()).partition("\n")[0].split())[:_REASON_LETTERS]


def reason(error: Exception) -> str:
    """Return the reason of an error of Spark or of its JVM, in one line."""
    if hasattr(error, "java_exception"):
        return java_reason(error)
    return " ".join(str(error).partition("\n")[0].split())[:_REASON_LETTERS]
