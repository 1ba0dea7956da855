"""Read the catalog on the host of its database."""

from __future__ import annotations

from lakehouse.catalog.hosted.layout import Settings
from lakehouse.catalog.psql import database
from lakehouse.catalog.source import Source, listed_versions
from lakehouse.errors import LakehouseError
from lakehouse.next_command import PROGRAM
from plugins.module_utils.lakehouse.webhdfs import NoPathError, WebHdfs, WebHdfsError, path_of


def source(settings: Settings) -> Source:
    """Return the source of the catalog of this host's cluster."""
    hdfs = WebHdfs(settings.namenode, settings.superuser)

    def names(uri: str) -> list[str]:
        path = path_of(uri)
        try:
            return [] if path is None else hdfs.names(path)
        except NoPathError:
            # The creator of a table chooses its location: an invalid one must not block the commit.
            return []
        except WebHdfsError as error:
            raise LakehouseError(str(error), f"{PROGRAM} status") from error

    return Source(settings.cluster, ask=database(settings.psql), versions=listed_versions(names))
