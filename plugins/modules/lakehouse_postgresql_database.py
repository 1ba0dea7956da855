#!/usr/bin/python
"""Login roles and their databases: the metastore's, or one that a role may only read."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.lakehouse import host_manifest
from ansible.module_utils.lakehouse.postgresql_database import Server, apply, items, needed
from ansible.module_utils.lakehouse.refused import RefusedError

DOCUMENTATION = r"""
module: lakehouse_postgresql_database
short_description: Login roles and their databases, the metastore's or one that a role may only read
description:
  - Talks to the server through psql, as the operating system's user C(postgres); in the metastore's database
    as the role that owns it, and never as the superuser.
  - The metastore's role may make tables while there is no complete schema. From then on its owner has them
    all, and the metastore's role may read and write rows.
  - Whether the password is right is asked of the server, by logging in over TCP. It never stands in an
    argument list.
options:
  port: {type: int, required: true, description: The server's port.}
  databases:
    type: list
    elements: dict
    required: true
    description: A database each, and the role that logs in to it.
    suboptions:
      name: {type: str, required: true, description: The database.}
      user: {type: str, required: true, description: The role.}
      password: {type: str, required: true, description: The role's password.}
      owner:
        type: str
        description: The role that owns the database and its tables; not for one that is only read.
      connections:
        type: int
        description: Sessions that the role may have at once; without it, it has no limit.
      read_only:
        type: bool
        default: false
        description: The role may read the tables of C(schemas), and change nothing.
      schemas:
        type: list
        elements: str
        default: [public]
        description: The schemas of a database that is only read. Those that are not there are made.
  manifest: {type: path, description: The manifest of the host.}
author: The lakehouse kit
"""
EXAMPLES = r"""
- name: The metastore's role and database exist
  lakehouse_postgresql_database:
    port: 5432
    databases: [{name: metastore, user: hive, owner: hive_owner, password: "{{ vaulted }}"}]
"""
RETURN = r"""
done: {type: list, returned: always, description: The statements' names that were needed.}
"""


def main() -> None:
    """Entry point."""
    module = AnsibleModule(
        argument_spec={
            "port": {"type": "int", "required": True},
            "databases": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": {
                    "name": {"type": "str", "required": True},
                    "user": {"type": "str", "required": True},
                    "password": {"type": "str", "required": True, "no_log": True},
                    "owner": {"type": "str"},
                    "connections": {"type": "int"},
                    "read_only": {"type": "bool", "default": False},
                    "schemas": {"type": "list", "elements": "str", "default": ["public"]},
                },
                "required_if": [("read_only", False, ["owner"])],
            },
            **host_manifest.OPTION,
        },
        supports_check_mode=True,
    )
    server = Server(module.params["port"])
    changes = []
    try:
        for login in module.params["databases"]:
            changes += needed(server, login, module.warn) if module.check_mode else apply(server, login)
        if not module.check_mode:
            records = [item for login in module.params["databases"] for item in items(server, login)]
            host_manifest.put(module, records)
    except RefusedError as error:
        module.fail_json(**error.result())
    module.exit_json(changed=bool(changes), done=changes)


if __name__ == "__main__":
    main()
