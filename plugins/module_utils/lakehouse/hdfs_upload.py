"""Files of a local folder in HDFS, through WebHDFS.

Beside its bytes a file keeps their sha256, as an extended attribute: HDFS's own checksum depends on the size
of blocks, and the length alone does not tell a corrected file from the old one.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from ansible.module_utils.lakehouse.refused import RefusedError
from ansible.module_utils.lakehouse.webhdfs import WebHdfs, WebHdfsError

SHA256 = "user.lakehouse.sha256"
CHUNK_BYTES = 1 << 20


def apply(parameters: dict[str, Any], *, check: bool = False) -> list[str]:
    """Write the files that the module hdfs_upload is given; return those that were not there yet."""
    hdfs = WebHdfs(parameters["url"], parameters["user"])
    written = []
    try:
        for source in sorted(Path(parameters["source"]).iterdir()):
            path = f"{parameters['destination']}/{source.name}"
            if source.is_file() and not is_there(hdfs, source, path):
                if not check:
                    hdfs.upload(str(source), path)
                    hdfs.set_attribute(path, SHA256, sha256(source))
                written.append(path)
    except (WebHdfsError, OSError) as error:
        raise RefusedError(str(error), "journalctl -u hdfs-namenode -u hdfs-datanode") from error
    return written


def is_there(hdfs: WebHdfs, source: Path, path: str) -> bool:
    """Whether the path holds the bytes of the local file."""
    status = hdfs.status(path)
    if status is None or status["length"] != source.stat().st_size:
        return False
    return hdfs.attributes(path).get(SHA256) == sha256(source)


def sha256(source: Path) -> str:
    """Return the digest of a file, in hexadecimal digits."""
    digest = hashlib.sha256()
    with source.open("rb") as stream:
        while chunk := stream.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
