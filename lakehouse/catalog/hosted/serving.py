"""Serves a commit of the cluster's history as a metastore; one that a name leads to follows the name."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from threading import Lock

from lakehouse.catalog.past import Past
from lakehouse.catalog.served.handler import Handler
from lakehouse.catalog.served.request import Request
from lakehouse.catalog.served.server import Server
from lakehouse.catalog.served.told import Told
from lakehouse.catalog.store import Entry, Store
from lakehouse.errors import LakehouseError

# To look costs two small files. A process that ended would be started again, behind a commit of the catalog.
_PAUSE_SECONDS = 2.0


def serve(repository: Path, commit: str, address: str, port: int) -> None:
    """Serve until the process ends, as soon as there is such a commit; LakehouseError: nobody can listen."""
    with Server(address, port, _awaited(repository, commit), report=_say) as server:
        server.serve_forever()


def _awaited(repository: Path, commit: str) -> Following:
    """Return what follows the name once it leads to a commit; why it does not is said once."""
    said = ""
    while True:
        try:
            return Following(repository, commit)
        except LakehouseError as error:
            if said != str(error):
                said = str(error)
                _say(f"lakehouse_past_commit is not served yet: {said}")
        time.sleep(_PAUSE_SECONDS)


class Following:
    """What answers a new client: the commit that the name leads to now."""

    def __init__(self, repository: Path, commit: str) -> None:
        """LakehouseError where there is no such commit."""
        self._repository, self._commit, self._lock = repository, commit, Lock()
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
        return Handler(Request(past, entry, Told(_say), int(time.time())), _say)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
