"""Install packages of Debian that are missing, and ask apt about nothing where none is.

Arguments: ``name``, a list; ``manifest``, that of the host, in which the packages are recorded; ``masked``,
units of systemd that the packages bring and that must not start: they are masked before, unless the host has
them already, which are a person's. Package lists that are older than a day are refreshed first. Where a
bundle is in use (``lakehouse.artifacts.airgap``), apt reads its index and no other, and is brought the
packages that it wants of it.
"""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from lakehouse.artifacts import airgap
from lakehouse.errors import LakehouseError

# One line for each package that is installed, in the order of dpkg; and the package lists that are there.
INSTALLED = ["dpkg-query", "--show", "--showformat=${db:Status-Status} ${Package}\\n"]
LISTS = "ls /var/lib/apt/lists/*Release"
DAY = 86400
# A unit that the host has is left alone.
MASK = "test -e /lib/systemd/system/{unit} -o -e /etc/systemd/system/{unit} || systemctl --quiet mask {unit}"
# Where scripts/unpack-bundle makes a bundle's packages for.
BUNDLES = "/var/lib/lakehouse-bundle"


def missing(names: list[str], output: str) -> list[str]:
    """Return the packages that are not installed, by the output of dpkg-query."""
    return [name for name in names if f"installed {name}" not in output.splitlines()]


class ActionModule(ActionBase):
    """A question to dpkg, and apt where the answer is no."""

    # A folder for what is sent is made where something is: it takes three round trips.
    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the result of apt, or ``changed: false``."""
        variables = task_vars or {}
        super().run(tmp, variables)
        names = self._task.args.get("name")
        if not isinstance(names, list) or not names:
            raise AnsibleActionFail(
                "lakehouse_packages needs 'name', a list; see plugins/action/lakehouse_packages.py"
            )
        # An unknown package makes dpkg-query fail, but it prints the others.
        output = self._low_level_execute_command(shlex.join([*INSTALLED, *names]))["stdout"]
        lacking = missing(names, str(output))
        if not lacking:
            return self._recorded({"changed": False}, names, variables)
        try:
            bundle = airgap.folder()
        except LakehouseError as error:
            raise AnsibleActionFail(str(error)) from error
        # An image without package lists looks up to date to apt's module, which compares the folder's age.
        lists = not bundle and self._low_level_execute_command(LISTS)["rc"] == 0
        if self._task.check_mode and not lists:
            return {"changed": True, "msg": f"would install {', '.join(lacking)}"}
        for unit in self._task.args.get("masked", []):
            self._done(MASK.format(unit=shlex.quote(f"{unit}.service")))
        if bundle:
            self._task.environment = [
                *(self._task.environment or []),
                {"APT_CONFIG": self._brought(bundle, lacking)},
            ]
        arguments = {
            "name": names,
            "install_recommends": False,
            "lock_timeout": 120,
            # The index of a bundle does not change.
            "update_cache": not bundle,
            "cache_valid_time": DAY if lists else 0,
        }
        result = self._execute_module(
            module_name="ansible.builtin.apt", module_args=arguments, task_vars=variables
        )
        return self._recorded(dict(result), names, variables)

    def _recorded(
        self, result: dict[str, Any], names: list[str], variables: dict[str, Any]
    ) -> dict[str, Any]:
        """Return a result after the packages are in the host's manifest, where it succeeded."""
        path = self._task.args.get("manifest")
        if result.get("failed") or not path or self._task.check_mode:
            return result
        items = [{"kind": "package", "name": name} for name in names]
        recorded = self._execute_module(
            module_name="lakehouse_manifest",
            module_args={"path": path, "state": "recorded", "items": items},
            task_vars=variables,
        )
        return dict(recorded) if recorded.get("failed") else result

    def _brought(self, bundle: Path, names: list[str]) -> str:
        """Copy the bundle with the dependencies of these packages to the host; return its apt.conf."""
        place = f"{BUNDLES}/{bundle.name}"
        settings = f"{place}/apt.conf"
        apt = f"APT_CONFIG={settings} apt-get --quiet"
        if self._low_level_execute_command(f"test -f {place}/read")["rc"]:
            # The files of an earlier bundle, or of an interrupted run.
            self._done(f"rm -rf {BUNDLES}")
            self._unpack(bundle / "nodes.tar", "/")
            self._done(f"{apt} --error-on=any update && touch {place}/read")
        request = f"--yes --no-install-recommends --print-uris install {shlex.join(names)}"
        printed = self._done(f"LC_ALL=C {apt} {request}")
        with tempfile.TemporaryDirectory() as folder:
            archive = Path(folder) / "packages.tar"
            try:
                count = airgap.pack_packages(bundle, printed, f"{place}/nodes", archive)
            except LakehouseError as error:
                raise AnsibleActionFail(str(error)) from error
            if count:
                self._unpack(archive, f"{place}/nodes")
        return settings

    def _unpack(self, archive: Path, folder: str) -> None:
        """Bring an archive to the host and unpack it there."""
        remote = self._connection._shell.join_path(self._make_tmp_path(), archive.name)
        self._transfer_file(str(archive), remote)
        try:
            self._done(f"tar --extract --file {shlex.quote(remote)} --directory {folder}")
        finally:
            self._remove_tmp_path(self._connection._shell.tmpdir)

    def _done(self, command: str) -> str:
        """Run a command on the host and return its output; AnsibleActionFail if it fails."""
        result = self._low_level_execute_command(command)
        if result["rc"]:
            lines = f"{result['stdout']}\n{result['stderr']}".strip().splitlines() or ["no output"]
            message = next((line.removeprefix("E: ") for line in lines if line.startswith("E: ")), lines[-1])
            raise AnsibleActionFail(
                f"the bundle is of no use here: {message}; next: df -h {Path(BUNDLES).parent}"
            )
        return str(result["stdout"])
