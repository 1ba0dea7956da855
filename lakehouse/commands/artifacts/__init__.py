"""Fetch or lock the files of versions.yml."""

from lakehouse.commands import Folder

command = Folder(__name__, __path__, help=__doc__)
