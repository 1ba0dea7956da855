#!/usr/bin/python
"""The metastore's schema: initialised once, and only in an empty database."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.lakehouse.metastore_schema import apply, is_needed
from ansible.module_utils.lakehouse.refused import DeniedError, RefusedError, UnansweredError

DOCUMENTATION = r"""
module: lakehouse_metastore_schema
short_description: Initialise the schema of a Hive Metastore once
description:
  - An empty database gets the schema, under an advisory lock so that two metastores cannot both do it.
  - A complete schema of the desired version is left alone. Everything else (an interrupted initialisation,
    another version, foreign tables) is refused with what was found.
options:
  host: {type: str, required: true, description: The database's host.}
  port: {type: int, required: true, description: The database's port.}
  database: {type: str, required: true, description: The database.}
  user: {type: str, required: true, description: The role that owns it.}
  password: {type: str, required: true, description: Its password; psql gets it through its environment.}
  version: {type: str, required: true, description: The schema version that the metastore's release expects.}
  credentials_file: {type: path, required: true, description: File with the installed password.}
  metastore_home: {type: path, required: true, description: Folder with scripts/metastore.}
  argv: {type: list, elements: str, required: true, description: The command that initialises.}
author: The lakehouse kit
"""
EXAMPLES = r"""
- name: The schema is initialised, once
  lakehouse_metastore_schema: {host: db1, port: 5432, database: metastore, user: hive, version: 3.1.0}
"""
RETURN = r"""
version: {type: str, returned: always, description: The schema's version.}
"""


def main() -> None:
    """Entry point."""
    module = AnsibleModule(
        argument_spec={
            "host": {"type": "str", "required": True},
            "port": {"type": "int", "required": True},
            "database": {"type": "str", "required": True},
            "user": {"type": "str", "required": True},
            "password": {"type": "str", "required": True, "no_log": True},
            "version": {"type": "str", "required": True},
            "credentials_file": {"type": "path", "required": True},
            "metastore_home": {"type": "path", "required": True},
            "argv": {"type": "list", "elements": "str", "required": True},
        },
        supports_check_mode=True,
    )
    try:
        changed = is_needed(module.params) if module.check_mode else apply(module.params)
    except UnansweredError as error:
        if not module.check_mode:
            module.fail_json(**error.result())
        # A server that denies the login has the database: a run grants the login before this module.
        changed = not isinstance(error, DeniedError)
        consequence = "taken for an empty database" if changed else "the schema is not judged"
        module.warn(f"{consequence}, because it cannot be asked yet: {error.what}")
    except RefusedError as error:
        module.fail_json(**error.result())
    module.exit_json(changed=changed, version=module.params["version"])


if __name__ == "__main__":
    main()
