"""Load once, in the process that starts the tasks, what each of their processes would load anew.

A task on a host is a forked process, which finds and imports every filter and test at the first template that
uses one, and its action and connection. Forked after that, it has them. What is loaded here is also kept from
the garbage collector, which would write to each page of it, and so copy it.
"""

from __future__ import annotations

import gc
from pathlib import Path

from ansible.playbook import Playbook
from ansible.plugins import loader
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: preload
type: aggregate
short_description: load the plugins of templates before tasks are forked
description: The processes of tasks inherit them.
author: The lakehouse kit
"""
# The kit's own, and of Ansible's, by name, those that tasks use.
ACTIONS = (
    *sorted(path.stem for path in (Path(__file__).parents[1] / "action").glob("*.py")),
    "ansible.legacy.normal",
    "ansible.builtin.raw",
    "ansible.builtin.validate_argument_spec",
)
CONNECTIONS = ("ansible.builtin.ssh", "ansible.builtin.local")


class CallbackModule(CallbackBase):
    """Print nothing."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "preload"
    CALLBACK_NEEDS_ENABLED = True

    def v2_playbook_on_start(self, playbook: Playbook) -> None:  # noqa: ARG002 (Ansible's signature)
        """Load what templates and tasks use; end the run where the kit's package is not there for it."""
        try:
            for name in ACTIONS:
                loader.action_loader.get_with_context(name, class_only=True)
        except ImportError as error:  # Ansible runs in another Python than the kit's
            # Whatever else a callback raises is a warning.
            raise SystemExit(
                f"error: no package 'lakehouse' here ({error});"
                " next: scripts/bootstrap, then .venv/bin/ansible-playbook"
            ) from None
        for plugins in (loader.filter_loader, loader.test_loader):
            for _plugin in plugins.all():
                pass
        for name in CONNECTIONS:
            loader.connection_loader.get_with_context(name, class_only=True)
        loader.become_loader.get_with_context("ansible.builtin.sudo", class_only=True)
        loader.shell_loader.get_with_context("sh", class_only=True)
        loader.lookup_loader.get_with_context("effective", class_only=True)
        gc.collect()
        gc.freeze()
