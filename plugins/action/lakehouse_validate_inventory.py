"""Check the whole inventory on the control machine, before any host is contacted.

Takes no arguments and runs once. The checks are the pure functions of ``lakehouse.validation``; this is the
translation: every host's variables with their templates resolved, and the argument specs of all roles.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible import constants
from ansible.errors import AnsibleAction, AnsibleActionFail, AnsibleTemplateError, AnsibleUndefinedVariable
from ansible.plugins.action import ActionBase

from lakehouse.artifacts import manifest
from lakehouse.errors import LakehouseError
from lakehouse.model import defaults, specs
from lakehouse.model.inventory import Host, Inventory
from lakehouse.validation import Level, Undefined, of_level, replaced, report, twice, validate

REPOSITORY = Path(__file__).resolve().parents[2]
# What Ansible puts beside the variables of the inventory.
INTERNAL = constants.INTERNAL_STATIC_VARS | {"environment", "omit", "vars"}
UNSEAL = "export ANSIBLE_VAULT_PASSWORD_FILE=FILE, or --ask-vault-pass"
MISSING_NAME = re.compile(r"'(\w+)' is undefined")


class ActionModule(ActionBase):
    """All findings at once, one line each."""

    BYPASS_HOST_LOOP = True
    TRANSFERS_FILES = False
    _requires_connection = False
    _VALID_ARGS: frozenset[str] = frozenset()

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Show each warning in a line; where there is a fault, fail with all findings as ``msg``."""
        variables = task_vars or {}
        super().run(tmp, variables)
        try:
            bill = manifest.load(REPOSITORY / "versions.yml", locked=False)
        except LakehouseError as error:
            raise AnsibleActionFail(str(error)) from error
        inventory = self._inventory(variables)
        findings = validate(inventory, specs.every(), bill) + replaced(inventory.path, self._loader)
        findings += twice(inventory.path, _sources(variables))
        result = {"changed": False, "msg": report(findings)}
        if of_level(findings, Level.FAULT):
            # The error and the message are both printed: they are not to say the same.
            raise AnsibleAction("The inventory is not sound", result=result)
        for warning in findings:  # the message of a task that went well is not shown
            self._display.display(str(warning), color=constants.COLOR_WARN)
        return result

    def _inventory(self, variables: Mapping[str, Any]) -> Inventory:
        hosts = (self._host(name, variables) for name in variables["groups"]["all"])
        return Inventory(path=Path(str(variables.get("inventory_dir", "."))), hosts=tuple(hosts))

    def _host(self, name: str, variables: Mapping[str, Any]) -> Host:
        raw = defaults.completed(variables["hostvars"].raw_get(name))
        templar = self._templar.copy_with_new_env(
            available_variables=raw | {"hostvars": variables["hostvars"]}
        )
        host_variables = {
            key: defaults.table(key, _resolved(templar, key, value))
            for key, value in raw.items()
            if key not in INTERNAL
        }
        groups = frozenset(group for group, members in variables["groups"].items() if name in members)
        return Host(
            name=name,
            address=str(host_variables.get("ansible_host", "")),
            groups=groups,
            variables=host_variables,
        )


def _sources(variables: Mapping[str, Any]) -> set[Path]:
    """Return the files that name hosts."""
    hosts = (variables["hostvars"].raw_get(name) for name in variables["groups"]["all"])
    return {Path(str(host["inventory_file"])) for host in hosts if host.get("inventory_file")}


def _resolved(templar: Any, name: str, value: object) -> object:
    """Return the value with its templates resolved, or what the template misses."""
    try:
        return templar.template(value)
    except AnsibleUndefinedVariable as error:
        if match := MISSING_NAME.search(str(error)):
            return Undefined(match[1])
        # Facts are not gathered yet: what they complete is checked when the role starts.
        return Undefined("ansible_facts" if "ansible_facts" in str(value) else " ".join(str(error).split()))
    except AnsibleTemplateError as error:
        reason = " ".join(str(error).split())
        following = UNSEAL if "no vault secrets" in reason else "correct its template in the inventory"
        # Ansible would repeat the cause behind the message.
        raise AnsibleActionFail(f"{name}: {reason}; next: {following}") from None
