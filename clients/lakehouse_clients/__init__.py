"""The tables of the lakehouse in Python, without a JVM.

import lakehouse_clients
lake = lakehouse_clients.connect()
lake.arrow("iceberg.nycflights.flights", columns=["carrier"], filter="dep_delay > 60")
lake.sql("SELECT carrier, count(*) FROM delta.nycflights_delta.flights GROUP BY carrier")
"""

from __future__ import annotations

import os

from lakehouse_clients import lake as _lake
from lakehouse_clients import settings as _settings
from lakehouse_clients.errors import ClientError
from lakehouse_clients.lake import Lake
from lakehouse_clients.settings import Settings

__all__ = ["ClientError", "Lake", "Settings", "connect"]


def connect(settings: str | os.PathLike[str] | Settings | None = None, user: str | None = None) -> Lake:
    """Return the lakehouse of this machine: on a client node, and on the control machine in the repository.

    `settings` is another file of settings, or the settings themselves; `user` is the user of the requests
    (default: HADOOP_USER_NAME, else the file's, else this process's user). No connection is opened yet.
    Raises ClientError without settings, and for a second user in one process.
    """
    return _lake.connect(settings if isinstance(settings, Settings) else _settings.load(settings, user))
