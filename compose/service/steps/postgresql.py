"""A data directory of PostgreSQL with its roles and databases.

A new one is initialised in a subfolder and moved into place when it is complete: after an interrupted run
the next one removes or finishes it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ansible.module_utils.lakehouse.metastore_schema import uses
from ansible.module_utils.lakehouse.postgresql_database import Server, literal
from ansible.module_utils.lakehouse.postgresql_database import apply as apply_login
from ansible.module_utils.lakehouse.refused import RefusedError

from service import spec

MAKING, MADE = ".lakehouse-making", ".lakehouse-made"
# A mount point's own folder, and those of this module.
IGNORED = {"lost+found", MAKING, MADE}
VERSION_FILE, LOCK_FILE = "PG_VERSION", "postmaster.pid"
LOG_LINES = 20
DATABASES = "select datname from pg_database where not datistemplate"
IS_CATALOG = "select to_regclass('public.\"DBS\"') is not null"


def apply(parameters: dict[str, Any]) -> str:
    """Initialise a missing data directory; create and correct roles and databases."""
    if os.geteuid() == 0:
        raise RefusedError("PostgreSQL does not run as root", "set user: postgres in compose.yaml")
    data = Path(parameters["data"])
    logins = _logins(parameters)
    refuse_foreign(data, parameters["version"])
    actions = []
    if not (data / VERSION_FILE).exists() and not (data / MADE).exists():
        actions = [f"initialised version {parameters['version']} in {data}", *_make(data, parameters, logins)]
    _adopt(data)
    if actions:
        return "; ".join(actions)
    # A second server would destroy the data, and the processes of other containers are invisible here.
    if (data / LOCK_FILE).exists():
        return f"left alone: a server runs on {data}, or was killed"
    return "; ".join(_databases(Path(parameters["bin"]), data, parameters, logins))


def refuse_foreign(data: Path, version: str) -> None:
    """Raise RefusedError for a directory of another version, or with files that are not PostgreSQL's."""
    for place in (data, data / MADE):
        if (place / VERSION_FILE).exists():
            present = (place / VERSION_FILE).read_text(encoding="utf-8").strip()
            if present != version:
                raise RefusedError(
                    f"{data} is a volume of PostgreSQL {present}, the image has {version};"
                    " nothing was touched",
                    f"dump it with an image of PostgreSQL {present}, or remove the volume",
                )
            return
    strangers = [entry.name for entry in data.iterdir() if entry.name not in IGNORED] if data.is_dir() else []
    if strangers and not (data / MADE).exists():
        raise RefusedError(
            f"{data} is neither empty nor of PostgreSQL ({strangers[0]} is in it); nothing was touched",
            f"ls -la {data}, then move it away",
        )


class Session:
    """A session in a database as its owner, so that functions there get no other privileges."""

    def __init__(self, server: Server, name: str) -> None:
        query = f"select pg_get_userbyid(datdba) from pg_database where datname = {literal(name)}"  # noqa: S608 -- quoted
        self.server, self.name, self.owner = server, name, server.admin(query)

    def run(self, sql: str) -> str:
        """Return the statement's output."""
        return str(self.server.session(sql, self.name, self.owner))


def left_behind(
    server: Server, logins: list[dict[str, Any]], forsaken: Collection[str]
) -> RefusedError | None:
    """Return the refusal of a second catalog while another database of this server holds a catalog."""
    databases = server.admin(DATABASES).splitlines()
    new = [login["name"] for login in logins if not login.get("read_only") and login["name"] not in databases]
    desired = {login["name"] for login in logins}
    for old in (name for name in databases if new and name not in desired and name not in forsaken):
        session = Session(server, old)
        used = uses(session) if session.run(IS_CATALOG) == "t" else []
        if used:
            return RefusedError(
                f"database {old} holds the data of the metastore ({'; '.join(used)}), and lakehouse_database"
                f" names {new[0]} instead; nothing was touched",
                f"name {old} again, or give it up for ever with lakehouse_forsaken: ['{old}']",
            )
    return None


