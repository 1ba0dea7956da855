"""The schema of the metastore's database."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.lakehouse import metastore_schema
from ansible.module_utils.lakehouse.environment_file import environment_of
from ansible.module_utils.lakehouse.refused import RefusedError

PASSWORD = "METASTORE_DATABASE_PASSWORD"  # noqa: S105 -- the name of a variable


def apply(parameters: dict[str, Any]) -> str:
    """Initialise an empty database."""
    path = parameters["environment_file"]
    password = environment_of(path).get(PASSWORD)
    if password is None:
        raise RefusedError(f"{path} has no {PASSWORD}", "render the configuration again")
    changed = metastore_schema.apply({**parameters, "password": password})
    return f"initialised schema {parameters['version']}" if changed else ""
