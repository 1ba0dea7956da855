"""Serve a commit of the cluster's history as a metastore, and follow the branch or tag that names it."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from threading import Lock

from lakehouse.catalog.hosted.layout import Settings
from lakehouse.catalog.served.handler import Handler
from lakehouse.catalog.served.hdfs_root import HdfsRoot
from lakehouse.catalog.served.locations import LiveLocations, Locations, SnapshotLocations
from lakehouse.catalog.served.metadata_copies import MetadataCopies
from lakehouse.catalog.served.request import Request
from lakehouse.catalog.served.server import Server
from lakehouse.catalog.served.unsupported_fields import UnsupportedFields
from lakehouse.catalog.snapshot_reader import SnapshotReader
from lakehouse.catalog.store import Entry, Store
from lakehouse.errors import LakehouseError
from lakehouse.interruption import raised, terminated
from plugins.module_utils.lakehouse.webhdfs import WebHdfs

# Polling reads two small files.
_PAUSE_SECONDS = 2.0
# The session of its metadata copies: a cluster has one such service.
_SESSION = "service"
MakeLocations = Callable[[Entry, Callable[[str], object]], Locations]


def serve(settings: Settings) -> None:
    """Wait for the commit and serve it until the process ends; LakehouseError if it cannot listen."""
    hdfs_root = HdfsRoot(WebHdfs(settings.namenode, settings.superuser), settings.root)
    # SIGTERM removes the copies; those of a killed process are removed at the next start.
    with raised(terminated, [signal.SIGTERM]), closing(MetadataCopies(hdfs_root, _SESSION)) as copies:
        copies.clean(_say)
        commit = _wait_for_commit(settings, partial(SnapshotLocations, hdfs_root, copies))
        with Server(settings.past_address, settings.past_port, commit, report=_say) as server:
            server.serve_forever()


def _wait_for_commit(settings: Settings, locations: MakeLocations) -> FollowedCommit:
    """Wait until the name resolves to a commit; print each reason why it does not once."""
    reported = ""
    while True:
        try:
            return FollowedCommit(settings.repository, settings.past_commit, locations)
        except LakehouseError as error:
            if reported != str(error):
                reported = str(error)
                _say(f"lakehouse_past_commit is not served yet: {reported}")
        time.sleep(_PAUSE_SECONDS)


class FollowedCommit:
    """Returns the handler for a new client: that of the commit to which the name resolves now."""

    def __init__(
        self, repository: Path, commit: str, locations: MakeLocations = lambda _, __: LiveLocations()
    ) -> None:
        """Raise LakehouseError if there is no such commit."""
        self._repository, self._commit, self._lock = repository, commit, Lock()
        self._locations = locations
        self._names = Store(repository)
        self._entry = self._names.resolve(commit)
        self._handler = self._make_handler(self._entry)

    def __call__(self) -> Handler:
        """Return the handler; if the name is gone, that of the last commit."""
        with self._lock:
            try:
                entry = self._names.resolve(self._commit)
            except LakehouseError as error:
                _say(str(error))
            else:
                if entry != self._entry:
                    self._handler = self._make_handler(entry)
                    self._entry = entry
            return self._handler

    def _make_handler(self, entry: Entry) -> Handler:
        _say(f"{self._commit} is commit {entry.short} ({entry.subject})")
        # With a repository of its own, since handlers of different commits share no lock.
        reader = SnapshotReader(Store(self._repository), entry.tree)
        locations = self._locations(entry, _say)
        return Handler(Request(reader, entry, UnsupportedFields(_say), int(time.time()), locations), _say)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
