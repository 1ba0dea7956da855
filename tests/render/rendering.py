"""Render an inventory as its user would, and keep what is expected: ``make golden`` writes it again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).with_name("golden")
INVENTORIES = {
    "local": Path("inventory/local"),
    "three-node": Path("inventory/three-node"),
    "tests": Path("tests/inventory"),
}
# The database password of every rendering. It must not be in any of them.
MARK = "KnownToTheTestAlone"


def copy(inventory: Path, root: Path) -> Path:
    """Copy the inventory below ``root`` and give it its secrets, where and how its user would."""
    copied = root / inventory
    shutil.copytree(REPOSITORY / inventory, copied)
    variables = copied / "group_vars" / "all"
    (variables / "vault.yml").write_text(f"---\nvault_metastore_password: {MARK}\n", encoding="utf-8")
    cluster = yaml.safe_load((variables / "cluster.yml").read_text(encoding="utf-8"))["lakehouse_cluster"]
    secret = root / ".state" / cluster / "secrets" / "metastore"
    secret.parent.mkdir(parents=True)
    secret.write_text(f"{MARK}\n", encoding="utf-8")
    return copied


def render(inventory: Path, target: Path) -> None:
    """Run the render playbook for an inventory; raise RuntimeError with its output where it fails."""
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(sys.executable).with_name("ansible-playbook")
        copied = copy(inventory, Path(scratch))
        argv = [
            str(program),
            "-i",
            str(copied),
            "playbooks/render.yml",
            "-e",
            f"lakehouse_render_dir={target}",
        ]
        environment = os.environ | {"ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}
        done = subprocess.run(
            argv, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise RuntimeError(f"{inventory} cannot be rendered:\n{done.stdout}{done.stderr}")


def render_all(jobs: dict[Path, Path]) -> None:
    """Render inventories by target, at the same time."""
    with ThreadPoolExecutor() as pool:
        for job in [pool.submit(render, inventory, target) for target, inventory in jobs.items()]:
            job.result()


def read(root: Path) -> dict[str, str]:
    """Every file below a folder, its text by its path; of a link the text is where it leads."""
    found = sorted(path for path in root.rglob("*") if path.is_symlink() or path.is_file())
    return {
        str(path.relative_to(root)): f"-> {path.readlink()}\n"
        if path.is_symlink()
        else path.read_text("utf-8")
        for path in found
    }


def main() -> None:
    """Write the golden files again."""
    shutil.rmtree(GOLDEN, ignore_errors=True)
    render_all({GOLDEN / name: inventory for name, inventory in INVENTORIES.items()})


if __name__ == "__main__":
    main()
