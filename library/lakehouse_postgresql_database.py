#!/usr/bin/python
"""Login roles and their databases: a role's own, or one that it may only read."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.lakehouse.postgresql_database import Server, apply, needed
from ansible.module_utils.lakehouse.refused import RefusedError

DOCUMENTATION = r"""
module: lakehouse_postgresql_database
short_description: Login roles and their databases, a role's own or one that it may only read
description:
  - Talks to the server through psql, as the operating system's user C(postgres).
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
      read_only:
        type: bool
        default: false
        description: The role does not own the database; it may read every table in it, whoever makes one.
author: The lakehouse kit
"""
EXAMPLES = r"""
- name: The metastore's role and database exist
  lakehouse_postgresql_database:
    port: 5432
    databases: [{name: metastore, user: hive, password: "{{ vaulted }}"}]
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
                    "read_only": {"type": "bool", "default": False},
                },
            },
        },
        supports_check_mode=True,
    )
    server = Server(module.params["port"])
    done = []
    try:
        for login in module.params["databases"]:
            done += needed(server, login, module.warn) if module.check_mode else apply(server, login)
    except RefusedError as error:
        module.fail_json(**error.result())
    module.exit_json(changed=bool(done), done=done)


if __name__ == "__main__":
    main()
