"""The schema of the metastore's database."""

from __future__ import annotations

from typing import Any

from ansible.module_utils import metastore_schema
from ansible.module_utils.environment_file import environment_of

PASSWORD = "METASTORE_DATABASE_PASSWORD"  # noqa: S105 -- the name of a variable


def apply(parameters: dict[str, Any]) -> str:
    """Initialise an empty database."""
    password = environment_of(parameters["environment_file"])[PASSWORD]
    changed = metastore_schema.apply({**parameters, "password": password})
    return f"initialised schema {parameters['version']}" if changed else ""
