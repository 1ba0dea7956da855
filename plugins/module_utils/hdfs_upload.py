"""Files of a local folder in HDFS, through WebHDFS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.module_utils.refused import RefusedError
from ansible.module_utils.webhdfs import WebHdfs, WebHdfsError


def apply(parameters: dict[str, Any], *, check: bool = False) -> list[str]:
    """Write the files that the module hdfs_upload is given; return those that were not there yet."""
    hdfs = WebHdfs(parameters["url"], parameters["user"])
    written = []
    try:
        for source in sorted(Path(parameters["source"]).iterdir()):
            path = f"{parameters['destination']}/{source.name}"
            status = hdfs.status(path)
            if source.is_file() and (status is None or status["length"] != source.stat().st_size):
                if not check:
                    hdfs.upload(str(source), path)
                written.append(path)
    except (WebHdfsError, OSError) as error:
        raise RefusedError(str(error), "journalctl -u hdfs-namenode -u hdfs-datanode") from error
    return written
