"""PyIceberg's files in HDFS, by a client that needs neither a JVM nor libhdfs."""

from __future__ import annotations

import os
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


class GroupWritableHdfs(HdfsFileSystem):
    """HDFS through hdfs-native, with files that the group can write."""

    # fsspec would clear its cache of instances in a forked child, and hang there.
    cachable = False

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        if mode != "wb":
            return super()._open(path, mode, **options)
        return self.client.create(
            self._strip_protocol(path),
            WriteOptions(permission=_FILE_MODE, overwrite=options.get("overwrite", True)),
        )


def file_system(properties: Mapping[str, Any]) -> HdfsFileSystem:
    """Return this process's file system; what begins with dfs., fs. or hadoop. configures it.

    Without such properties HADOOP_CONF_DIR does. The user is HADOOP_USER_NAME at the first call.
    """
    options = {key: str(value) for key, value in properties.items() if key.startswith(_PREFIXES)}
    key = (os.getpid(), *sorted(options.items()))
    if key not in _FILE_SYSTEMS:
        default = options.get("fs.defaultFS", "").removeprefix("hdfs://") or None
        _FILE_SYSTEMS[key] = GroupWritableHdfs(default, **options)
    return _FILE_SYSTEMS[key]


class HdfsFileIO(FsspecFileIO):
    """A file IO for `hdfs://`, named in the catalog property `py-io-impl`; other schemes as usual."""

    def get_fs(self, scheme: str, hostname: str | None = None) -> Any:
        """Return the file system of a scheme; that of HDFS belongs to this process, not to its parent."""
        return file_system(self.properties) if scheme == "hdfs" else super().get_fs(scheme, hostname)
