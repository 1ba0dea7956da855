"""An Ansible inventory as plain data, read by Ansible's own loader so that both see the same thing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from ansible.cli import CLI
from ansible.constants import DEFAULT_VAULT_IDENTITY_LIST
from ansible.errors import AnsibleError
from ansible.inventory import data
from ansible.inventory.host import Host as AnsibleHost
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
from ansible.template import Templar
from ansible.utils.display import Display
from ansible.vars.manager import VariableManager

from lakehouse.errors import LakehouseError, UsageError
from lakehouse.model import defaults

# What Ansible adds to the groups that a person wrote.
_IMPLIED_GROUPS = frozenset({"all", "ungrouped"})


class Variables(Mapping[str, Any]):
    """The variables of one host, with what its inventory leaves unsaid.

    An expression is evaluated only when its variable is asked for.

    Evaluating all of them would run every lookup, and some of these create secrets.
    """

    def __init__(self, host: str, raw: Mapping[str, Any], loader: DataLoader) -> None:
        self._host = host
        self._raw = raw
        self._loader = loader

    @cached_property
    def _templar(self) -> Templar:
        return Templar(loader=self._loader, variables=self._raw)

    def __getitem__(self, name: str) -> Any:
        return defaults.table(name, self._evaluated(name, self._raw[name]))

    def entry(self, table: str, key: str) -> Any:
        """Return one entry of a table; the others, which may be secrets, are not evaluated."""
        raw = self._raw[table]
        return self._evaluated(f"{table}.{key}", raw[key]) if isinstance(raw, Mapping) else self[table][key]

    def written(self, name: str) -> Any:
        """Return a variable as the inventory has it; nothing is evaluated."""
        return self._raw[name]

    def _evaluated(self, name: str, raw: Any) -> Any:
        try:
            return self._templar.template(raw)
        except AnsibleError as error:
            raise LakehouseError(f"{self._host}: {name} cannot be evaluated: {_one_line(error)}") from error

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)


@dataclass(frozen=True)
class Host:
    """One machine: its inventory name, its `ansible_host` (empty if unset), its groups and variables."""

    name: str
    address: str
    groups: frozenset[str]
    variables: Mapping[str, Any]

    def entry(self, table: str, key: str) -> Any:
        """Return one entry of a table; the others, which may be secrets, are not evaluated."""
        variables = self.variables
        return variables.entry(table, key) if isinstance(variables, Variables) else variables[table][key]

    def written(self, name: str) -> Any:
        """Return a variable as the inventory has it; nothing is evaluated."""
        return self.variables.written(name) if isinstance(self.variables, Variables) else self.variables[name]


@dataclass(frozen=True)
class Inventory:
    """The hosts of one inventory, in the order in which it names them."""

    path: Path
    hosts: tuple[Host, ...]

    def group(self, name: str) -> tuple[Host, ...]:
        """Return the hosts of a group; empty when no host is in it."""
        return tuple(host for host in self.hosts if name in host.groups)


def load(path: Path | str) -> Inventory:
    """Read an inventory directory or file.

    Raises UsageError when it is missing, LakehouseError when it cannot be parsed or names no host. Whether
    its values can work is not judged here.
    """
    source = Path(path)
    if not source.exists():
        raise UsageError(f"inventory {source} does not exist", "ls -d inventory/*")
    _prepare_ansible()
    loader = DataLoader()
    try:
        loader.set_vault_secrets(_vault_secrets())
        manager = InventoryManager(loader=loader, sources=[str(source.resolve())])
        variables = VariableManager(loader=loader, inventory=manager)
        hosts = tuple(_host(host, variables, loader) for host in manager.get_hosts())
    except AnsibleError as error:
        command = f"ansible-inventory -i {source} --list"
        raise LakehouseError(f"inventory {source} cannot be read: {_one_line(error)}", command) from error
    if not hosts:
        raise LakehouseError(f"inventory {source} names no host", f"ansible-inventory -i {source} --graph")
    return Inventory(path=source, hosts=hosts)


class _Display(Display):  # type: ignore[misc]
    """Ansible's terminal but for one warning: in docker compose `namenode` is a service, and its group."""

    def warning(self, msg: str, *arguments: Any, **options: Any) -> None:
        if not msg.startswith("Found both group and host with same name"):
            super().warning(msg, *arguments, **options)


@cache
def _prepare_ansible() -> None:
    data.display = _Display()
    init_plugin_loader([])


@cache
def _vault_secrets() -> Any:
    # What ansible.cfg and the environment name, as for ansible-playbook; Ansible takes them once per process.
    return CLI.setup_vault_secrets(DataLoader(), vault_ids=DEFAULT_VAULT_IDENTITY_LIST, auto_prompt=False)


def _host(host: AnsibleHost, manager: VariableManager, loader: DataLoader) -> Host:
    raw = defaults.completed(manager.get_vars(host=host, include_hostvars=False))
    variables = Variables(host.name, raw, loader)
    return Host(
        name=host.name,
        address=str(variables.get("ansible_host", "")),
        groups=frozenset(group.name for group in host.get_groups()) - _IMPLIED_GROUPS,
        variables=variables,
    )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
