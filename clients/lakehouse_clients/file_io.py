"""PyIceberg's files in HDFS, by a client that needs neither a JVM nor libhdfs."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from hdfs_native import WriteOptions
from hdfs_native.fsspec import HdfsFileSystem
from pyiceberg.io.fsspec import FsspecFileIO

# Other members of the group may replace a file; who may pass the folders at all is decided above.
_FILE_MODE = 0o664
_PREFIXES = ("dfs.", "fs.", "hadoop.")

# One file system for each process and cluster. It is never given back: a forked child that let go of its
# parent's would wait for ever for threads that exist in the parent alone.
_FILE_SYSTEMS: dict[tuple[object, ...], HdfsFileSystem] = {}

# hdfs-native keeps idle connections to DataNodes for 3 s, in one place that a fork copies. A child that took
# one would wait for ever, and one that threw it away would take it from its parent's poll: until they are too
# old to be used, both leave HDFS alone.
_IDLE_SECONDS = 3.2
_forked_at = -_IDLE_SECONDS


def _note_fork() -> None:
    global _forked_at  # noqa: PLW0603 (the moment of a fork is the process's own)
    if _FILE_SYSTEMS:
        _forked_at = time.monotonic()


os.register_at_fork(after_in_child=_note_fork, after_in_parent=_note_fork)


class GroupWritableHdfs(HdfsFileSystem):
    """HDFS through hdfs-native, with files that the group can write."""

    # fsspec would clear its cache of instances in a forked child, and hang there.
    cachable = False

    def _open(
        self,
        path: str,
        mode: Any = "rb",
        overwrite: bool = True,
        replication: int | None = None,
        block_size: int | None = None,
        **_options: Any,
    ) -> Any:
        if mode != "wb":
            return super()._open(path, mode, overwrite, replication, block_size)
        options = WriteOptions(block_size, replication, _FILE_MODE, overwrite)
        return self.client.create(self._strip_protocol(path), options)


def file_system(properties: Mapping[str, Any]) -> HdfsFileSystem:
    """Return this process's file system; what begins with dfs., fs. or hadoop. configures it.

    Without such properties HADOOP_CONF_DIR does. The user is HADOOP_USER_NAME at the first call. After a fork
    the first call takes up to 3 s, in parent and child.
    """
    if (wait := _forked_at + _IDLE_SECONDS - time.monotonic()) > 0:
        time.sleep(wait)
    options = {key: str(value) for key, value in properties.items() if key.startswith(_PREFIXES)}
    key = (os.getpid(), *sorted(options.items()))
    if key not in _FILE_SYSTEMS:
        default = options.get("fs.defaultFS", "").removeprefix("hdfs://") or None
        _FILE_SYSTEMS[key] = GroupWritableHdfs(default, None, **options)
    return _FILE_SYSTEMS[key]


class HdfsFileIO(FsspecFileIO):
    """A file IO for `hdfs://`, named in the catalog property `py-io-impl`; other schemes as usual."""

    def get_fs(self, scheme: str, hostname: str | None = None) -> Any:
        """Return the file system of a scheme; that of HDFS belongs to this process, not to its parent."""
        return file_system(self.properties) if scheme == "hdfs" else super().get_fs(scheme, hostname)
