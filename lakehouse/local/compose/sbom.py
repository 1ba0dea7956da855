"""What is inside an image, as a CycloneDX document: https://cyclonedx.org/docs/1.5/json/."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from lakehouse.artifacts.manifest import Artifact, Manifest


def document(bill: Manifest, components: Iterable[str]) -> str:
    """Return the document for the files of these components of versions.yml, with checksum and licence.

    Debian's packages are in the image's own database: `dpkg-query --show`.
    """
    entries = [_component(artifact) for name in components for artifact in bill.component(name).contents]
    unique = {entry["bom-ref"]: entry for entry in entries}
    content = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "components": [unique[reference] for reference in sorted(unique)],
    }
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


def _component(artifact: Artifact) -> dict[str, Any]:
    url = artifact.coordinate.purl
    return {
        "type": "library",
        "bom-ref": url,
        "purl": url,
        "name": artifact.coordinate.artifact,
        "version": artifact.coordinate.version,
        "hashes": [{"alg": "SHA-256", "content": artifact.sha256}],
        "licenses": [{"expression": artifact.licence}],
    }
