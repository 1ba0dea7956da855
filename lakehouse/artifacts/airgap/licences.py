"""The licence of each file of a bundle, from the file itself or from versions.yml."""

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
    """Return the licence in the metadata of a wheel or source archive: SPDX if present, else its text."""
    metadata = _metadata(file)
    if expression := metadata.get("License-Expression"):
        return expression
    classified = [
        value.rpartition(" :: ")[2]
        for value in metadata.get_all("Classifier", [])
        if value.startswith(_CLASSIFIER)
    ]
    if classified:
        return " OR ".join(classified)
    # Some packages have the whole licence text there.
    text = metadata.get("License", "").strip()
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
