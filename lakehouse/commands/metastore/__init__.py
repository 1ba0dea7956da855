"""Check the metastore, or compare it with another one."""

from lakehouse import shared_options
from lakehouse.commands import Folder

command = shared_options.inventory(Folder(__name__, __path__, help=__doc__))
