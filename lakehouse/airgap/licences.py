"""Under which licence each file of a bundle is, as far as the file or versions.yml says."""

from __future__ import annotations

import email
import tarfile
import zipfile
from email.message import Message
from pathlib import Path

_CLASSIFIER = "License :: "
UNKNOWN = "see the file itself"
DEBIAN = "see usr/share/doc/*/copyright in the package"


def of_python(file: Path) -> str:
    """Return what a wheel or a source archive of PyPI says of itself: SPDX where it does, else its words."""
    said = _metadata(file)
    if expression := said.get("License-Expression"):
        return expression
    classified = [
        value.rpartition(" :: ")[2]
        for value in said.get_all("Classifier", [])
        if value.startswith(_CLASSIFIER)
    ]
    if classified:
        return " OR ".join(classified)
    # Some put the whole text there.
    text = said.get("License", "").strip()
    return text if text and "\n" not in text else UNKNOWN


def _metadata(file: Path) -> Message:
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
            return email.message_from_bytes(wheel.read(name))
    with tarfile.open(file) as archive:
        for member in archive:
            if member.name.count("/") == 1 and member.name.endswith("/PKG-INFO"):
                stream = archive.extractfile(member)
                return email.message_from_bytes(stream.read() if stream else b"")
    return Message()
