"""Start and stop the stack."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from pathlib import Path
from tempfile import TemporaryDirectory

from lakehouse import artifacts, run
from lakehouse.artifacts.manifest import Manifest
from lakehouse.errors import LakehouseError
from lakehouse.local.compose import checks, history, images, plugin, running
from lakehouse.local.compose.dotenv import BASE_VARIABLE, FOLDER, Settings
from lakehouse.local.compose.labels import PROJECT_LABEL
from lakehouse.local.nodes import docker_api
from lakehouse.phases import Phases

# Beside the folders of the containers: the digest of the configuration that all of them run with.
STARTED_WITH = ".started-with"
# Also there: the settings as they came out, for plain docker compose.
SETTINGS = "settings.env"
# There are passwords below it.
PRIVATE = 0o700


def compose(settings: Settings, *arguments: str) -> list[str]:
    """Return the call of docker compose that means this stack, for any user and from any folder."""
    return [
        "docker",
        "compose",
        "--file",
        str(FOLDER / "compose.yaml"),
        "--env-file",
        str(settings.file),
        *arguments,
    ]


def check(phases: Phases, settings: Settings, bill: Manifest) -> None:
    """Refuse what cannot work before anything is built, and have docker compose."""
    with docker_api.connect() as client:
        checks.refuse(client, settings)
        plugin.ensure(client, bill.debian.suite, phases.log)


def build(phases: Phases, settings: Settings, bill: Manifest, *, renewed: bool = False) -> None:
    """Ensure the images that the profiles need; `renewed` under a tag that others may have."""
    base = settings.values.get(BASE_VARIABLE)
    request = images.ImageRequest(settings.values["IMAGE_TAG"], settings.profiles, base, renewed)
    with phases.phase("images"), docker_api.connect() as client:
        images.ensure(client, bill, artifacts.cache_dir(), request, phases.log)


def render(phases: Phases, settings: Settings) -> None:
    """Write the configuration of every container below build/compose/, and nothing that it has no more."""
    target = settings.rendered
    target.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    # Docker makes the folder itself, open to all, for a stack that was never rendered.
    target.chmod(PRIVATE)
    with phases.phase("configuration") as warn, TemporaryDirectory(dir=target.parent) as fresh:
        run.playbook(
            "render",
            settings.inventory,
            "--extra-vars",
            f"lakehouse_render_dir={fresh}",
            environment=settings.values,
            warn=warn,
        )
        mirror(Path(fresh), target)
    (target / SETTINGS).write_text(
        "".join(f"{name}={value}\n" for name, value in settings.values.items()), encoding="utf-8"
    )


def up(phases: Phases, settings: Settings) -> None:
    """Start the stack and wait until every service is ready; LakehouseError with those that are not.

    A changed configuration recreates the running containers: a daemon reads it only when it starts.
    """
    configuration_digest, started = digest(settings.rendered), settings.rendered / STARTED_WITH
    restart = not started.is_file() or started.read_text(encoding="utf-8") != configuration_digest
    with docker_api.connect() as client:
        running.stop_others(client, settings, phases.log)
    if history.SERVICE in running.wanted(settings):
        history.made(settings)
    with phases.phase("compose"):
        _start(settings, *(["--force-recreate"] if restart else []))
    started.write_text(configuration_digest, encoding="utf-8")


def mirror(source: Path, target: Path) -> None:
    """Make the folders in `target` what they are in `source`; containers have mounted them, so they stay."""
    for place in sorted(target.glob("*/**/*")):
        # A folder that goes takes with it what is in it; what is of another kind is not written through.
        if _kind(place) not in (None, _kind(source / place.relative_to(target))):
            shutil.rmtree(place) if _kind(place) == stat.S_IFDIR else place.unlink()
    for path in sorted(source.rglob("*")):
        place = target / path.relative_to(source)
        if path.is_symlink():
            place.unlink(missing_ok=True)
            place.symlink_to(path.readlink())
            continue
        if path.is_dir():
            place.mkdir(exist_ok=True)
        elif not place.is_file() or place.read_bytes() != path.read_bytes():
            place.write_bytes(path.read_bytes())
        place.chmod(stat.S_IMODE(path.stat().st_mode))


def _kind(path: Path) -> int | None:
    """Whether it is a file, a folder or a link; None if nothing is there."""
    return stat.S_IFMT(path.lstat().st_mode) if os.path.lexists(path) else None


def digest(folder: Path) -> str:
    """Return what changes with any file of any container's folder."""
    content = hashlib.sha256()
    for path in sorted(folder.glob("*/**/*")):
        content.update(f"{path.relative_to(folder)}\0".encode())
        if path.is_symlink():
            content.update(str(path.readlink()).encode())
        elif path.is_file():
            content.update(f"{path.stat().st_mode:o}\0".encode() + path.read_bytes())
    return content.hexdigest()


def load(settings: Settings) -> None:
    """Load the real data into a stack that runs; what is there already stays as it is."""
    run.logged(
        compose(settings, "run", "--rm", "--no-TTY", "load"), run.LOGS / "compose-load.log", settings.values
    )


def down(settings: Settings, *, volumes: bool = False) -> None:
    """Remove the containers; with `volumes` also the data, its passwords and its history."""
    if plugin.version() is None:
        raise LakehouseError("Docker has no compose, version 2", "make compose-up, which installs it")
    all_profiles = ["--profile", "*"]
    argv = compose(settings, *all_profiles, "down", "--remove-orphans", *(["--volumes"] if volumes else []))
    run.logged(argv, _log(settings), settings.values)
    if volumes:
        forget(settings)


def forget(settings: Settings) -> None:
    """Remove the passwords, the history and the configuration of a stack without data.

    Raises LakehouseError if a volume remains, which docker compose ignores.
    """
    with docker_api.connect() as client:
        volumes = client.volumes.list(filters={"label": f"{PROJECT_LABEL}={settings.project}"})
    if volumes:
        raise LakehouseError(
            f"{settings.project}: another container uses {volumes[0].name}:"
            " it stays, and the passwords with it",
            f"docker ps --all --filter volume={volumes[0].name}",
        )
    for folder in (settings.state, settings.rendered):
        if folder.exists():
            shutil.rmtree(folder)


def _log(settings: Settings) -> Path:
    return run.LOGS / f"compose-{settings.project}.log"


def _start(settings: Settings, *arguments: str) -> None:
    argv = compose(settings, "up", "--detach", "--wait", "--remove-orphans", *arguments)
    try:
        run.logged(argv, _log(settings), settings.values)
    except LakehouseError as error:
        with docker_api.connect() as client:
            lines = running.refusals(client, settings)
        if lines:
            raise LakehouseError("\n".join(lines)) from error
        lines = _log(settings).read_text(encoding="utf-8").strip().splitlines()
        last = lines[-1] if lines else "its log is empty"
        raise LakehouseError(f"docker compose up failed: {last}", checks.advice(settings)) from error
