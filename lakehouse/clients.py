"""Clients of a cluster's metastore and HDFS, as HDFS's superuser, and of another metastore."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from thrift.Thrift import TException

from lakehouse.catalog.readable import UnreadableError
from lakehouse.errors import LakehouseError
from lakehouse.metastore import Endpoint, Metastore, MetastoreError, Options
from lakehouse.metastore.options import endpoints
from lakehouse.model import defaults
from lakehouse.model.placement import Cluster
from lakehouse.next_command import command
from plugins.module_utils.lakehouse.webhdfs import NoAnswerError, NoPathError, WebHdfs, WebHdfsError, path_of

# A change of many partitions is slow.
_SECONDS = 120.0
# Characters of an error in a message.
_MOST = 300
Answer = TypeVar("Answer")


class _Session:
    """A session with metastores, as a user.

    Raises LakehouseError where no metastore answers, or one rejects a call. It is a class because the errors
    of Thrift's bindings are immutable, and cannot be thrown into a generator.
    """

    def __init__(self, servers: Sequence[Endpoint], user: str, next_command: str) -> None:
        self._next_command = next_command
        self._metastore = Metastore(servers, Options(user=user, total=_SECONDS, read=_SECONDS))

    def __enter__(self) -> Metastore:
        return self._metastore

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._metastore.close()
        if isinstance(error, MetastoreError):
            raise LakehouseError(error.message, self._next_command) from None
        if isinstance(error, TException):
            message = " ".join(str(getattr(error, "message", "") or error).split())
            raise LakehouseError(f"the metastore refuses: {message[:_MOST]}", self._next_command) from None


class MetastoreSession(_Session):
    """A session with a cluster's metastore, which accesses HDFS as its superuser."""

    def __init__(self, cluster: Cluster) -> None:
        next_command = command("status", cluster.inventory.path)
        servers = metastores(cluster)
        if not servers:
            raise LakehouseError("no host runs the metastore", next_command)
        super().__init__(servers, superuser(cluster), next_command)


class OtherMetastoreSession(_Session):
    """A session with a metastore outside of this cluster, as the usual superuser of HDFS."""

    def __init__(self, addresses: str) -> None:
        """Parse `addresses`, as in `hive.metastore.uris`; UsageError for an invalid one."""
        self.servers = endpoints(addresses)
        [first, *_] = self.servers
        user = str(defaults.defaults()["lakehouse_users"]["hdfs"])
        super().__init__(self.servers, user, f"nc -vz {first.host} {first.port}")


class Files:
    """The files of a cluster's HDFS, by path or URI; LakehouseError where HDFS does not answer.

    A file of another file system is assumed to exist, and to be empty. UnreadableError where HDFS rejects a
    request, or the file is too long: that concerns one file alone.
    """

    def __init__(self, hdfs: WebHdfs, next_command: str) -> None:
        """`next_command` is suggested by errors where HDFS does not answer."""
        self.hdfs, self._next_command = hdfs, next_command

    @classmethod
    def of(cls, cluster: Cluster) -> Files:
        """Return the files of a cluster of machines."""
        [(_, url)] = cluster.urls({"hdfs": ("namenode_http", "")})
        addresses = {host.name: host.address for host in cluster.hosts}
        next_command = command("status", cluster.inventory.path)
        return cls(WebHdfs(url, superuser(cluster), addresses), next_command)

    def holds(self, uri: str) -> bool:
        """Return whether a URI belongs to this file system."""
        return path_of(uri) is not None

    def size(self, uri: str) -> int | None:
        """Return the bytes of a file, 0 for a folder; None where it does not exist."""

        def size(path: str) -> int | None:
            status = self.hdfs.status(path)
            return None if status is None else int(status["length"])

        elsewhere: int | None = 0
        return self._request(uri, size, foreign=elsewhere, missing=None)

    def exists(self, uri: str) -> bool:
        """Return whether a file or folder exists."""
        return self._request(
            uri, lambda path: self.hdfs.status(path) is not None, foreign=True, missing=False
        )

    def read(self, uri: str) -> bytes:
        """Return the content of a file."""
        return self._request(uri, self.hdfs.read, foreign=b"", missing=b"")

    def names(self, uri: str) -> list[str]:
        """Return the names in a folder; none where it does not exist."""
        return self._request(uri, self.hdfs.names, foreign=[], missing=[])

    def sizes(self, uri: str) -> dict[str, int]:
        """Return the bytes of each file in a folder by name, 0 for a folder; none where it does not exist."""
        return self._request(uri, self.hdfs.sizes, foreign={}, missing={})

    def _request(
        self, uri: str, call: Callable[[str], Answer], *, foreign: Answer, missing: Answer
    ) -> Answer:
        """Return `foreign` for another file system's URI, and `missing` for a path that HDFS cannot have."""
        path = path_of(uri)
        try:
            return foreign if path is None else call(path)
        except NoPathError:
            return missing
        except NoAnswerError as error:
            raise LakehouseError(str(error), self._next_command) from error
        except WebHdfsError as error:
            raise UnreadableError(str(error), self._next_command) from error


def metastores(cluster: Cluster) -> list[Endpoint]:
    """Return the endpoints of a cluster's metastore; none where no host runs it."""
    return [Endpoint(place.address or place.host, place.port) for place in cluster.endpoints("metastore")]


def superuser(cluster: Cluster) -> str:
    """Return the superuser of HDFS."""
    return str(cluster.variable("lakehouse_users")["hdfs"])
