"""Render a role's list of files and hand all of them to one module call.

A task per file costs a round trip per file and host; a list costs one. Each entry of ``files`` is one of

* a file: ``dest``, ``template`` (a name below ``templates/``) or ``content``, optional ``vars`` for the
  template, ``owner``, ``group``, ``mode``, ``validate`` (``xml``, ``sshd``), ``secret`` (never shown, never
  rendered elsewhere);
* a directory: ``dest`` (one path or a list), ``directory: true``, ``owner``, ``group``, ``mode``, and
  ``only``: the names of files and links that may lie in it, others are removed; ``taken_from``: an account
  whose files below it, from an earlier release, become its owner's;
* a symbolic link: ``dest``, ``link`` (its target);
* what an earlier release has written: ``dest``, ``absent: true``.

``read_by`` names the units that read an entry when they start; the filter ``by_reader`` collects them.

What was written to a host is recorded in its ``manifest``, with a digest of each file.

With the variable ``lakehouse_render_dir`` set, nothing touches the host: files and links are written below
``<lakehouse_render_dir>/<host>/``, so that nodes, containers and the golden tests share one renderer. Secret
files are only with ``lakehouse_render_secrets``, into a folder that its owner alone may enter.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.template import trust_as_template

from lakehouse import pending
from lakehouse.model import evaluation

_FOLDER_MODE = 0o755
_NOT_FOR_THE_HOST = {"read_by", "template", "vars"}
TEMPLATES = Path(__file__).resolve().parents[2] / "templates"


def render(templar: Any, name: str, variables: dict[str, Any]) -> str:
    """Return the rendered text of a template below ``templates/``; AnsibleActionFail if it does not exist."""
    source = TEMPLATES / name
    if not source.is_file():
        raise AnsibleActionFail(f"{variables.get('dest')}: no template {name} below {TEMPLATES.name}/")
    renderer = templar.copy_with_new_env(searchpath=[str(TEMPLATES)], available_variables=variables)
    text = trust_as_template(source.read_text(encoding="utf-8"))
    return str(renderer.template(text, escape_backslashes=False, overrides={"trim_blocks": True}))


def _write(path: Path, content: str, mode: int) -> bool:
    """Write the file where its text or its mode differs; tell whether it did."""
    if path.is_file() and path.read_text(encoding="utf-8") == content and path.stat().st_mode & 0o777 == mode:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    # In place: a container that has the file mounted sees the new text.
    path.write_text(content, encoding="utf-8")
    path.chmod(mode)
    return True


def _link(path: Path, target: str) -> bool:
    """Point the link at its target; tell whether it did not."""
    if path.is_symlink() and str(path.readlink()) == target:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(target)
    return True


def _open(root: Path) -> None:
    """Open the folders to every user, whatever the umask: the users of containers are not this one."""
    for folder in (root, *(path for path in root.rglob("*") if path.is_dir() and not path.is_symlink())):
        if folder.is_dir() and folder.stat().st_mode & 0o777 != _FOLDER_MODE:
            folder.chmod(_FOLDER_MODE)


def _executable(entry: dict[str, Any]) -> bool:
    """Whether every user may run the file."""
    return bool(int(str(entry.get("mode", "0644")), 8) & 0o001)


class ActionModule(ActionBase):
    """Templates on the controller, state on the host."""

    TRANSFERS_FILES = False
    _requires_connection = False

    @classmethod
    def finalize_task_arg(cls, name: str, value: Any, templar: Any, context: Any) -> Any:
        """Leave the list of files to ``run``, which evaluates each variable once."""
        return value if name == "files" else super().finalize_task_arg(name, value, templar, context)

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the module's result: ``changed``, the list of changed paths, and their diffs."""
        variables = task_vars or {}
        super().run(tmp, variables)
        files = evaluation.evaluated(self._task.args.get("files"), self._templar, variables)
        if not isinstance(files, list):
            raise AnsibleActionFail(
                "lakehouse_config_files needs 'files', a list; see plugins/action/lakehouse_config_files.py"
            )
        single = [
            {**entry, "dest": dest}
            for entry in files
            for dest in ([entry["dest"]] if isinstance(entry["dest"], str) else entry["dest"])
        ]
        entries = [self._render(entry, variables) for entry in single]
        render_dir = variables.get("lakehouse_render_dir")
        if render_dir:
            root = Path(render_dir) / str(variables["inventory_hostname"])
            return self._write_locally(entries, root, bool(variables.get("lakehouse_render_secrets")))
        secrets = {entry["dest"]: entry.pop("content") for entry in entries if entry.get("secret")}
        result = self._execute_module(
            module_name="lakehouse_config_files",
            module_args={"files": entries, "secrets": secrets, "manifest": self._task.args.get("manifest")},
            task_vars=variables,
        )
        return (
            pending.remembered(result, result.get("files", []), variables)
            if self._task.check_mode
            else result
        )

    def _render(self, entry: dict[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
        rendered = {key: value for key, value in entry.items() if key not in _NOT_FOR_THE_HOST}
        if "template" in entry:
            entry_variables = entry.get("vars", {}) | {"dest": entry["dest"]}
            rendered["content"] = render(self._templar, entry["template"], variables | entry_variables)
        return rendered

    def _write_locally(self, entries: list[dict[str, Any]], root: Path, secrets: bool) -> dict[str, Any]:
        root.parent.mkdir(mode=0o700 if secrets else 0o777, parents=True, exist_ok=True)
        changed = []
        for entry in entries:
            path = root / str(entry["dest"]).lstrip("/")
            if "link" in entry:
                differs = _link(path, str(entry["link"]))
            elif "content" in entry and (secrets or not entry.get("secret")):
                differs = _write(path, str(entry["content"]), 0o755 if _executable(entry) else 0o644)
            else:
                continue
            if differs:
                changed.append(str(entry["dest"]))
        _open(root)
        if secrets:
            # Also where another program made the folder: Docker does, for a stack that was never rendered.
            root.parent.chmod(0o700)
        return {"changed": bool(changed), "files": changed}
