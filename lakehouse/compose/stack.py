"""The stack itself: rendered, started, asked, stopped."""

from __future__ import annotations

from lakehouse import artifacts, run
from lakehouse.compose import checks, images, plugin
from lakehouse.compose.settings import FOLDER, THREE_DATANODES, Settings
from lakehouse.errors import LakehouseError
from lakehouse.manifest import Manifest
from lakehouse.nodes import engine
from lakehouse.phases import Phases


def compose(settings: Settings, *arguments: str) -> list[str]:
    """Return the call of docker compose that means this stack, whoever calls it from wherever."""
    return [
        "docker",
        "compose",
        "--project-directory",
        str(FOLDER),
        "--env-file",
        str(settings.file),
        *arguments,
    ]


def is_core(settings: Settings) -> bool:
    """Whether Trino, Flink and the Python clients are left out."""
    return set(settings.profiles) <= {"core", THREE_DATANODES}


def check(phases: Phases, settings: Settings, bill: Manifest) -> None:
    """Refuse what cannot work before anything is built, and have docker compose."""
    with engine.connect() as client:
        checks.refuse(client, settings)
        plugin.ensure(client, bill.debian.suite, phases.log)


def build(phases: Phases, settings: Settings, bill: Manifest) -> None:
    """Have the images that the profiles need."""
    with phases.phase("images"), engine.connect() as client:
        images.ensure(client, bill, artifacts.cache_dir(), is_core(settings), phases.log)


def render(phases: Phases, settings: Settings) -> bool:
    """Write the configuration of every container below build/compose/; tell whether a file changed."""
    with phases.phase("configuration"):
        changed = run.playbook(
            "render",
            settings.inventory,
            "--extra-vars",
            f"lakehouse_render_dir={settings.rendered}",
            environment=settings.values,
        )
    return changed > 0


def up(phases: Phases, settings: Settings, *, restart: bool = False) -> None:
    """Start the stack, and wait until every service has answered; LakehouseError says which did not.

    With `restart` also what runs is started anew: a daemon reads its configuration once.
    """
    with phases.phase("compose", spinner=False):
        _run(
            settings,
            "up",
            "--detach",
            "--wait",
            "--remove-orphans",
            *(["--force-recreate"] if restart else []),
        )


def load(settings: Settings) -> None:
    """Load the real data into a stack that runs; what is there already stays as it is."""
    run.logged(
        compose(settings, "run", "--rm", "--no-TTY", "load"), run.LOGS / "compose-load.log", settings.values
    )


def down(settings: Settings, *, volumes: bool = False) -> None:
    """Remove the containers; with `volumes` the data too."""
    everything = ["--profile", "*"]
    argv = compose(settings, *everything, "down", "--remove-orphans", *(["--volumes"] if volumes else []))
    if run.shown(argv, settings.values):
        raise LakehouseError("docker compose down failed", "docker compose ls")


def _run(settings: Settings, *arguments: str) -> None:
    if run.shown(compose(settings, *arguments), settings.values):
        raise LakehouseError(f"docker compose {arguments[0]} failed", checks.advice(settings))
