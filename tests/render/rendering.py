"""Render an inventory as its user would, and keep what is expected: ``make golden`` writes it again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dotenv import dotenv_values

from lakehouse.local.compose.dotenv import DATANODES_VARIABLE, DEFAULT_FILE
from lakehouse.model import inventory as inventories
from tests.render import golden_files

REPOSITORY = Path(__file__).resolve().parents[2]
INVENTORIES = {
    "three-node": Path("inventory/three-node"),
    "tests": Path("tests/inventory"),
    "compose": Path("inventory/compose"),
    "local": Path("inventory/local"),
    "dedicated-namenode": Path("inventory/dedicated-namenode"),
    "compose-three": Path("inventory/compose-three"),
}
# What the others have otherwise than one of these is declared in test_variants.py.
GOLDEN = ("compose", "tests", "three-node")
# Every password of every rendering. It must not be in any of them.
MARK = "KnownToTheTestAlone"
SECRETS = ("metastore", "federation", "trino")
# What a person may have set, and an expected rendering does not follow.
SETTINGS = (*dotenv_values(DEFAULT_FILE), DATANODES_VARIABLE, "LAKEHOUSE_PROFILE")
# For every user and computer: inventory/compose is for the computer that it is read on.
SAME_EVERYWHERE = ("-e", "java_architecture=amd64")
NO_SECRETS = ("-e", '{"lakehouse_render_secrets": false}')


def copy(inventory: Path, root: Path) -> Path:
    """Copy the inventory below ``root`` and give it its secrets, where and how its user would."""
    copied = root / inventory
    shutil.copytree(REPOSITORY / inventory, copied)
    variables = copied / "group_vars" / "all"
    words = f"vault_metastore_password: {MARK}\nvault_trino_shared_secret: {MARK}\n"
    (variables / "vault.yml").write_text(f"---\n{words}", encoding="utf-8")
    cluster = str(inventories.load(copied).hosts[0].variables["lakehouse_cluster"])
    folder = root / ".state" / cluster / "secrets"
    folder.mkdir(parents=True)
    for name in SECRETS:
        (folder / name).write_text(f"{MARK}\n", encoding="utf-8")
    return copied


def render(copied: Path, target: Path, *options: str) -> str:
    """Run the render playbook for a copied inventory; return its output, or raise RuntimeError with it."""
    program = Path(sys.executable).with_name("ansible-playbook")
    argv = [
        str(program),
        "-i",
        str(copied),
        "playbooks/render.yml",
        "-e",
        f"lakehouse_render_dir={target}",
        *SAME_EVERYWHERE,
        *options,
    ]
    environment = os.environ | {"ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}
    done = subprocess.run(argv, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{copied} cannot be rendered:\n{done.stdout}{done.stderr}")
    return done.stdout


def render_all(jobs: dict[Path, Path]) -> None:
    """Render inventories by target, at the same time and without their secrets."""
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor() as pool:
        # Ansible's own loader is not made for threads.
        copies = {
            target: copy(inventory, Path(scratch) / str(number))
            for number, (target, inventory) in enumerate(jobs.items())
        }
        for job in [pool.submit(render, copied, target, *NO_SECRETS) for target, copied in copies.items()]:
            job.result()


def main() -> None:
    """Write the golden files again."""
    for name in SETTINGS:
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory() as scratch:
        render_all({Path(scratch) / name: INVENTORIES[name] for name in GOLDEN})
        golden_files.write(Path(scratch), GOLDEN)


if __name__ == "__main__":
    main()
