"""The log of a command: on stderr with `--verbose`, in a file with `--log-file`.

It has the programs that were run and which hosts answered, never what they were given or returned, since that
may be a secret.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

# The packages of the kit. Those of libraries would log URLs and documents.
_PACKAGES = ("lakehouse",)
# What is on stderr in any case.
PRINTED = "lakehouse.printed"
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def configure(*, verbose: bool, file: Path | None) -> None:
    """Log to stderr, to the end of a file, to both, or nowhere; OSError where the file cannot be written."""
    handlers: list[logging.Handler] = []
    if verbose:
        handlers.append(logging.StreamHandler(sys.stderr))
        handlers[0].addFilter(lambda record: record.name != PRINTED)
    if file:
        handlers.append(logging.FileHandler(file, encoding="utf-8"))
    for handler in handlers:
        handler.setFormatter(logging.Formatter(_FORMAT))
    for package in _PACKAGES:
        logger = logging.getLogger(package)
        logger.handlers, logger.propagate = handlers or [logging.NullHandler()], False
        logger.setLevel(logging.DEBUG if handlers else logging.CRITICAL)


# Without handlers, Python prints errors on stderr.
configure(verbose=False, file=None)
