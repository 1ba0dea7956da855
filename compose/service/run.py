"""The verb ``run``: execute the daemon of a rendered unit file."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from ansible.module_utils.lakehouse.environment_file import environment_of
from ansible.module_utils.lakehouse.hdfs_storage import check
from ansible.module_utils.lakehouse.refused import RefusedError

from service import spec
from service.unit import Unit, parse

FOLDER = Path("/etc/systemd/system")


def main(name: str) -> None:
    """Replace this process by the unit's, or raise RefusedError."""
    unit = load(name)
    guard(name)
    environment = {**os.environ, **identity(unit), **unit.variables, **variables_of_files(unit)}
    argv = unit.argv(environment)
    os.umask(unit.umask)
    os.chdir(unit.folder)
    os.execve(argv[0], argv, environment)  # noqa: S606 -- the point of this verb; no shell is wanted


def load(name: str) -> Unit:
    """Read the unit file."""
    path = FOLDER / f"{name}.service"
    if not path.is_file():
        names = ", ".join(sorted(file.stem for file in FOLDER.glob("*.service"))) or "none"
        raise RefusedError(f"there is no {path}", f"name one of these: {names}; or mount the rendered files")
    try:
        return parse(path.read_text(encoding="utf-8"))
    except RefusedError as error:
        raise RefusedError(f"{path}: {error.what}", error.next_command or f"cat {path}") from error


def guard(name: str) -> None:
    """Refuse what the roles refuse before they start a daemon: the data of another cluster."""
    storage = spec.document(spec.PATH).get("guard", {}).get(name)
    if storage:
        check(storage.get("name_dirs", []), storage.get("data_dirs", []), storage["cluster_id"])


def identity(unit: Unit) -> dict[str, str]:
    """Return the variables that systemd derives from User=; refuse to run as another user."""
    if unit.user is None:
        return {}
    try:
        user = pwd.getpwnam(unit.user)
    except KeyError:
        raise RefusedError(f"there is no user {unit.user} in this image", "build the image again") from None
    if user.pw_uid != os.geteuid():
        raise RefusedError(
            f"runs as {unit.user} (user id {user.pw_uid}), not as user id {os.geteuid()}",
            f"set user: {unit.user} for this service in compose.yaml",
        )
    return {"HOME": user.pw_dir, "LOGNAME": unit.user, "SHELL": user.pw_shell, "USER": unit.user}


def variables_of_files(unit: Unit) -> dict[str, str]:
    """Return the variables of the unit's files; one whose name begins with ``-`` need not be there."""
    variables: dict[str, str] = {}
    for file in unit.files:
        path = file.removeprefix("-")
        if file == path or Path(path).exists():
            variables |= environment_of(path)
    return variables
