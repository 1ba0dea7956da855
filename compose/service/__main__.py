"""``python3 -m service VERB NAME``, or ``python3 -I -S /path/to/service VERB NAME``."""

from __future__ import annotations

import sys

if not __package__:  # started as a folder: what is imported lies beside it
    sys.path[0] = sys.path[0].removesuffix("/service")

from service.cli import main

sys.exit(main(sys.argv[1:]))
