"""Install a component's release archive on a host.

The archive is built once on the control machine (``lakehouse.artifacts.releases``), sent only where it is
missing, compared there with what was built, and unpacked beside the releases that are there. A release that
lacks a file, or has one of another size than its list says, gets it again. Arguments:
``component`` and ``root`` (its folder on the host), optional ``conf`` (a folder that the release shall offer
as ``conf``), ``switch`` (false: it lies beside the one in use), ``pinned`` (by component a release that the
host has, in place of the one that the bill of materials describes) and ``keeps_version`` (a host that has
another version is refused: `lakehouse upgrade` is what may change it). The variable ``lakehouse_bill`` names
another bill of materials than the kit's.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase

from lakehouse import artifacts, pending
from lakehouse.artifacts import manifest, releases
from lakehouse.artifacts.cache import Cache
from lakehouse.artifacts.manifest import Manifest
from lakehouse.errors import LakehouseError

ROOT = Path(__file__).resolve().parents[2]
Provide = Callable[[Manifest, str, Cache, Callable[[str], None]], Path]


class ActionModule(ActionBase):
    """Transfer only what is missing."""

    # A folder for what is sent is made where something is: it takes three round trips.
    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the module's result: ``changed`` and ``path``, the release's folder."""
        variables = task_vars or {}
        super().run(tmp, variables)
        if variables.get("lakehouse_render_dir"):
            return {"changed": False, "skipped": True}
        try:
            bill = manifest.load(ROOT / str(variables.get("lakehouse_bill") or "versions.yml"), root=ROOT)
            component = bill.component(self._task.args["component"])
            pinned = (self._task.args.get("pinned") or {}).get(component.name)
            arguments = {
                "root": self._task.args["root"],
                "release": pinned or releases.release_id(component),
                "conf": self._task.args.get("conf"),
                # What a pinned release lacks cannot be built here.
                "compared": not pinned,
                "keep": self._task.args.get("keep", 2),
                "switch": boolean(self._task.args.get("switch", True)),
                "manifest": self._task.args.get("manifest"),
            }
            if boolean(self._task.args.get("keeps_version", False)) and arguments["switch"]:
                self._refuse_another_version(component.name, arguments["root"], arguments["release"])
            result = self._execute_module(
                module_name="lakehouse_release", module_args=arguments, task_vars=variables
            )
            if self._task.check_mode:
                changed = [f"{arguments['root']}/current"] if result.get("changed") else []
                return pending.remembered(result, changed, variables)
            if result.get("failed") or not result.get("missing"):
                return result
            if pinned:
                raise AnsibleActionFail(
                    f"{component.name}: {pinned} is not there any more; next: ls {arguments['root']}/releases"
                )
            result = self._install(bill, releases.ensure, arguments, variables)
            if result.get("damaged"):
                # On the disk here, or on its way: what is good here is sent once more.
                result = self._install(bill, releases.verified, arguments, variables)
        except LakehouseError as error:
            raise AnsibleActionFail(str(error)) from error
        if result.get("damaged"):
            raise AnsibleActionFail(
                f"{component.name}: what arrived is not what was sent, twice;"
                " next: look at the machine's memory, disk and network, then run it again"
            )
        return result

    def _refuse_another_version(self, component: str, root: str, release: str) -> None:
        """Fail if the host has another version: its data may need more than a switch of the link."""
        link = str(self._low_level_execute_command(f"readlink {shlex.quote(root)}/current")["stdout"])
        old, new = (name.rpartition("-")[0] for name in (link.strip().rpartition("/")[2], release))
        if old and old != new:
            raise AnsibleActionFail(
                f"{component} is {old} here, and {new} in versions.yml: nothing was touched;"
                f' next: .venv/bin/lakehouse upgrade {component}, or {component}: "{old}" there'
            )

    def _install(
        self, bill: Manifest, provide: Provide, arguments: dict[str, Any], variables: dict[str, Any]
    ) -> dict[str, Any]:
        """Send the archive and have it unpacked; the answer is ``damaged`` if something else arrived."""
        name = self._task.args["component"]
        cache, component = artifacts.cache_dir(), bill.component(name)
        if releases.digest(component, cache) is None:
            artifacts.fetch(bill, [name], cache, self._display.v)
        archive = provide(bill, name, cache, self._display.v)
        shell = self._connection._shell
        remote = shell.join_path(shell.tmpdir or self._make_tmp_path(), archive.name)
        self._transfer_file(str(archive), remote)
        sent = {"archive": remote, "sha256": releases.digest(component, cache)}
        return dict(
            self._execute_module(
                module_name="lakehouse_release", module_args=arguments | sent, task_vars=variables
            )
        )