def _logins(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    secrets = spec.document(parameters["secrets"])
    for database in parameters["databases"]:
        if database["user"] not in secrets:
            raise RefusedError(
                f"{parameters['secrets']} has no password of role {database['user']}",
                "render the configuration again",
            )
    return [{**database, "password": secrets[database["user"]]} for database in parameters["databases"]]


def _make(data: Path, parameters: dict[str, Any], logins: list[dict[str, Any]]) -> list[str]:
    programs, making = Path(parameters["bin"]), data / MAKING
    data.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(making, ignore_errors=True)
    # The rendered pg_hba.conf configures authentication; these apply to a server without it.
    _run(
        programs / "initdb", "--pgdata", str(making), "--auth-local=peer", "--auth-host=scram-sha-256",
        *parameters["initdb"],
    )  # fmt: skip
    with (making / "postgresql.conf").open("a", encoding="utf-8") as stream:
        stream.writelines(f"{line}\n" for line in parameters["settings"])
    actions = _databases(programs, making, parameters, logins)
    making.rename(data / MADE)
    return actions


def _adopt(data: Path) -> None:
    """Move the files into the directory itself, which may be a mount point; the version file comes last."""
    source = data / MADE
    if not source.exists():
        return
    data.chmod(0o700)
    for entry in sorted(source.iterdir(), key=lambda entry: entry.name == VERSION_FILE):
        entry.rename(data / entry.name)
    source.rmdir()


def _databases(
    programs: Path, data: Path, parameters: dict[str, Any], logins: list[dict[str, Any]]
) -> list[str]:
    with _server(programs, data, parameters) as server:
        refusal = left_behind(server, logins, parameters.get("forsaken", []))
        changes = [] if refusal else [(login["name"], apply_login(server, login)) for login in logins]
    if refusal:
        raise refusal
    return [f"{name}: {', '.join(statements)}" for name, statements in changes if statements]


@contextmanager
def _server(programs: Path, data: Path, parameters: dict[str, Any]) -> Iterator[Server]:
    """Run a server that only this machine can reach; its log is part of a refusal."""
    port = parameters["port"]
    with tempfile.TemporaryDirectory(prefix="postgresql-") as sockets:
        log, rules = Path(sockets) / "log", Path(sockets) / "pg_hba.conf"
        # No other user can open the sockets in this folder; databases of other names have no rules.
        rules.write_text("local all all trust\n" + _text(parameters["rules"]), encoding="utf-8")
        overrides = {
            "listen_addresses": "127.0.0.1",
            "port": port,
            "unix_socket_directories": sockets,
            "hba_file": str(rules),
            "logging_collector": "off",
            # A statement may hold a password.
            "log_min_error_statement": "panic",
            "log_statement": "none",
        }
        options = shlex.join(f"--{name}={value}" for name, value in overrides.items())
        control = (programs / "pg_ctl", "--pgdata", str(data), "--wait", "--silent")
        try:
            _run(*control, "--log", str(log), "--options", options, "start")
            yield Server(port, sockets)
        except RefusedError as error:
            lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
            raise RefusedError(
                error.what, "read the log below, and pg_hba.conf", [*error.log, *lines[-LOG_LINES:]]
            ) from error
        finally:
            if (data / LOCK_FILE).exists():
                _run(*control, "--mode=fast", "stop")


def _text(path: str) -> str:
    return Path(path).read_text(encoding="utf-8") if Path(path).exists() else ""


def _run(program: Path, *arguments: str) -> None:
    process = subprocess.run([str(program), *arguments], capture_output=True, text=True, check=False, cwd="/")
    if process.returncode:
        lines = (process.stderr + process.stdout).strip().splitlines()
        message = lines[-1] if lines else f"exit code {process.returncode}"
        raise RefusedError(f"{program.name}: {message}", "read the lines below", lines[-LOG_LINES:])
