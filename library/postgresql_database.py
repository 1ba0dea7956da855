#!/usr/bin/python
"""A login role and its database: its own, or one that it may only read."""

from __future__ import annotations

import os
import subprocess

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: postgresql_database
short_description: A login role and its database, its own or one that it may only read
description:
  - Talks to the server through psql, as the operating system's user C(postgres).
  - Whether the password is right is asked of the server, by logging in over TCP. It never stands in an
    argument list.
options:
  name: {type: str, required: true, description: The database.}
  user: {type: str, required: true, description: The role.}
  read_only:
    type: bool
    default: false
    description: The role does not own the database; it may read every table in it, whoever makes one.
  password: {type: str, required: true, description: The role's password.}
  port: {type: int, required: true, description: The server's port.}
author: The lakehouse kit
"""
EXAMPLES = r"""
- name: The metastore's role and database exist
  postgresql_database: {name: metastore, user: hive, password: "{{ vaulted }}", port: 5432}
"""
RETURN = r"""
done: {type: list, returned: always, description: The statements' names that were needed.}
"""


def literal(text: str) -> str:
    """Quote a string for SQL (standard_conforming_strings is on since PostgreSQL 9.1)."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def admin(module: AnsibleModule, sql: str) -> str:
    """Run SQL from standard input as the superuser; return its output."""
    done = subprocess.run(
        ["runuser", "-u", "postgres", "--", "psql", "--port", str(module.params["port"]),
         "--no-psqlrc", "--no-align", "--tuples-only", "--quiet", "--set", "ON_ERROR_STOP=1"],
        input=sql, capture_output=True, text=True, check=False, cwd="/",
    )  # fmt: skip
    if done.returncode:
        module.fail_json(msg=f"psql: {done.stderr.strip()}; next: systemctl status postgresql@*")
    return done.stdout.strip()


# A reader must have the right to read all tables, and no right to make one.
OWNER_QUESTION = "select 1"
READER_QUESTION = (
    "select 1 / (pg_has_role(current_user, 'pg_read_all_data', 'usage')"
    " and not has_database_privilege(current_database(), 'create')"
    " and not has_database_privilege(current_database(), 'temporary'))::int"
)


def is_right(module: AnsibleModule) -> bool:
    """Whether the server accepts the role's password over TCP and the role may what it should."""
    question = READER_QUESTION if module.params["read_only"] else OWNER_QUESTION
    done = subprocess.run(
        ["psql", "--host", "127.0.0.1", "--port", str(module.params["port"]),
         "--username", module.params["user"], "--dbname", module.params["name"],
         "--no-password", "--no-psqlrc", "--command", question],
        env={**os.environ, "PGPASSWORD": module.params["password"]},
        capture_output=True, check=False, cwd="/",
    )  # fmt: skip
    return done.returncode == 0


def main() -> None:
    """Entry point."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "user": {"type": "str", "required": True},
            "password": {"type": "str", "required": True, "no_log": True},
            "port": {"type": "int", "required": True},
            "read_only": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    name, user, password = (module.params[key] for key in ("name", "user", "password"))
    read_only = module.params["read_only"]
    if module.check_mode:
        module.exit_json(changed=False, done=[])
    if is_right(module):
        module.exit_json(changed=False, done=[])
    done = []
    if not admin(module, f"select 1 from pg_roles where rolname = {literal(user)};"):  # noqa: S608 -- quoted
        admin(module, f"create role {identifier(user)} login;")
        done.append("role")
    admin(module, f"alter role {identifier(user)} login password {literal(password)};")
    done.append("password")
    if not admin(module, f"select 1 from pg_database where datname = {literal(name)};"):  # noqa: S608 -- quoted
        admin(
            module,
            f"create database {identifier(name)} owner {'postgres' if read_only else identifier(user)}"
            " template template0 encoding 'UTF8';",
        )
        done.append("database")
    if read_only:
        admin(
            module,
            f"revoke create, temporary on database {identifier(name)} from public;"
            f"grant connect on database {identifier(name)} to {identifier(user)};"
            f"grant pg_read_all_data to {identifier(user)};",
        )
        done.append("grants")
    if not is_right(module):
        module.fail_json(
            msg=f"role {user} cannot log in to database {name} on port {module.params['port']};"
            " next: journalctl -u postgresql@*, and look at pg_hba.conf"
        )
    module.exit_json(changed=True, done=done)


if __name__ == "__main__":
    main()
