"""Verbs of the stack of docker compose, which needs no inventory."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def register(verbs: Any) -> None:
    """Add the verbs to those of `lakehouse compose`."""
    for name, action, text in (
        ("up", "compose_up", "build, render and start the stack, and wait until every service answers"),
        ("image", "compose_image", "build the images"),
        ("names", "compose_names", "make the names of the containers lead to this computer, in /etc/hosts"),
        ("down", "compose_down", "remove the containers and keep the data"),
    ):
        one = verbs.add_parser(name, help=text, description=text)
        one.set_defaults(action=action)
        one.add_argument("--env-file", type=Path, help="settings (default: compose/.env)")
        one.add_argument("--started", type=float, help="when the calling program began")
        if name == "names":
            one.add_argument("--forget", action="store_true", help="take them out again")
        if name == "down":
            one.add_argument("--volumes", action="store_true", help="remove the data too")
