"""Read the catalog on the host of its database."""

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


def database(psql: list[str], environment: Mapping[str, str] | None = None) -> Ask:
    """Return a function that runs scripts with psql on this host, as the current user."""

    @contextmanager
    def ask(script: str) -> Iterator[Iterator[bytes]]:
        with tempfile.TemporaryFile() as script_file:
            script_file.write(script.encode())
            script_file.seek(0)
            with subprocess.Popen(
                [*psql, "-f", "-"],
                stdin=script_file,
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
