"""What an event of a metastore's notification log says: which objects are others since. Pure."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from typing import Any

from lakehouse.metastore.about import EVERYTHING, Name, named

# They change nothing that a client may have read.
_NOTHING = frozenset({"OPEN_TXN", "COMMIT_TXN", "ABORT_TXN", "ALLOC_WRITE_ID"})
_ALTERED = "ALTER_TABLE"
# The fields of a table as Thrift numbers them.
_TABLE, _DATABASE = "1", "2"


def changed(event: Any) -> frozenset[Name]:
    """Return what is another one after an event; EVERYTHING is among it where it does not say."""
    if event.eventType in _NOTHING:
        return frozenset()
    if not event.dbName:
        return frozenset({EVERYTHING})
    names = {named(event.dbName, event.tableName)}
    if event.eventType == _ALTERED:
        # It has the table's name after the change; the one before is in the message alone.
        names.add(_before(event))
    return frozenset(names)


def _before(event: Any) -> Name:
    try:
        text = event.message
        if str(event.messageFormat).startswith("gzip"):
            text = gzip.decompress(base64.b64decode(text))
        table = json.loads(json.loads(text)["tableObjBeforeJson"])
        return named(table[_DATABASE]["str"], table[_TABLE]["str"])
    except (ValueError, LookupError, TypeError, EOFError, OSError, zlib.error):
        return EVERYTHING
