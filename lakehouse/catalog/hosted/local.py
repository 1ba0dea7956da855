"""The catalog, read on the host of its database."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from lakehouse.catalog.hosted.layout import Settings
from lakehouse.catalog.source import Ask, Source, listed_versions, rows
from lakehouse.errors import LakehouseError
from lakehouse.next_command import PROGRAM
from plugins.module_utils.lakehouse.webhdfs import NoPathError, WebHdfs, WebHdfsError, path_of


def source(settings: Settings) -> Source:
    """Return what reads the catalog of the cluster that this host is of."""
    hdfs = WebHdfs(settings.namenode, settings.superuser)

    def names(uri: str) -> list[str]:
        path = path_of(uri)
        try:
            return [] if path is None else hdfs.names(path)
        except NoPathError:
            # The maker of a table says where it is: that must not keep the others out of the history.
            return []
        except WebHdfsError as error:
            raise LakehouseError(str(error), f"{PROGRAM} status") from error

    return Source(settings.cluster, ask=database(settings.psql), versions=listed_versions(names))


def database(psql: list[str], environment: Mapping[str, str] | None = None) -> Ask:
    """Return what runs scripts by psql here, as the current user, with an environment beside our own."""

    @contextmanager
    def ask(script: str) -> Iterator[Iterator[bytes]]:
        with tempfile.TemporaryFile() as given:
            given.write(script.encode())
            given.seek(0)
            with subprocess.Popen(
                [*psql, "-f", "-"],
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
            ) as process:
                complaints: list[str] = []
                try:
                    yield rows(process.stdout or (), complaints)
                except LakehouseError as error:
                    why = next(iter(complaints), "")
                    if not why:
                        raise
                    raise LakehouseError(f"{why}: {error.message}", error.next_command) from error
                finally:
                    process.kill()

    return ask
