"""Start, stop and build the stack of docker compose."""

from __future__ import annotations

from lakehouse.commands import Folder

command = Folder(__name__, __path__, help=__doc__)
