"""Start, stop and build the stack of docker compose."""

from lakehouse.commands import Folder

command = Folder(__name__, __path__, help=__doc__)
