"""Root writes nothing by hand where an account could have put a link: the kit's own module does it.

`lakehouse_config_files` follows no link of another account (tests/unit/test_safe_path.py). What writes in
another way is listed here with the reason why it is safe, or its user does it (`runuser`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakehouse.run import ROOT

# Modules of Ansible that follow links in every part of a path.
FOLLOWING = {
    "assemble", "blockinfile", "copy", "file", "get_url", "lineinfile", "replace", "template", "unarchive",
    "acl", "synchronize", "tempfile", "git",
}  # fmt: skip
SHELLS = {"raw", "shell", "command", "script"}
# Words that write, at the beginning of a command; and what writes into a file.
WRITES = re.compile(
    r"(?:^|[;&|({\n]|\b(?:then|do|else)\b)\s*(?:env\s+(?:\w+=\S*\s+)*)?"
    r"(install|mkdir|chown|chgrp|chmod|cp|mv|ln|rm|touch|tee|dd|tar|rsync|truncate|ssh-keygen|sed\s+-i)\b"
    r"|(?<![\d&2<>-])>{1,2}\s*(?!&|/dev/null|=)"
)
# What is done by a user of its own, with its quoted words.
AS_USER = re.compile(
    r"runuser\s+-u\s+(?:\{\{.*?\}\}|\S+)(?:\s+-g\s+\S+)?\s+--\s+(?:'[^']*'|\"[^\"]*\"|[^;&|])*"
)
PLAYS = {
    ("roles/backup/tasks/layout.yml", "Move what an earlier release has left beside the backups"):
        "names of a folder that is root's by then are removed, and no link is followed",
    ("roles/backup/tasks/keys.yml", "Make a key, and show it with the host's own"):
        "the folder of a key is root's",
    ("roles/backup/tasks/keys.yml", "Ask sshd whether it reads these keys"): "/run is root's",
    ("playbooks/endpoints.yml", "Write the endpoints"): "on the control machine, as the person who runs it",
}  # fmt: skip
VERBS = {
    (
        "lakehouse/backup/postgresql.py",
        "install",
    ): "only where the folder above is missing, which root's folder holds",
    (
        "lakehouse/backup/restore.py",
        "install",
    ): "only where the folder is not its user's yet: root's folder holds it",
}
MODULES = {
    "plugins/module_utils/lakehouse/safe_path.py": "by open folders and files",
}


def tasks(document: Any) -> Iterator[dict[str, Any]]:
    """Give every task of a file, those of plays and blocks too."""
    for task in document or []:
        if not isinstance(task, dict):
            continue
        yield task
        for key in ("tasks", "pre_tasks", "post_tasks", "handlers", "block", "rescue", "always"):
            yield from tasks(task.get(key))


def modules(task: dict[str, Any], variables: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Give the modules of a task by their short names, with what they are told; one variable is looked up."""
    for key, value in task.items():
        text = value if isinstance(value, str) else yaml.safe_dump(value)
        variable = re.fullmatch(r"\s*\{\{\s*(\w+)\s*\}\}\s*", text)
        yield key.rpartition(".")[2], str(variables.get(variable[1], text)) if variable else text


def root_writes(text: str) -> list[str]:
    """Return the words by which a script writes as root."""
    return [match.group().strip() for match in WRITES.finditer(AS_USER.sub(" ", text))]


def unsafe_tasks(path: Path) -> Iterator[tuple[str, str]]:
    """Give the tasks of a file that write as root in another way than by the kit's module."""
    role = path.parents[1] / "vars" / "main.yml"
    variables = yaml.safe_load(role.read_text(encoding="utf-8")) if role.is_file() else {}
    for task in tasks(yaml.safe_load(path.read_text(encoding="utf-8"))):
        for module, text in modules(task, variables):
            if module in FOLLOWING or (module in SHELLS and root_writes(text)):
                yield (
                    str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name,
                    str(task.get("name")),
                )


def task_files() -> list[Path]:
    return sorted([*(ROOT / "roles").glob("*/tasks/*.yml"), *(ROOT / "playbooks").glob("*.yml")])


def test_no_play_writes_as_root_where_a_link_could_lead_elsewhere() -> None:
    unsafe = {task for path in task_files() for task in unsafe_tasks(path)}
    assert unsafe == PLAYS.keys()


def scripts(path: Path) -> Iterator[str]:
    """Give the texts of a module of Python, those with places for values as one."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "{{ x }}" for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_no_verb_gives_a_folder_of_an_account_away() -> None:
    command = re.compile(r"(?:^|[;&|\n]|\bthen\b)\s*(install|chown|chgrp)\s+-")
    verbs = {
        (str(path.relative_to(ROOT)), match[1])
        for path in (ROOT / "lakehouse").rglob("*.py")
        # The folder of an image of this computer.
        if path.parts[-3:-1] != ("local", "nodes")
        for text in scripts(path)
        for match in command.finditer(AS_USER.sub(" ", text))
    }
    assert verbs == VERBS.keys()


def test_no_module_gives_a_path_away() -> None:
    call = re.compile(r"\b(?:l|f)?chown\(|shutil\.chown")
    paths = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "plugins").rglob("*.py")
        if call.search(path.read_text(encoding="utf-8"))
    }
    assert paths == MODULES.keys()


@pytest.mark.parametrize(
    "task",
    [
        {"ansible.builtin.raw": "set -e; install -d -m 0700 -o {{ user }} {{ home }}/.ssh;"},
        {"ansible.builtin.shell": "echo {{ key }} >> {{ home }}/.ssh/authorized_keys"},
        {"ansible.builtin.command": "chown -R {{ user }} {{ lakehouse_data_dir }}"},
        {"ansible.builtin.raw": "{{ _script }}"},
        {"ansible.builtin.copy": {"dest": "{{ home }}/x", "content": ""}},
        {"file": {"path": "{{ home }}/.ssh", "state": "directory"}},
        {"ansible.builtin.raw": "runuser -u {{ user }} -- true; mkdir {{ home }}/x"},
    ],
)
def test_what_would_write_as_root_is_found(tmp_path: Path, task: dict[str, Any]) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "vars").mkdir()
    (tmp_path / "vars" / "main.yml").write_text("_script: 'if x; then rm -rf y; fi'\n", encoding="utf-8")
    path = tmp_path / "tasks" / "main.yml"
    path.write_text(yaml.safe_dump([{"name": "x", **task}]), encoding="utf-8")
    assert list(unsafe_tasks(path)) == [("main.yml", "x")]


@pytest.mark.parametrize(
    "script",
    [
        "runuser -u {{ user }} -- sh -c 'mkdir -p \"$1\"; echo x > y' sh {{ home }}",
        "printf '%s' x | systemd-sysusers - 2>/dev/null",
        "cd / && runuser -u postgres -- pgbackrest --stanza=lakehouse stanza-create",
        "test -e x || exit 1; stat -c %U x >/dev/null 2>&1",
    ],
)
def test_what_its_user_does_and_what_writes_nothing_is_let_be(script: str) -> None:
    assert root_writes(script) == []
