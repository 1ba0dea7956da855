"""The metastore's file of credentials: a JSON object of Hadoop's property names and their values."""

from __future__ import annotations

import json
from pathlib import Path

# The property of hive-site.xml that names the file, and what stands before its path there.
PROVIDER = "hadoop.security.credential.provider.path"
SCHEME = "json:"
PASSWORD = "javax.jdo.option.ConnectionPassword"  # noqa: S105 -- the name of a property


def password_in(path: str | Path) -> str | None:
    """Return the database's password in a file of credentials, None where there is no file or none in it."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    password = document.get(PASSWORD) if isinstance(document, dict) else None
    return None if password is None else str(password)
