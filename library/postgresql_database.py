#!/usr/bin/python
"""A login role and the database that it owns."""

from __future__ import annotations

import os
import subprocess

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: postgresql_database
short_description: A login role and its database
description:
  - Talks to the server through psql, as the operating system's user C(postgres).
  - Whether the password is right is asked of the server, by logging in over TCP. It never stands in an
    argument list.
options:
  name: {type: str, required: true, description: The database.}
  owner: {type: str, required: true, description: The role that owns it.}
  password: {type: str, required: true, description: The role's password.}
  port: {type: int, required: true, description: The server's port.}
author: The lakehouse kit
"""
EXAMPLES = r"""
- name: The metastore's role and database exist
  postgresql_database: {name: metastore, owner: hive, password: "{{ vaulted }}", port: 5432}
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


def can_log_in(module: AnsibleModule) -> bool:
    """Whether the server accepts the role's password over TCP."""
    done = subprocess.run(
        ["psql", "--host", "127.0.0.1", "--port", str(module.params["port"]),
         "--username", module.params["owner"], "--dbname", module.params["name"],
         "--no-password", "--no-psqlrc", "--command", "select 1"],
        env={**os.environ, "PGPASSWORD": module.params["password"]},
        capture_output=True, check=False, cwd="/",
    )  # fmt: skip
    return done.returncode == 0


def main() -> None:
    """Entry point."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "owner": {"type": "str", "required": True},
            "password": {"type": "str", "required": True, "no_log": True},
            "port": {"type": "int", "required": True},
        },
        supports_check_mode=True,
    )
    name, owner, password = (module.params[key] for key in ("name", "owner", "password"))
    if module.check_mode:
        module.exit_json(changed=False, done=[])
    if can_log_in(module):
        module.exit_json(changed=False, done=[])
    done = []
    if not admin(module, f"select 1 from pg_roles where rolname = {literal(owner)};"):  # noqa: S608 -- quoted
        admin(module, f"create role {identifier(owner)} login;")
        done.append("role")
    admin(module, f"alter role {identifier(owner)} login password {literal(password)};")
    done.append("password")
    if not admin(module, f"select 1 from pg_database where datname = {literal(name)};"):  # noqa: S608 -- quoted
        admin(
            module,
            f"create database {identifier(name)} owner {identifier(owner)}"
            " template template0 encoding 'UTF8';",
        )
        done.append("database")
    if not can_log_in(module):
        module.fail_json(
            msg=f"role {owner} cannot log in to database {name} on port {module.params['port']};"
            " next: journalctl -u postgresql@*, and look at pg_hba.conf"
        )
    module.exit_json(changed=True, done=done)


if __name__ == "__main__":
    main()
