"""SPDX licence expressions: of Maven artifacts from their POMs, of wheels from their metadata."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
import zipfile
from email import message_from_bytes
from pathlib import Path, PurePosixPath

from lakehouse.artifacts.coordinates import Coordinate

# Licence names in POMs, and their SPDX; matched in this order against "name url" in lower case.
_SPDX = (
    (r"cddl.*gpl", "CDDL-1.1 OR GPL-2.0-only WITH Classpath-exception-2.0"),
    (
        r"gpl.*(classpath|cpe)|gnu general public license.*classpath",
        "GPL-2.0-only WITH Classpath-exception-2.0",
    ),
    (r"lgpl 2\.1", "LGPL-2.1-only"),
    (r"mpl 1\.1", "MPL-1.1"),
    (r"mpl[- ]2\.0|mozilla public license 2", "MPL-2.0"),
    (r"apache", "Apache-2.0"),
    (r"\bedl\b|eclipse distribution license", "BSD-3-Clause"),
    (r"(epl|eclipse public license)\D*2\.0", "EPL-2.0"),
    (r"(epl|eclipse public license)\D*1\.0", "EPL-1.0"),
    (r"bsd[- ]2-clause", "BSD-2-Clause"),
    (r"bsd[- ]3-clause|(modified|revised) bsd|go license", "BSD-3-Clause"),
    (r"bouncy castle|\bmit\b", "MIT"),
)


class UnknownLicenceError(Exception):
    """The licence of a POM and its parents does not map to SPDX; the message is its text."""


def of(coordinate: Coordinate, repository: Path) -> str:
    """Return the licence of an artifact whose POM and parents lie in `repository` (Maven's layout).

    Several licences are joined with OR: a POM cannot say more, and most that list several offer a choice.
    """
    pom: Path | None = repository / _pom_path(coordinate.group, coordinate.artifact, coordinate.version)
    while pom and pom.exists():
        project = ET.parse(pom).getroot()  # noqa: S314 (Maven read the same file just before)
        for element in project.iter():
            element.tag = element.tag.rpartition("}")[2]
        if licences := project.findall("licenses/license"):
            texts = [f"{item.findtext('name', '')} {item.findtext('url', '')}".strip() for item in licences]
            return " OR ".join(dict.fromkeys(_spdx(text) for text in texts))
        parent = project.find("parent")
        if parent is None:
            break
        names = (parent.findtext(tag, "").strip() for tag in ("groupId", "artifactId", "version"))
        pom = repository / _pom_path(*names)
    raise UnknownLicenceError("none")


def of_wheel(file: Path) -> str:
    """Return the licence in the metadata of a wheel: expression, classifier or text."""
    with zipfile.ZipFile(file) as wheel:
        place = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(wheel.read(place))
    if expression := metadata["License-Expression"]:
        return str(expression)
    classifiers = [str(text) for text in metadata.get_all("Classifier", [])]
    texts = [text.rpartition(" :: ")[2] for text in classifiers if text.startswith("License :: ")]
    texts = texts or [str(metadata["License"] or "none")]
    return " OR ".join(dict.fromkeys(_spdx(text) for text in texts))


def _spdx(text: str) -> str:
    for pattern, expression in _SPDX:
        if re.search(pattern, text.lower()):
            return expression
    raise UnknownLicenceError(text)


def _pom_path(group: str, artifact: str, version: str) -> PurePosixPath:
    return PurePosixPath(*group.split("."), artifact, version, f"{artifact}-{version}.pom")
