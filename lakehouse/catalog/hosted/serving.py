"""Serves a commit of the cluster's history as a metastore; one that a name leads to follows the name."""

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
from lakehouse.catalog.served.unsupported_fields import Told
from lakehouse.catalog.snapshot_reader import Past
from lakehouse.catalog.store import Entry, Store
from lakehouse.errors import LakehouseError
from lakehouse.interruption import raised, terminated
from plugins.module_utils.lakehouse.webhdfs import WebHdfs

# To look costs two small files. A process that ended would be started again, behind a commit of the catalog.
_PAUSE_SECONDS = 2.0
# The folder of its copies: a cluster has one such service.
_SESSION = "service"
MakeLocations = Callable[[Entry, Callable[[str], object]], Locations]


def serve(settings: Settings) -> None:
    """Serve until the process ends, as soon as there is such a commit; LakehouseError: it cannot listen."""
    hdfs_root = HdfsRoot(WebHdfs(settings.namenode, settings.superuser), settings.root)
    # SIGTERM ends it so that the copies go; those of a process that was killed go when it starts again.
    with raised(terminated, [signal.SIGTERM]), closing(MetadataCopies(hdfs_root, _SESSION)) as copies:
        copies.clean(_say)
        following = _awaited(settings, partial(SnapshotLocations, hdfs_root, copies))
        with Server(settings.past_address, settings.past_port, following, report=_say) as server:
            server.serve_forever()


def _awaited(settings: Settings, locations: MakeLocations) -> Following:
    """Return what follows the name once it leads to a commit; why it does not is said once."""
    said = ""
    while True:
        try:
            return Following(settings.repository, settings.past_commit, locations)
        except LakehouseError as error:
            if said != str(error):
                said = str(error)
                _say(f"lakehouse_past_commit is not served yet: {said}")
        time.sleep(_PAUSE_SECONDS)


class Following:
    """What answers a new client: the commit that the name leads to now."""

    def __init__(
        self, repository: Path, commit: str, locations: MakeLocations = lambda _, __: LiveLocations()
    ) -> None:
        """LakehouseError where there is no such commit."""
        self._repository, self._commit, self._lock = repository, commit, Lock()
        self._locations = locations
        self._names = Store(repository)
        self._entry = self._names.resolve(commit)
        self._handler = self._made(self._entry)

    def __call__(self) -> Handler:
        """Return it; where the name is gone, the commit that it led to last."""
        with self._lock:
            try:
                entry = self._names.resolve(self._commit)
            except LakehouseError as error:
                _say(str(error))
            else:
                if entry != self._entry:
                    self._handler = self._made(entry)
                    self._entry = entry
            return self._handler

    def _made(self, entry: Entry) -> Handler:
        _say(f"{self._commit} is commit {entry.short} ({entry.subject})")
        # A repository of its own: two commits are read by threads that know nothing of each other.
        past = Past(Store(self._repository), entry.tree)
        locations = self._locations(entry, _say)
        return Handler(Request(past, entry, Told(_say), int(time.time()), locations), _say)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
