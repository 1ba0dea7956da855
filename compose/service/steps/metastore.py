"""The schema of the metastore's database."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.lakehouse import credentials, metastore_schema
from ansible.module_utils.lakehouse.refused import RefusedError


def apply(parameters: dict[str, Any]) -> str:
    """Initialise an empty database."""
    path = parameters["credentials_file"]
    password = credentials.password_in(path)
    if password is None:
        raise RefusedError(f"{path} has no {credentials.PASSWORD}", "render the configuration again")
    changed = metastore_schema.apply({**parameters, "password": password})
    return f"initialised schema {parameters['version']}" if changed else ""
