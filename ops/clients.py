"""The clients of this machine to a cluster's metastore and HDFS, in the name of HDFS's superuser."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from thrift.Thrift import TException

from lakehouse.catalog.readable import UnreadableError
from lakehouse.errors import LakehouseError
from lakehouse.metastore import Endpoint, Metastore, MetastoreError, Options
from lakehouse.next_command import command
from ops.status.placement import Cluster
from plugins.module_utils.lakehouse.webhdfs import NoAnswerError, NoPathError, WebHdfs, WebHdfsError, path_of

# A change of many partitions takes its time.
_SECONDS = 120.0
_SAID = 300
Answer = TypeVar("Answer")


class MetastoreSession:
    """A session with the metastore; what that does in HDFS, it does in the superuser's name.

    A LakehouseError where no metastore answers, or something is refused. A class rather than a generator: the
    errors of these bindings are immutable, and one cannot be thrown into a generator.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._following = command("status", cluster.inventory.path)
        found = metastores(cluster)
        if not found:
            raise LakehouseError("no host runs the metastore", self._following)
        options = Options(user=superuser(cluster), total=_SECONDS, read=_SECONDS)
        self._metastore = Metastore(found, options)

    def __enter__(self) -> Metastore:
        return self._metastore

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._metastore.close()
        if isinstance(error, MetastoreError):
            raise LakehouseError(error.message, self._following) from None
        if isinstance(error, TException):
            said = " ".join(str(getattr(error, "message", "") or error).split())
            raise LakehouseError(f"the metastore refuses: {said[:_SAID]}", self._following) from None


class Files:
    """The files of a cluster's HDFS, by path or URI; a LakehouseError where it does not answer.

    What is in another file system is taken to be there, and is empty. What HDFS refuses, or is too long to be
    read, is an UnreadableError: it says something of that file alone.
    """

    def __init__(self, hdfs: WebHdfs, following: str) -> None:
        """`following` is the command for a user whom it does not answer."""
        self.hdfs, self._following = hdfs, following

    @classmethod
    def of(cls, cluster: Cluster) -> Files:
        """Return those of a cluster of machines."""
        [(_, url)] = cluster.urls({"hdfs": ("namenode_http", "")})
        addresses = {host.name: host.address for host in cluster.hosts}
        following = command("status", cluster.inventory.path)
        return cls(WebHdfs(url, superuser(cluster), addresses), following)

    def holds(self, uri: str) -> bool:
        """Tell whether a URI belongs to this file system."""
        return path_of(uri) is not None

    def size(self, uri: str) -> int | None:
        """Return the bytes of a file, 0 for a folder; None where there is neither."""

        def size(path: str) -> int | None:
            status = self.hdfs.status(path)
            return None if status is None else int(status["length"])

        elsewhere: int | None = 0
        return self._asked(uri, size, other=elsewhere, none=None)

    def exists(self, uri: str) -> bool:
        """Tell whether there is such a file or folder."""
        return self._asked(uri, lambda path: self.hdfs.status(path) is not None, other=True, none=False)

    def read(self, uri: str) -> bytes:
        """Return what is in a file."""
        return self._asked(uri, self.hdfs.read, other=b"", none=b"")

    def names(self, uri: str) -> list[str]:
        """Return the names in a folder; none where there is no such folder."""
        return self._asked(uri, self.hdfs.names, other=[], none=[])

    def sizes(self, uri: str) -> dict[str, int]:
        """Return the bytes of what is in a folder by name, 0 of a folder; none where there is no folder."""
        return self._asked(uri, self.hdfs.sizes, other={}, none={})

    def _asked(self, uri: str, ask: Callable[[str], Answer], *, other: Answer, none: Answer) -> Answer:
        """Return `other` for what is in another file system, and `none` for what HDFS cannot have."""
        path = path_of(uri)
        try:
            return other if path is None else ask(path)
        except NoPathError:
            return none
        except NoAnswerError as error:
            raise LakehouseError(str(error), self._following) from error
        except WebHdfsError as error:
            raise UnreadableError(str(error), self._following) from error


def metastores(cluster: Cluster) -> list[Endpoint]:
    """Return the addresses of a cluster's metastore; none where no host runs it."""
    return [Endpoint(place.address or place.host, place.port) for place in cluster.endpoints("metastore")]


def superuser(cluster: Cluster) -> str:
    """Return the user of HDFS who may do everything there."""
    return str(cluster.variable("lakehouse_users")["hdfs"])
