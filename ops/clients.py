"""The clients of this machine to a cluster's metastore and HDFS, in the name of HDFS's superuser."""

from __future__ import annotations

from thrift.Thrift import TException

from lakehouse.errors import LakehouseError
from lakehouse.metastore import Endpoint, Metastore, MetastoreError, Options
from ops.status.placement import Cluster
from plugins.module_utils.lakehouse.webhdfs import WebHdfs, WebHdfsError

# A change of many partitions takes its time.
_SECONDS = 120.0
_SAID = 300


class MetastoreSession:
    """A session with the metastore; what that does in HDFS, it does in the superuser's name.

    A LakehouseError where nobody answers, or something is refused. A class rather than a generator: the
    errors of these bindings are immutable, and one cannot be thrown into a generator.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._following = f"lakehouse status -i {cluster.inventory.path}"
        hosts = cluster.running("metastore")
        if not hosts:
            raise LakehouseError("nobody runs the metastore", self._following)
        found = [Endpoint(one.address, int(one.variables["lakehouse_ports"]["metastore"])) for one in hosts]
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
    """The files of a cluster's HDFS; a LakehouseError where the NameNode does not answer."""

    def __init__(self, cluster: Cluster) -> None:
        [(_, url)] = cluster.urls({"hdfs": ("namenode", "namenode_http", "")})
        self.hdfs = WebHdfs(url, superuser(cluster))
        self._following = f"lakehouse status -i {cluster.inventory.path}"

    def exists(self, path: str) -> bool:
        """Tell whether there is such a file or folder."""
        try:
            return self.hdfs.status(path) is not None
        except WebHdfsError as error:
            raise LakehouseError(str(error), self._following) from error


def superuser(cluster: Cluster) -> str:
    """Return the user of HDFS who may do everything there."""
    return str(cluster.variable("lakehouse_users")["hdfs"])
