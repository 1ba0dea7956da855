"""Describe all tables as metadata units, and report what needs work."""

from lakehouse import shared_options
from lakehouse.commands import Folder

command = shared_options.inventory(Folder(__name__, __path__, help=__doc__))
