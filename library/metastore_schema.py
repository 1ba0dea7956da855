#!/usr/bin/python
"""The metastore's schema: initialised once, never over something else."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: metastore_schema
short_description: Initialise the schema of a Hive Metastore once
description:
  - An empty database gets the schema, under an advisory lock so that two metastores cannot both do it.
  - A complete schema of the wished version is left alone. Everything else (an interrupted initialisation,
    another version, foreign tables) is refused with what was found.
options:
  host: {type: str, required: true, description: The database's host.}
  port: {type: int, required: true, description: The database's port.}
  database: {type: str, required: true, description: The database.}
  user: {type: str, required: true, description: The role that owns it.}
  password: {type: str, required: true, description: Its password; psql gets it through its environment.}
  version: {type: str, required: true, description: The schema version that the metastore's release expects.}
  environment_file: {type: path, required: true, description: Environment of the tool, with the password.}
  metastore_home: {type: path, required: true, description: Folder with scripts/metastore.}
  argv: {type: list, elements: str, required: true, description: The command that initialises.}
author: The lakehouse kit
"""
EXAMPLES = r"""
- name: The schema is initialised, once
  metastore_schema: {host: db1, port: 5432, database: metastore, user: hive, version: 3.1.0}
"""
RETURN = r"""
version: {type: str, returned: always, description: The schema's version.}
"""
# Any number will do as long as every run of the kit takes the same: "lake" in ASCII.
ADVISORY_LOCK = 0x6C616B65
TABLE_COUNT = "select count(*) from information_schema.tables where table_schema = 'public'"
HAS_VERSION_TABLE = "select to_regclass('public.\"VERSION\"') is not null"
VERSIONS = 'select "SCHEMA_VERSION" from "VERSION"'
# The release's PostgreSQL script names this table in lower case, the metastore asks for it in upper case.
RUNTIME_STATS = """
create table if not exists "RUNTIME_STATS" (
  "RS_ID" bigint primary key, "CREATE_TIME" bigint not null, "WEIGHT" bigint not null, "PAYLOAD" bytea
);
create index if not exists "IDX_RUNTIME_STATS_CREATE_TIME" on "RUNTIME_STATS" ("CREATE_TIME");
"""


class Database:
    """The metastore's database through psql."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        parameters = module.params
        self.argv = [
            "psql", "--host", parameters["host"], "--port", str(parameters["port"]),
            "--username", parameters["user"], "--dbname", parameters["database"],
            "--no-password", "--no-psqlrc", "--no-align", "--tuples-only", "--quiet",
            "--set", "ON_ERROR_STOP=1",
        ]  # fmt: skip
        self.environment = {**os.environ, "PGPASSWORD": parameters["password"], "PGCONNECT_TIMEOUT": "10"}

    def run(self, sql: str) -> str:
        """The statement's output, or the end of the task."""
        done = subprocess.run(
            self.argv, input=sql, env=self.environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            where = (
                f"{self.module.params['host']}:{self.module.params['port']}/{self.module.params['database']}"
            )
            self.module.fail_json(
                msg=f"PostgreSQL at {where}: {done.stderr.strip()}; next: ping it from this host"
            )
        return done.stdout.strip()

    def lock(self) -> subprocess.Popen[str]:
        """Hold the advisory lock until the returned session's input is closed."""
        session = subprocess.Popen(
            self.argv, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert session.stdin  # noqa: S101 -- a pipe was asked for
        assert session.stdout  # noqa: S101 -- the same
        session.stdin.write(
            f"set lock_timeout = '60s'; select pg_advisory_lock({ADVISORY_LOCK}); select 'locked';\n"
        )
        session.stdin.flush()
        if not any(line.strip() == "locked" for line in session.stdout):
            self.module.fail_json(
                msg="another run has been initialising the schema for 60 s; next: wait for it, rerun"
            )
        return session


def found_version(module: AnsibleModule, database: Database) -> str | None:
    """The schema's version, None for an empty database; everything between is refused."""
    tables = int(database.run(TABLE_COUNT))
    if tables == 0:
        return None
    versions = database.run(VERSIONS).split() if database.run(HAS_VERSION_TABLE) == "t" else []
    name = module.params["database"]
    if len(versions) != 1:
        module.fail_json(
            msg=f"database {name} has {tables} tables but no single schema version ({versions or 'none'}):"
            " an interrupted initialisation, or somebody else's tables; nothing was touched;"
            " next: restore a backup, or drop the database"
        )
    if versions[0] != module.params["version"]:
        module.fail_json(
            msg=f"database {name} has schema version {versions[0]} (expected {module.params['version']});"
            " nothing was touched; next: install the release that made it"
        )
    return versions[0]


def environment_of(path: str) -> dict[str, str]:
    """The variables of a systemd environment file with quoted values."""
    lines = Path(path).read_text(encoding="utf-8").split("\n")
    pairs = (line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    return {name: value[1:-1].replace('\\"', '"').replace("\\\\", "\\") for name, value in pairs}


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
            "environment_file": {"type": "path", "required": True},
            "metastore_home": {"type": "path", "required": True},
            "argv": {"type": "list", "elements": "str", "required": True},
        },
        supports_check_mode=True,
    )
    if module.check_mode:
        module.exit_json(changed=False, version="")
    database = Database(module)
    if version := found_version(module, database):
        module.exit_json(changed=False, version=version)
    with database.lock():
        if found_version(module, database) is None:
            environment = {
                **os.environ,
                **environment_of(module.params["environment_file"]),
                "METASTORE_HOME": module.params["metastore_home"],
            }
            done = subprocess.run(
                module.params["argv"], env=environment, capture_output=True, text=True, check=False
            )
            if done.returncode:
                lines = (done.stdout + done.stderr).strip().splitlines()
                module.fail_json(
                    msg="initialising the schema failed; next: read the log below, drop the database, rerun",
                    log=lines[-20:],
                )
            database.run(RUNTIME_STATS)
    module.exit_json(changed=True, version=module.params["version"])


if __name__ == "__main__":
    main()
