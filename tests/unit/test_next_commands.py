"""A next command works when it is pasted: it names the program with its path, and the inventory."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from ansible.errors import AnsibleAction
from ansible.plugins.action import ActionBase

from lakehouse import cli, commands
from lakehouse.next_command import PROGRAM, command
from plugins.action import lakehouse_preflight, lakehouse_refuse

ROOTS = ("lakehouse", "plugins")
# What people call it, in a text about it.
NAMES = {
    "lakehouse/validation/cluster.py": "lakehouse catalog",
    "lakehouse/catalog/restoring.py": "lakehouse catalog",
    "lakehouse/artifacts/lock.py": "lakehouse artifacts",
    # The lines of a file that are the kit's.
    "lakehouse/local/compose/names.py": "lakehouse compose",
    "plugins/action/lakehouse_hosts_file.py": "lakehouse nodes",
    "plugins/module_utils/lakehouse/preflight_names.py": "lakehouse nodes",
    "lakehouse/cluster_catalog/merging.py": "lakehouse catalog",
    "lakehouse/doctor/failures.py": "lakehouse doctor",
    "lakehouse/sql/spark_rows.py": "lakehouse sql",
    "lakehouse/sql/trino.py": "lakehouse sql",
}


def verbs() -> list[str]:
    return cli.ROOT.list_commands(click.Context(cli.ROOT))


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Give every text of a module that is no docstring, with its line."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value


@pytest.mark.parametrize("root", ROOTS)
def test_every_command_names_the_program_with_its_path(root: str) -> None:
    bare = re.compile(rf"(?<![\w/])lakehouse ({'|'.join(map(re.escape, verbs()))})\b")
    found = [
        f"{path}:{line}: {text}"
        for path in sorted(Path(root).rglob("*.py"))
        for line, text in texts(ast.parse(path.read_text(encoding="utf-8")))
        if (hit := bare.search(text)) and NAMES.get(str(path)) != hit[0]
    ]
    assert found == []


def test_a_command_is_pasted_as_it_is() -> None:
    assert command("restart all", "inventory/local") == f"{PROGRAM} restart all -i inventory/local"
    assert command("status", "my inventory") == f"{PROGRAM} status -i 'my inventory'"
    assert Path(PROGRAM).name == "lakehouse"


def test_a_finding_of_a_host_names_the_inventory_which_no_host_knows() -> None:
    found = {"check": "host.away", "fact": "in maintenance", "action": f"{PROGRAM} maintenance n3 --end"}
    pasted = lakehouse_preflight._pasted(found, {"inventory_dir": "/kit/inventory/mine"})
    assert pasted == {**found, "action": f"{PROGRAM} maintenance n3 --end -i /kit/inventory/mine"}
    other = {**found, "action": "ls /etc/hosts"}
    assert lakehouse_preflight._pasted(other, {}) == other


def test_what_two_hosts_know_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"because": "The machines are not fit", "findings": ["n3 is away", "n3 is away", "n1: full"]}
    action = lakehouse_refuse.ActionModule.__new__(lakehouse_refuse.ActionModule)
    monkeypatch.setattr(ActionBase, "run", lambda *_: {})
    monkeypatch.setattr(action, "validate_argument_spec", lambda _: (None, options), raising=False)
    with pytest.raises(AnsibleAction) as error:
        action.run()
    assert error.value.result["msg"] == "findings: 2\nn3 is away\nn1: full"


def test_a_host_in_the_place_of_a_service_is_told_how_it_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["exec", "beta2", "-i", "tests/inventory", "--", "uptime"]
    assert cli.main(words) == commands.USAGE
    told = capsys.readouterr().err
    assert told == "error: beta2 is a host, and no service; --host beta2 runs it there\n"
